//! What pages, workers and Node have under one name, each in a global object of its own type.

use js_sys::{Array, Function, Reflect, global};
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::Crypto;

/// Calls a global function.
pub(in crate::net) fn call(name: &str, arguments: &Array) -> Result<JsValue, JsValue> {
    let function = Reflect::get(&global(), &name.into())?;
    let function = function.dyn_into::<Function>()?;
    function.apply(&JsValue::UNDEFINED, arguments)
}

/// Returns fresh randomness.
pub(in crate::net) fn random() -> Result<u64, JsValue> {
    let mut bytes = [0; 8];
    let crypto = Reflect::get(&global(), &"crypto".into())?;
    crypto
        .unchecked_into::<Crypto>()
        .get_random_values_with_u8_array(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
