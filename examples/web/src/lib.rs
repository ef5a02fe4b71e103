//! What the page's columns do: each is a client that sends what is typed, and shows its frames and states.
#![cfg(target_family = "wasm")]

mod clients;

use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;

use js_sys::Function;
use rpc_core::net::{Connection, Direction, Frame, LinkConfig, LinkState, Observer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::spawn_local;

type Outcome = Result<(), Box<dyn Error>>;

/// What is typed into a column, in order.
type Typed = UnboundedReceiver<String>;

/// Where a column connects to, and as whom.
struct Login {
    url: String,
    user: String,
    secret: String,
}

/// A client that runs. To drop it closes its connection.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session(UnboundedSender<String>);

#[wasm_bindgen]
impl Session {
    /// Starts a client of a protocol. `show` gets a kind (`in`, `out`, `state`, `answer` or `error`) and a text.
    #[wasm_bindgen(constructor)]
    pub fn new(protocol: String, url: &str, user: &str, secret: &str, show: Function) -> Session {
        let (send, typed) = unbounded_channel();
        let [url, user, secret] = [url, user, secret].map(str::to_owned);
        let login = Login { url, user, secret };
        let column = Column::new(show);
        spawn_local(async move {
            let column = &column;
            let ended = match &*protocol {
                "snek" => clients::snek(column, login, typed).await,
                "exoclaw" => clients::exoclaw(column, login, typed).await,
                "connectonion" => clients::connectonion(column, login, typed).await,
                "smarthole" => clients::smarthole(column, login, typed).await,
                "acolyte" => clients::acolyte(column, login, typed).await,
                other => Err(format!("there is no protocol {other}").into()),
            };
            if let Err(error) = ended {
                column.tell("error", error);
            }
        });
        Session(send)
    }

    /// Sends a text, once those before it are answered.
    pub fn send(&self, text: String) {
        // A client that has ended has said why.
        let _ = self.0.send(text);
    }
}

/// Passes on what a client does. Frames are seen in its task, which is `Send`; the page's function is not.
#[derive(Clone)]
struct Column(UnboundedSender<(&'static str, String)>);

impl Column {
    fn new(show: Function) -> Self {
        let (send, mut told) = unbounded_channel::<(&str, String)>();
        spawn_local(async move {
            while let Some((kind, text)) = told.recv().await {
                let _ = show.call2(&JsValue::NULL, &kind.into(), &text.into());
            }
        });
        Self(send)
    }

    fn tell(&self, kind: &'static str, text: impl Display) {
        // Fails only once nothing shows the column any more.
        let _ = self.0.send((kind, text.to_string()));
    }

    fn answer(&self, answer: Result<impl Display, impl Display>) {
        match answer {
            Ok(text) => self.tell("answer", text),
            Err(error) => self.tell("error", error),
        }
    }

    /// Shows the frames of a link.
    fn watch(&self, link: &mut LinkConfig) {
        link.driver.observer = Some(Arc::new(self.clone()));
    }

    /// Runs a connection, and shows its states.
    fn run(&self, connection: Connection, mut states: watch::Receiver<LinkState>) {
        let column = self.clone();
        spawn_local(async move { drop(connection.run().await) });
        spawn_local(async move {
            loop {
                let state = states.borrow_and_update().clone();
                column.tell("state", name(&state));
                if states.changed().await.is_err() {
                    break;
                }
            }
        });
    }
}

impl Observer for Column {
    fn frame(&self, frame: &Frame<'_>) {
        let is_in = frame.direction() == Direction::In;
        // Without its secrets.
        if let Some(text) = frame.text() {
            self.tell(if is_in { "in" } else { "out" }, text);
        }
    }
}

fn name(state: &LinkState) -> String {
    match state {
        LinkState::Ready { generation: 1 } => "connected".to_owned(),
        LinkState::Ready { .. } => "connected again".to_owned(),
        LinkState::Lost { cause, .. } => format!("lost: {cause}"),
        other => format!("{other:?}"),
    }
}
