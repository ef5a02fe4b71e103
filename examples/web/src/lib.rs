//! The five clients for JavaScript: the module of the npm package that `bind` makes.
#![cfg(target_family = "wasm")]

mod acolyte;
mod connectonion;
mod exoclaw;
mod js;
mod smarthole;
mod snek;
mod stream;

use std::time::Duration;

use js::{Options, Outcome, Until};
use rpc_core::CloseReason;
use rpc_core::net::Connection;
use wasm_bindgen_futures::spawn_local;

/// The options that all clients have.
struct Common {
    until: Until,
    lazy: bool,
    insecure: bool,
    call_timeout: Option<Duration>,
}

impl Common {
    fn take(options: &Options) -> Outcome<Self> {
        Ok(Self {
            until: options.until()?,
            lazy: options.flag("lazy")?.unwrap_or(false),
            insecure: options.flag("insecure")?.unwrap_or(false),
            call_timeout: options.milliseconds("callTimeout")?,
        })
    }

    /// Connects, unless that may wait, and runs the connection.
    async fn start(&self, connection: Connection) -> Outcome<()> {
        let connection = match self.lazy {
            true => connection,
            false => self.until.wait(connection.establish()).await?,
        };
        run(connection);
        Ok(())
    }
}

/// Runs a connection. Its client says why it has ended.
fn run(connection: Connection) {
    spawn_local(async move {
        let _: CloseReason = connection.run().await;
    });
}

/// Makes the class of a client, and gives it what all clients have. It needs a method `event`, and its documentation
/// is in `npm/index.d.ts`.
macro_rules! client {
    ($Name:ident, $protocol:ident $(, $Kept:ty)?) => {
        #[wasm_bindgen]
        pub struct $Name {
            client: $protocol::net::Client,
            events: tokio::sync::Mutex<$protocol::net::Events>,
            $(kept: $Kept,)?
        }

        impl $Name {
            fn new(client: $protocol::net::Client, events: $protocol::net::Events) -> Self {
                let events = tokio::sync::Mutex::new(events);
                Self { client, events, $(kept: <$Kept>::default())? }
            }
        }

        #[wasm_bindgen]
        impl $Name {
            #[wasm_bindgen(js_name = nextEvent)]
            pub async fn next_event(&self) -> $crate::js::Outcome {
                use rpc_core::net::LinkEvent;
                let mut events = self.events.lock().await;
                let event = loop {
                    break match events.next_link().await {
                        Some(LinkEvent::Event(event)) => match self.event(event) {
                            Some(event) => Some(event?),
                            None => continue,
                        },
                        // Exact: nobody loses that many.
                        Some(LinkEvent::Lagged(count)) => {
                            Some($crate::js::object([("lagged", (count as f64).into())]))
                        }
                        Some(_) => continue,
                        None => None,
                    };
                };
                Ok($crate::stream::step(event))
            }

            /// The state of the connection.
            #[wasm_bindgen(getter)]
            pub fn state(&self) -> wasm_bindgen::JsValue {
                $crate::js::state(&self.client.state())
            }

            /// The state of the connection, and each that follows.
            pub fn states(&self) -> $crate::stream::Stream {
                $crate::stream::states(self.client.states())
            }

            /// Resolves once there is a connection; rejects if there will be none.
            pub async fn ready(
                &self,
                options: wasm_bindgen::JsValue,
            ) -> $crate::js::Outcome<()> {
                let until = $crate::js::Until::of(&options)?;
                until.wait(self.client.ready()).await.map(drop)
            }

            /// Resolves once the client has ended, with the reason.
            pub async fn closed(&self) -> wasm_bindgen::JsValue {
                $crate::js::Failure::from(self.client.closed().await).into()
            }

            /// Closes the connection for good. What is in flight fails.
            pub fn close(&self) {
                self.client.close();
            }

            /// Waits for what is in flight, at most this many milliseconds, and closes. Resolves with
            /// how many calls have finished, and how many have not.
            pub async fn drain(&self, timeout: f64) -> $crate::js::Outcome {
                let deadline = std::time::Duration::try_from_secs_f64(timeout / 1e3);
                let deadline = deadline.map_err(|why| $crate::js::Failure::invalid("timeout", why))?;
                let report = self.client.drain(deadline).await;
                let [finished, aborted] = [report.finished, report.aborted].map(Into::into);
                Ok($crate::js::object([("finished", finished), ("aborted", aborted)]))
            }
        }
    };
}
use client;
