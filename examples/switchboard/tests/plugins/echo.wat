;; A tool that answers with its input. Its name is not that of the plugin.
(module
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store_u8 (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_u8 (param i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\22name\22:\22repeat\22,\22description\22:\22Repeats its input.\22,\22input_schema\22:{\22type\22:\22object\22,\22properties\22:{\22message\22:{\22type\22:\22string\22}},\22required\22:[\22message\22]}}")
  ;; Copies the input into memory that the host can read.
  (func $copy (param $length i64) (result i64)
    (local $to i64)
    (local $at i64)
    (local.set $to (call $alloc (local.get $length)))
    (block $end
      (loop $next
        (br_if $end (i64.ge_u (local.get $at) (local.get $length)))
        (call $store_u8
          (i64.add (local.get $to) (local.get $at))
          (call $input_u8 (local.get $at)))
        (local.set $at (i64.add (local.get $at) (i64.const 1)))
        (br $next)))
    (local.get $to))
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
    (call $say (i32.const 0) (i32.const 151))
    (i32.const 0))
  (func (export "handle_tool_call") (result i32)
    (local $length i64)
    (local.set $length (call $input_length))
    (call $output_set (call $copy (local.get $length)) (local.get $length))
    (i32.const 0)))
