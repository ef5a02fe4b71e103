//! [`Stream`]: what comes piece by piece, as an async iterator of JavaScript.

use std::mem;

use rpc_core::Refused;
use rpc_core::net::LinkState;
use tokio::sync::{Mutex, Notify, watch};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen_futures::spawn_local;

use super::js::{Failure, Outcome, Until, object, state};
use super::{acolyte, connectonion, exoclaw};

/// Where the pieces of a [`Stream`] come from.
#[expect(clippy::large_enum_variant, reason = "there is one in each stream")]
pub(crate) enum Source {
    /// `None` once it was aborted.
    Exoclaw(Option<exoclaw_proto::net::Chat>),
    ConnectOnion(
        connectonion_proto::net::Run,
        connectonion_proto::net::Client,
    ),
    Acolyte(acolyte_proto::net::Chat),
    /// The states of a link, and whether the present one was shown.
    States(watch::Receiver<LinkState>, bool),
}

impl Source {
    async fn next(&mut self) -> Option<Outcome> {
        match self {
            Self::Exoclaw(chat) => exoclaw::next(chat).await,
            Self::ConnectOnion(run, _) => connectonion::next(run).await,
            Self::Acolyte(chat) => acolyte::next(chat).await,
            Self::States(states, is_begun) => Some(Ok(next_state(states, is_begun).await?)),
        }
    }

    /// Takes what is left, and gives what comes of it.
    async fn result(&mut self) -> Outcome {
        match self {
            Self::Exoclaw(chat) => exoclaw::result(chat).await,
            Self::ConnectOnion(run, _) => connectonion::result(run).await,
            Self::Acolyte(chat) => acolyte::result(chat).await,
            Self::States(..) => Ok(JsValue::UNDEFINED),
        }
    }

    /// Ends the work at the peer, if the protocol can.
    async fn abort(&mut self) -> Outcome<()> {
        match self {
            Self::Exoclaw(chat) => *chat = None,
            Self::ConnectOnion(run, client) => connectonion::stop(run, client).await?,
            Self::Acolyte(chat) if chat.outcome().is_none() => drop(chat.abort().await?),
            Self::Acolyte(_) | Self::States(..) => {}
        }
        Ok(())
    }
}

/// The present state of a link, and those that follow.
pub(crate) fn states(states: watch::Receiver<LinkState>) -> Stream {
    Stream::new(Source::States(states, false), Until::NEVER)
}

async fn next_state(
    states: &mut watch::Receiver<LinkState>,
    is_begun: &mut bool,
) -> Option<JsValue> {
    if mem::replace(is_begun, true) && states.changed().await.is_err() {
        return None;
    }
    Some(state(&states.borrow_and_update()))
}

#[wasm_bindgen]
pub struct Stream {
    /// An error once nobody wants more.
    source: Mutex<Outcome<Source>>,
    /// Aborts while the source is waited for.
    abort: Notify,
    until: Until,
}

impl Stream {
    pub(crate) fn new(source: Source, until: Until) -> Self {
        Self {
            source: Mutex::new(Ok(source)),
            abort: Notify::new(),
            until,
        }
    }

    async fn drive<T>(&self, mut step: impl AsyncFnMut(&mut Source) -> T) -> Outcome<T> {
        let mut slot = self.source.lock().await;
        let failure = loop {
            let source = slot.as_mut().map_err(|failure| failure.clone())?;
            tokio::select! {
                biased;
                failure = self.until.over() => break failure,
                () = self.abort.notified() => source.abort().await?,
                done = step(source) => return Ok(done),
            }
        };
        if let Ok(mut source) = mem::replace(&mut *slot, Err(failure.clone())) {
            // The stream ends now, whatever the peer answers.
            spawn_local(async move { drop(source.abort().await) });
        }
        Err(failure)
    }
}

/// One step of an iterator.
pub(crate) fn step(item: Option<JsValue>) -> JsValue {
    let done = item.is_none().into();
    object([("done", done), ("value", item.unwrap_or_default())])
}

#[wasm_bindgen]
impl Stream {
    pub async fn next(&self) -> Outcome {
        // After an error nothing more comes.
        if matches!(self.source.try_lock().as_deref(), Ok(Err(_))) {
            return Ok(step(None));
        }
        let item = self.drive(async |source| source.next().await).await?;
        item.transpose().map(step)
    }

    #[wasm_bindgen(js_name = return)]
    pub async fn leave(&self) -> JsValue {
        *self.source.lock().await = Err(Failure::from(Refused::Closed));
        step(None)
    }

    pub async fn result(&self) -> Outcome {
        self.drive(async |source| source.result().await).await?
    }

    pub async fn abort(&self) -> Outcome<()> {
        match self.source.try_lock().as_deref_mut() {
            Ok(Ok(source)) => source.abort().await?,
            Ok(Err(_)) => {}
            Err(_) => self.abort.notify_one(),
        }
        Ok(())
    }
}
