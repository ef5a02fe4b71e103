;; A tool that describes itself in words.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "a tool")
  ;; Answers with the bytes that lie there.
  (func $say (param $from i32) (param $length i32)
    (local $to i64)
    (local $at i32)
    (local.set $to (call $alloc (i64.extend_i32_u (local.get $length))))
    (loop $next
      (call $store_u8
        (i64.add (local.get $to) (i64.extend_i32_u (local.get $at)))
        (i32.load8_u (i32.add (local.get $from) (local.get $at))))
      (local.set $at (i32.add (local.get $at) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $at) (local.get $length))))
    (call $output_set (local.get $to) (i64.extend_i32_u (local.get $length))))
  (func (export "describe") (result i32)
    (call $say (i32.const 0) (i32.const 6))
    (i32.const 0))
  (func (export "handle_tool_call") (result i32)
    (i32.const 0)))
