;; A tool that asks for a function that there is not.
(module
  (import "extism:host/user" "secret" (func $secret))
  (func (export "handle_tool_call") (result i32)
    (call $secret)
    (i32.const 0)))
