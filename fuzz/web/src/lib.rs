//! What the clients do in a page, against our servers: each function is one client's life.
#![cfg(target_family = "wasm")]

#[cfg(feature = "exoclaw")]
mod chat;
#[cfg(feature = "exoclaw")]
mod exoclaw;
mod snek;

use std::fmt::Display;
use std::time::Duration;

use js_sys::{Function, Promise};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

type Outcome = Result<(), JsValue>;

/// Longer than anything that happens here, and shorter than what should not.
const MOMENT: Duration = Duration::from_millis(300);

fn failed(what: impl Display) -> JsValue {
    js_sys::Error::new(&what.to_string()).into()
}

fn expect(holds: bool, what: impl Display) -> Outcome {
    if holds { Ok(()) } else { Err(failed(what)) }
}

/// The line to the server, which the harness holds: it is told to `drop`, `hold` and `release` it.
struct Line(Function);

impl Line {
    async fn tell(&self, word: &str) -> Outcome {
        let told = self.0.call1(&JsValue::NULL, &word.into())?;
        JsFuture::from(Promise::resolve(&told)).await?;
        Ok(())
    }
}

/// The life of a Snek client.
#[wasm_bindgen]
pub async fn snek(url: String, line: Function) -> Outcome {
    snek::life(&url, &Line(line)).await
}

/// The life of an Exoclaw client.
#[cfg(feature = "exoclaw")]
#[wasm_bindgen]
pub async fn exoclaw(url: String, line: Function) -> Outcome {
    exoclaw::life(&url, &Line(line)).await
}
