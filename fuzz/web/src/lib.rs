//! What the clients do in a page, against our servers: each function is one client's life.
#![cfg(target_family = "wasm")]

// The tests of vectors name these so.
#[cfg(feature = "all")]
extern crate self as switchboard_testing;
#[cfg(feature = "all")]
#[path = "../../testing/src/json.rs"]
pub mod json;
#[cfg(feature = "all")]
#[path = "../../testing/src/vectors.rs"]
pub mod vectors;

#[cfg(feature = "all")]
mod acolyte;
#[cfg(feature = "all")]
mod bot;
#[cfg(feature = "all")]
mod chat;
#[cfg(feature = "all")]
mod connectonion;
#[cfg(feature = "all")]
mod exoclaw;
#[cfg(feature = "all")]
mod plugin;
#[cfg(feature = "all")]
mod smarthole;
mod snek;
#[cfg(feature = "all")]
pub mod tests;

use std::fmt::{Debug, Display};
use std::time::Duration;

use js_sys::{Function, Promise};
use snek_proto::rpc_core::net::time::timeout;
use snek_proto::rpc_core::net::{Link, Protocol};
use snek_proto::{CallError, CloseReason};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::JsFuture;

#[cfg(feature = "all")]
use tests::read;

type Outcome = Result<(), JsValue>;

/// Longer than anything that happens here, and shorter than what should not.
const MOMENT: Duration = Duration::from_millis(300);

#[cfg(feature = "all")]
fn fail(message: &str) -> ! {
    panic!("{message}")
}

fn failed(what: impl Display) -> JsValue {
    js_sys::Error::new(&what.to_string()).into()
}

fn expect(holds: bool, what: impl Display) -> Outcome {
    if holds { Ok(()) } else { Err(failed(what)) }
}

/// What a call became that must fail in one way.
fn fails<T: Debug>(what: T, fits: impl FnOnce(&T) -> bool) -> Outcome {
    expect(fits(&what), format!("{what:?}"))
}

/// What a call became whose answer was held.
fn is_late<T: Debug, R: Debug>(what: Result<T, CallError<R>>) -> Outcome {
    fails(what, |it| matches!(it, Err(CallError::TimedOut { .. })))
}

/// Waits for what comes after a reconnect.
async fn soon<T>(what: impl Future<Output = T>) -> Result<T, JsValue> {
    timeout(10 * MOMENT, what).await.map_err(failed)
}

/// Waits for this connection of a client.
async fn connects<P: Protocol>(client: &Link<P>, number: u64) -> Outcome {
    let generation = soon(client.ready()).await?.map_err(failed)?;
    expect(generation == number, format!("connection {generation}"))
}

async fn leaves<P: Protocol>(client: &Link<P>) -> Outcome {
    client.close();
    let end = client.closed().await;
    expect(end == CloseReason::Local, end)
}

/// The line to the server, which the harness holds: it is told to `drop`, `hold` and `release` it.
struct Line(Function);

impl Line {
    /// Gives what the harness says.
    async fn control(&self, word: &str) -> Result<String, JsValue> {
        let answer = self.0.call1(&JsValue::NULL, &word.into())?;
        let said = JsFuture::from(Promise::resolve(&answer)).await?;
        Ok(said.as_string().unwrap_or_default())
    }
}

/// Runs a life by its name.
#[wasm_bindgen]
pub async fn live(name: &str, url: String, line: Function) -> Outcome {
    let (url, line) = (&*url, &Line(line));
    match name {
        "snek" => snek::life(url, line).await,
        #[cfg(feature = "all")]
        "bot" => bot::life(url, line).await,
        #[cfg(feature = "all")]
        "exoclaw" => exoclaw::life(url, line).await,
        #[cfg(feature = "all")]
        "connectonion" => connectonion::life(url, line).await,
        #[cfg(feature = "all")]
        "smarthole" => smarthole::life(url, line).await,
        #[cfg(feature = "all")]
        "plugin" => plugin::life(url, line).await,
        #[cfg(feature = "all")]
        "acolyte" => acolyte::life(url, line).await,
        #[cfg(feature = "all")]
        "sse" => acolyte::sse(url, line).await,
        _ => Err(failed("there is no such life")),
    }
}
