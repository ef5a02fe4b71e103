;; A module without anything that the gateway calls.
(module
  (func (export "other") (result i32)
    (i32.const 0)))
