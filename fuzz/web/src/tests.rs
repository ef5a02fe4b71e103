//! What tests check natively, in a page: the fuzz targets, and the vectors of the crates. A broken rule traps.

use std::path::Path;

use js_sys::JsString;
use wasm_bindgen::prelude::wasm_bindgen;

use super::{Outcome, failed};

include!(concat!(env!("OUT_DIR"), "/vectors.rs"));

#[wasm_bindgen]
extern "C" {
    /// The harness reads a file.
    #[wasm_bindgen(catch)]
    fn read_text(path: &str) -> Result<JsString, JsString>;

    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    let text = read_text(&path.to_string_lossy());
    text.map(String::from).map_err(String::from)
}

/// Shows what panics.
#[wasm_bindgen]
pub fn watch() {
    std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
}

/// Runs the body of a fuzz target over an input.
#[wasm_bindgen]
pub fn target(name: &str, input: &[u8]) -> Outcome {
    let found = bodies::TARGETS.iter().find(|(target, _)| *target == name);
    let (_, body) = found.ok_or_else(|| failed("there is no such target"))?;
    body.run(input);
    Ok(())
}

/// Runs all tests of vectors, and gives their number.
#[wasm_bindgen]
pub fn run_vectors() -> usize {
    TESTS.iter().for_each(|test| test());
    TESTS.len()
}
