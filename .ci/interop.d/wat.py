"""Extism plugins as WebAssembly text, put together from a few kinds of functions."""

import json

HEAD = """(module
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 1)
  (func $say (param $from i32) (param $length i32) (result i32)
    (local $to i64) (local $at i32)
    (local.set $to (call $alloc (i64.extend_i32_u (local.get $length))))
    (block $end (loop $next
      (br_if $end (i32.ge_u (local.get $at) (local.get $length)))
      (call $store_u8
        (i64.add (local.get $to) (i64.extend_i32_u (local.get $at)))
        (i32.load8_u (i32.add (local.get $from) (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br $next)))
    (call $output_set (local.get $to) (i64.extend_i32_u (local.get $length)))
    (i32.const 0))
"""

BODIES = {
    # Says what it is told.
    "echo": """(local $to i64) (local $at i64) (local $length i64)
    (local.set $length (call $input_length))
    (local.set $to (call $alloc (local.get $length)))
    (block $end (loop $next
      (br_if $end (i64.ge_u (local.get $at) (local.get $length)))
      (call $store_u8 (i64.add (local.get $to) (local.get $at)) (call $input_load_u8 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br $next)))
    (call $output_set (local.get $to) (local.get $length))
    (i32.const 0)""",
    # Never comes back.
    "spin": "(loop $for_ever (br $for_ever)) (i32.const 0)",
    # Breaks down.
    "trap": "unreachable",
    # Wants memory until it gets no more, then breaks down.
    "hog": """(loop $more
      (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
    unreachable""",
}


def module(**exports):
    """A module with these functions: the name of a body, or what the function says, as data."""
    functions, data, at = [], [], 16
    for name, does in exports.items():
        body = BODIES.get(does) if isinstance(does, str) else None
        if body is None:
            text = (does if isinstance(does, str) else json.dumps(does)).encode()
            escaped = "".join(f"\\{byte:02x}" for byte in text)
            data.append(f'  (data (i32.const {at}) "{escaped}")\n')
            body = f"(call $say (i32.const {at}) (i32.const {len(text)}))"
            at += len(text)
        functions.append(f'  (func (export "{name}") (result i32) {body})\n')
    return HEAD + "".join(functions + data) + ")\n"


def tool(name, does):
    """A tool that models can call."""
    schema = {"type": "object", "properties": {"message": {"type": "string"}}}
    described = {"name": name, "description": f"The tool {name}.", "input_schema": schema}
    return module(describe=described, handle_tool_call=does)


TOOLS = {
    "failing": {"content": "no such file", "is_error": True},
    "echo": "echo",
    "spin": "spin",
    "mute": {"content": "", "is_error": False},
    "trap": "trap",
    "hog": "hog",
    "hook": "echo",
    "hookproxy": "echo",
}


def plugins(folder, names, **more):
    """Writes modules to a folder. Returns the entries of the configuration."""
    entries = []
    for name in names:
        (folder / f"{name}.wat").write_text(tool(name, TOOLS[name]))
        entries.append({"name": name, "path": f"{name}.wat"} | more)
    return entries
