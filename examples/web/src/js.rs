//! What Rust and JavaScript hand to each other: values, errors, options, deadlines.

use std::fmt::{Debug, Display};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use js_sys::{Function, JSON, Object, Promise, Reflect};
use rpc_core::net::time::{now, sleep_until};
use rpc_core::net::ws::ConnectError;
use rpc_core::net::{Direction, Frame, LinkConfig, LinkState, Observer};
use rpc_core::{CallError, CloseReason, Delivery, Instant, Json, Limits, Refused, Retry, json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use wasm_bindgen::prelude::{Closure, wasm_bindgen};
use wasm_bindgen::{JsCast as _, JsValue};
use wasm_bindgen_futures::spawn_local;

pub type Outcome<T = JsValue> = Result<T, Failure>;

/// An `Error` of JavaScript with `code`, `retryable` and `delivery`, or the reason of a signal.
#[derive(Clone, Debug)]
pub struct Failure(JsValue);

impl Failure {
    /// The variant of Rust's error that `kind` prints becomes the code: `NotReady` is `NOT_READY`.
    pub(crate) fn new(
        message: impl Display,
        kind: &impl Debug,
        retryable: bool,
        delivery: Delivery,
    ) -> Self {
        let error = js_sys::Error::new(&message.to_string());
        set(&error, "code", code(kind));
        set(&error, "retryable", retryable);
        set(&error, "delivery", code(&delivery));
        Self(error.into())
    }

    pub(crate) fn invalid(what: &'static str, why: impl Display) -> Self {
        Refused::invalid(what, why.to_string()).into()
    }
}

fn code(kind: &impl Debug) -> String {
    let mut code = String::new();
    let name = format!("{kind:?}");
    for letter in name.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !code.is_empty() {
            code.push('_');
        }
        code.push(letter.to_ascii_uppercase());
    }
    code
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let retryable = refused.is_retryable();
        Self::new(&refused, &refused, retryable, Delivery::NotSent)
    }
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        let retryable = reason.retry() != Retry::Never;
        Self::new(&reason, &reason, retryable, Delivery::NotSent)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Failed(reason) => reason.into(),
            ConnectError::Dial(error) => Self::new(&error, &error, false, Delivery::NotSent),
            error => Self::new(&error, &error, false, Delivery::NotSent),
        }
    }
}

impl<R: Remote> From<CallError<R>> for Failure {
    fn from(error: CallError<R>) -> Self {
        let (retryable, delivery) = (error.is_retryable(), error.delivery());
        match &error {
            CallError::Refused(refused) => refused.clone().into(),
            CallError::Closed { reason, .. } => Self::new(reason, reason, retryable, delivery),
            CallError::Remote(remote) => {
                let failure = Self::new(remote, &error, remote.is_retryable(), delivery);
                set(&failure.0, "detail", remote.detail());
                failure
            }
            _ => Self::new(&error, &error, retryable, delivery),
        }
    }
}

/// The error of a peer.
pub(crate) trait Remote: Debug + Display {
    /// Whether it says that the same call may succeed later.
    fn is_retryable(&self) -> bool {
        false
    }

    /// What it says beside its message.
    fn detail(&self) -> JsValue {
        JsValue::UNDEFINED
    }
}

/// A value in JavaScript.
pub(crate) fn write(value: &(impl Serialize + ?Sized)) -> Outcome {
    parse(Json::of(value)?.get())
}

pub(crate) fn parse(text: &str) -> Outcome {
    JSON::parse(text).map_err(Failure)
}

/// A value of JavaScript as the JSON that it would be sent as; nothing is `null`.
pub(crate) fn text(value: &JsValue) -> Outcome<String> {
    let text = JSON::stringify(value).map_err(Failure)?;
    Ok(text.as_string().unwrap_or_else(|| "null".to_owned()))
}

pub(crate) fn read<T: DeserializeOwned>(value: &JsValue, what: &'static str) -> Outcome<T> {
    json::parse(&text(value)?, &Limits::unlimited()).map_err(|error| Failure::invalid(what, error))
}

/// An object of JavaScript as JSON; nothing is an empty one.
pub(crate) fn members(value: JsValue, what: &'static str) -> Outcome<Json> {
    let is_absent = value.is_null_or_undefined();
    let value = if is_absent {
        Object::new().into()
    } else {
        value
    };
    read(&value, what)
}

pub(crate) fn set(object: &JsValue, name: &str, value: impl Into<JsValue>) {
    // Only a frozen object refuses, and these are new.
    let is_set = Reflect::set(object, &name.into(), &value.into());
    debug_assert!(is_set.is_ok(), "{name} is not set");
}

/// An object with these members.
pub(crate) fn object<const N: usize>(members: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in members {
        set(&object, name, value);
    }
    object.into()
}

/// The options of a call. Each is taken once, so that those which are left over have no meaning.
pub(crate) struct Options(Object);

impl Options {
    pub(crate) fn new(options: &JsValue) -> Self {
        Self(Object::assign(&Object::new(), options.unchecked_ref()))
    }

    pub(crate) fn take(&self, name: &str) -> Outcome<Option<JsValue>> {
        let value = Reflect::get(&self.0, &name.into()).map_err(Failure)?;
        Reflect::delete_property(&self.0, &name.into()).map_err(Failure)?;
        Ok((!value.is_null_or_undefined()).then_some(value))
    }

    pub(crate) fn flag(&self, name: &str) -> Outcome<Option<bool>> {
        Ok(self.take(name)?.map(|value| value.is_truthy()))
    }

    pub(crate) fn milliseconds(&self, name: &'static str) -> Outcome<Option<Duration>> {
        let Some(value) = self.take(name)? else {
            return Ok(None);
        };
        let seconds = value.as_f64().unwrap_or(f64::NAN) / 1e3;
        let duration = Duration::try_from_secs_f64(seconds);
        duration
            .map(Some)
            .map_err(|_| Failure::invalid(name, "not a number of milliseconds"))
    }

    pub(crate) fn until(&self) -> Outcome<Until> {
        let timeout = self.milliseconds("timeout")?;
        Ok(Until {
            at: timeout.and_then(|timeout| now().checked_add(timeout)),
            signal: self.take("signal")?.map(JsValue::unchecked_into),
        })
    }

    pub(crate) fn text(&self, name: &'static str) -> Outcome<Option<String>> {
        let value = self.take(name)?;
        value
            .map(|it| {
                it.as_string()
                    .ok_or_else(|| Failure::invalid(name, "not a text"))
            })
            .transpose()
    }

    pub(crate) fn required(&self, name: &'static str) -> Outcome<String> {
        self.text(name)?
            .ok_or_else(|| Failure::invalid(name, "it is missing"))
    }

    /// Takes the last option: `onframe` gets the frames of the link, without their secrets. One that is left over has no
    /// meaning, and is an error.
    pub(crate) fn watch(&self, link: &mut LinkConfig) -> Outcome<()> {
        let show = self.take("onframe")?;
        if let Some(left) = Object::keys(&self.0).iter().next() {
            let name = left.as_string().unwrap_or_default();
            return Err(Failure::invalid(
                "options",
                format_args!("there is no {name}"),
            ));
        }
        let Some(show) = show else {
            return Ok(());
        };
        let show = show.dyn_into::<Function>();
        let show = show.map_err(|_| Failure::invalid("onframe", "not a function"))?;
        // Frames are seen in the link's task, which is `Send`; the function is not.
        let (send, mut shown) = unbounded_channel::<(&str, String)>();
        spawn_local(async move {
            while let Some((direction, text)) = shown.recv().await {
                if let Err(error) = show.call2(&JsValue::NULL, &direction.into(), &text.into()) {
                    // Reported as what no one has caught.
                    drop(Promise::reject(&error));
                }
            }
        });
        link.driver.observer = Some(Arc::new(Frames(send)));
        Ok(())
    }
}

struct Frames(UnboundedSender<(&'static str, String)>);

impl Observer for Frames {
    fn frame(&self, frame: &Frame<'_>) {
        let direction = match frame.direction() {
            Direction::In => "in",
            _ => "out",
        };
        if let Some(text) = frame.text() {
            // Fails once the function has thrown.
            drop(self.0.send((direction, text.to_string())));
        }
    }
}

/// What ends a wait: the options `timeout` and `signal`.
pub(crate) struct Until {
    at: Option<Instant>,
    signal: Option<AbortSignal>,
}

impl Until {
    /// For ever.
    pub(crate) const NEVER: Self = Self {
        at: None,
        signal: None,
    };

    pub(crate) fn of(options: &JsValue) -> Outcome<Self> {
        Options::new(options).until()
    }

    /// Resolves at the end of the wait, with what it is then.
    pub(crate) async fn over(&self) -> Failure {
        let is_late = async {
            match self.at {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
            let late = CallError::<Refused>::TimedOut {
                delivery: Delivery::Unknown,
            };
            Failure::new(&late, &late, true, Delivery::Unknown)
        };
        let is_aborted = async {
            match &self.signal {
                Some(signal) => signal.aborts().await,
                None => pending().await,
            }
        };
        tokio::select! {
            reason = is_aborted => Failure(reason),
            late = is_late => late,
        }
    }

    pub(crate) async fn wait<T, E: Into<Failure>>(
        &self,
        what: impl Future<Output = Result<T, E>>,
    ) -> Outcome<T> {
        tokio::select! {
            biased;
            failure = self.over() => Err(failure),
            done = what => done.map_err(Into::into),
        }
    }
}

#[wasm_bindgen]
extern "C" {
    type AbortSignal;
    #[wasm_bindgen(method, getter)]
    fn aborted(this: &AbortSignal) -> bool;
    #[wasm_bindgen(method, getter)]
    fn reason(this: &AbortSignal) -> JsValue;
    #[wasm_bindgen(method, js_name = addEventListener)]
    fn listen(this: &AbortSignal, event: &str, listener: &Function);
    #[wasm_bindgen(method, js_name = removeEventListener)]
    fn forget(this: &AbortSignal, event: &str, listener: &Function);
}

impl AbortSignal {
    async fn aborts(&self) -> JsValue {
        if !self.aborted() {
            let (send, aborted) = oneshot::channel();
            let listener = Listener {
                signal: self,
                listener: Closure::once(move || drop(send)),
            };
            self.listen("abort", listener.function());
            // Nothing is sent: the other end goes.
            aborted.await.unwrap_or(());
        }
        self.reason()
    }
}

/// Listens until it is dropped, so that a signal of many calls does not collect their listeners.
struct Listener<'s> {
    signal: &'s AbortSignal,
    listener: Closure<dyn FnMut()>,
}

impl Listener<'_> {
    fn function(&self) -> &Function {
        self.listener.as_ref().unchecked_ref()
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.signal.forget("abort", self.function());
    }
}

/// The state of a link, as JavaScript gets it.
pub(crate) fn state(state: &LinkState) -> JsValue {
    let name = code(state).to_lowercase().replace('_', "-");
    let shown = object([("state", name.into())]);
    match state {
        LinkState::Connecting { attempt } => set(&shown, "attempt", *attempt),
        // Exact: no link connects that often.
        LinkState::Ready { generation } => set(&shown, "generation", *generation as f64),
        LinkState::Lost {
            cause, retry_in, ..
        } => {
            set(&shown, "error", Failure::from(cause.clone()));
            set(&shown, "retryIn", retry_in.as_secs_f64() * 1e3);
        }
        other => {
            if let Some(reason) = other.ended() {
                set(&shown, "error", Failure::from(reason.clone()));
            }
        }
    }
    shown
}
