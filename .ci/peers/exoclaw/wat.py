"""Extism plugins as WebAssembly text, which the gateway loads as they are."""

import json

IMPORTS = """
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_load_u8 (param i64) (result i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 1)
"""
ECHO = """
    (local $to i64) (local $at i64) (local $length i64)
    (local.set $length (call $input_length))
    (local.set $to (call $alloc (local.get $length)))
    (block $end (loop $next
      (br_if $end (i64.ge_u (local.get $at) (local.get $length)))
      (call $store_u8 (i64.add (local.get $to) (local.get $at)) (call $input_load_u8 (local.get $at)))
      (local.set $at (i64.add (local.get $at) (i64.const 1)))
      (br $next)))
    (call $output_set (local.get $to) (local.get $length))"""

def says(value):
    """Code that says this as JSON, byte by byte."""
    data = json.dumps(value).encode()
    store = "(call $store_u8 (i64.add (local.get $to) (i64.const {})) (i32.const {}))"
    stores = "".join(store.format(at, byte) for at, byte in enumerate(data))
    begin = f"(local $to i64) (local.set $to (call $alloc (i64.const {len(data)})))"
    return f"{begin} {stores} (call $output_set (local.get $to) (i64.const {len(data)}))"

def plugins(folder, names):
    """Writes modules to a folder: `failing` fails, the others repeat their input. Returns their configuration."""
    for name in names:
        schema = {"type": "object", "properties": {"message": {"type": "string"}}}
        described = says({"name": name, "description": f"The tool {name}.", "input_schema": schema})
        called = says({"content": "no such file", "is_error": True}) if name == "failing" else ECHO
        exports = {"describe": described, "handle_tool_call": called}
        functions = [f'(func (export "{it}") (result i32) {code} (i32.const 0))\n' for it, code in exports.items()]
        (folder / f"{name}.wat").write_text(f"(module {IMPORTS} {''.join(functions)})\n")
    return [{"name": name, "path": f"{name}.wat"} for name in names]
