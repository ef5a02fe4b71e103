//! The client's side of one connection: [`ClientConn`].
//!
//! ```text
//! (token sent) ─> AwaitHello ─ hello ─> Ready
//!                     │ refused, silence  │
//!                     └─────> Closed <────┘
//! ```

mod commands;
mod config;
mod event;
mod pending;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rpc_core::backlog::EventBacklog;
use rpc_core::decode::{DecodeError, DecodeErrorKind, RawJson, find_member};
use rpc_core::keepalive::Heart;
use rpc_core::timers::{TimerKind, Timers, later, sooner};
use rpc_core::{
    CallError, CallId, CloseFrame, CloseReason, Delivery, Disconnect, Incoming, Machine, Match,
    Outbox, Outgoing, PendingCalls,
};

use crate::error::{ErrorKind, RpcError, readable};
use crate::frame::{BorrowedEvent, Hello, ServerFrame, StreamEvent, Token};
use crate::id::UNREADABLE_ID;
use crate::limits::AUTH_FAILED_CODE;
use pending::{Kind, Pending};

pub use config::{ClientConfig, reconnect_policy};
pub use event::{Answer, ChatEvent, ChatSummary, ClientEvent};

/// How long is read after a long pause before requests time out again.
const CATCH_UP: Duration = Duration::from_secs(1);

/// What the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClientState {
    /// The gateway's hello.
    AwaitHello,
    /// Nothing: commands are taken.
    Ready,
    /// The connection has ended.
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Hello,
}

impl TimerKind for Timer {
    const ALL: &'static [Self] = &[Self::Hello];

    fn index(self) -> usize {
        self as usize
    }

    fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
        }
    }
}

/// How a request ends, whatever its kind.
type End = Result<Answer, CallError<RpcError>>;

/// The client's side of one open connection. It sends the token, if it has one, and takes commands
/// once the gateway has said hello.
///
/// A refused token ends it with [`CloseReason::Authentication`], which is never worth a new
/// connection: a refusal in the gateway's words, the close code 4001, a gateway that closes in order
/// before it said hello, and silence where no token was sent; the last two only if it has not let
/// the client in [before](Self::again). A line that is cut before the hello is
/// [`CloseReason::Lost`].
///
/// ```
/// use std::time::Instant;
/// use exoclaw_proto::client::{ClientConfig, ClientConn, ClientState};
/// use rpc_core::{Incoming, Machine};
///
/// let now = Instant::now();
/// let config = ClientConfig::new().with_token("secret");
/// let mut conn = ClientConn::new(config, 0x5eed, now);
/// let token = conn.poll_transmit(); // hand it to your socket
/// assert!(token.is_some());
/// conn.handle_message(Incoming::Text(r#"{"ok":true,"version":"0.1.0"}"#), now);
/// assert_eq!(conn.state(), ClientState::Ready);
/// ```
pub struct ClientConn {
    config: Arc<ClientConfig>,
    state: ClientState,
    calls: PendingCalls<Pending>,
    outbox: Outbox,
    events: EventBacklog<ClientEvent>,
    timers: Timers<Timer>,
    /// Since when nothing is read, because events are not taken.
    paused_at: Option<Instant>,
    /// Until then no request times out, because what has come meanwhile is still being read.
    catching_up: Option<Instant>,
    /// Beats from the hello on: known gateways take a ping before the token for a bad token.
    heart: Option<Heart>,
    /// An earlier connection was let in with the same configuration.
    let_in_before: bool,
    /// A token was sent that the gateway may not have wanted: it then calls it a bad request.
    token_echo: bool,
    closed: Option<CloseReason>,
    /// The end has been told to the application.
    told: bool,
    /// The line is gone, so what waits in the outbox was never sent.
    cut: bool,
    stray: u64,
}

impl ClientConn {
    /// A connection that was just opened. `seed` makes the request ids of this connection; it
    /// should be random.
    #[must_use]
    pub fn new(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let config = config.into();
        let mut conn = Self {
            state: ClientState::AwaitHello,
            calls: PendingCalls::new(seed, config.limits.max_pending, now),
            outbox: Outbox::new(&config.limits),
            events: EventBacklog::new(),
            timers: Timers::new(),
            paused_at: None,
            catching_up: None,
            heart: None,
            let_in_before: false,
            token_echo: config.token.is_some(),
            closed: None,
            told: false,
            cut: false,
            stray: 0,
            config,
        };
        let wait = match &conn.config.token {
            Some(_) => conn.config.hello_timeout,
            None => conn.config.tokenless_hello_timeout,
        };
        conn.timers.set(Timer::Hello, later(now, wait));
        conn.send_token();
        conn
    }

    /// As [`new`](Self::new), after an earlier connection with the same configuration was let in. The
    /// gateway has no wish for another token then, so only its word or the code 4001 are a refusal:
    /// silence, or a Close before the hello, is a fault that may pass.
    #[must_use]
    pub fn again(config: impl Into<Arc<ClientConfig>>, seed: u64, now: Instant) -> Self {
        let mut conn = Self::new(config, seed, now);
        conn.let_in_before = true;
        conn
    }

    /// What the connection waits for.
    #[must_use]
    pub const fn state(&self) -> ClientState {
        self.state
    }

    /// How many requests and chats are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.calls.len()
    }

    /// How many frames were dropped because they belong to nothing in flight: late frames of chats
    /// that were cancelled or have ended, answers to what nobody asked, a second hello.
    #[must_use]
    pub const fn stray_frames(&self) -> u64 {
        self.stray
    }

    /// When [`handle_timeout`](Machine::handle_timeout) is wanted next, and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        if self.closed.is_some() {
            return None;
        }
        let timer = self.timers.next_timeout();
        let beat = self.heart.as_ref().and_then(Heart::next_timeout);
        // What is awaited may have come and not been read, so no request ends meanwhile.
        let reads = self.wants_input();
        let call = self.calls.poll_timeout().filter(|_| reads);
        let call = call.max(call.and(self.catching_up));
        sooner(sooner(timer, beat), call.map(|at| (at, "call")))
    }

    fn send_token(&mut self) {
        let Some(token) = &self.config.token else {
            return;
        };
        if let Err(refused) = self.outbox.json(&Token::new(token.expose())) {
            // The token itself does not fit, so another attempt would end the same way.
            let message = format!("the token could not be sent: {refused}");
            self.shut(CloseReason::Authentication { message }, CloseFrame::NORMAL);
        }
    }

    fn on_text(&mut self, text: &str, now: Instant) {
        match ServerFrame::decode(text, &self.config.limits) {
            Ok(ServerFrame::Hello(hello)) => self.on_hello(hello, now),
            Ok(ServerFrame::AuthFailed { error, .. }) => self.refused(&error),
            Ok(ServerFrame::Result { id, result }) => self.on_result(&id, &result),
            Ok(ServerFrame::Error { id, error }) => self.on_error(id.as_deref(), &error),
            Ok(ServerFrame::Stream { id, event }) => self.on_step(&id, &event, text, now),
            Err(error) => self.on_bad_frame(error, text, now),
        }
    }

    fn on_hello(&mut self, hello: Hello<'_>, now: Instant) {
        if self.state != ClientState::AwaitHello {
            self.stray += 1;
            return;
        }
        self.state = ClientState::Ready;
        self.timers.stop(Timer::Hello);
        self.heart = Some(Heart::new(self.config.keep_alive, now));
        self.push(ClientEvent::Ready(hello.into_owned()));
    }

    fn on_result(&mut self, id: &str, result: &RawJson<'_>) {
        match self.take(id) {
            Some((id, pending)) => self.finish(id, pending, Ok(Answer::copied(result))),
            None => self.stray += 1,
        }
    }

    fn on_error(&mut self, id: Option<&str>, words: &str) {
        let Some(id) = id.filter(|id| *id != UNREADABLE_ID) else {
            return self.on_gateway_error(RpcError::new(words));
        };
        match self.take(id) {
            Some((id, pending)) => self.finish(id, pending, Err(remote(words))),
            None => self.stray += 1,
        }
    }

    fn on_gateway_error(&mut self, error: RpcError) {
        match error.kind() {
            ErrorKind::Authentication => self.refused(error.message()),
            ErrorKind::Parse if self.token_echo => self.token_echo = false,
            _ => self.push(ClientEvent::GatewayError(error)),
        }
    }

    fn on_step(&mut self, id: &str, event: &BorrowedEvent<'_>, text: &str, now: Instant) {
        let end = match event {
            StreamEvent::Done => Ok(Answer::default()),
            StreamEvent::Error(words) => Err(remote(words)),
            _ => return self.on_progress(id, event, text, now),
        };
        match self.take(id) {
            Some((id, pending)) => self.finish(id, pending, end),
            None => self.stray += 1,
        }
    }

    fn on_progress(&mut self, id: &str, event: &BorrowedEvent<'_>, text: &str, now: Instant) {
        let found = CallId::parse(id).and_then(|id| Some((id, self.calls.get_mut(id)?)));
        let Some((id, pending)) = found else {
            self.stray += 1;
            return;
        };
        let Kind::Chat(run) = &mut pending.kind else {
            self.stray += 1;
            return;
        };
        run.summary.add(event);
        let deadline = run.deadline(now);
        self.calls.extend(id, deadline);
        if let Some(event) = ChatEvent::copied(event, text) {
            self.push(ClientEvent::Chat { id, event });
        }
    }

    /// A frame that cannot be read still shows that its chat lives; and a chat that failed must not
    /// look like one that went well because the words are missing.
    fn on_bad_frame(&mut self, error: DecodeError, text: &str, now: Instant) {
        let readable_size = text.len() <= self.config.limits.max_message_bytes;
        let id = if readable_size {
            find_member(text, "id").and_then(RawJson::into_str)
        } else {
            None
        };
        self.push(ClientEvent::Warning(error));
        let Some(id) = id.and_then(|id| CallId::parse(&id)) else {
            return;
        };
        let Some(pending) = self.calls.get_mut(id) else {
            return;
        };
        let event = find_member(text, "event").and_then(RawJson::into_str);
        if event.as_deref() == Some("error") {
            let words = find_member(text, "data").map(readable).unwrap_or_default();
            if let Match::Live(pending) = self.calls.complete(id) {
                self.finish(id, pending, Err(remote(&words)));
            }
        } else if let Kind::Chat(run) = &pending.kind {
            let deadline = run.deadline(now);
            self.calls.extend(id, deadline);
        }
    }

    /// Takes a request in flight out.
    fn take(&mut self, id: &str) -> Option<(CallId, Pending)> {
        let id = CallId::parse(id)?;
        let pending = self.calls.complete(id).live()?;
        // Answers to requests come behind the one to the token.
        self.token_echo = false;
        Some((id, pending))
    }

    fn finish(&mut self, id: CallId, pending: Pending, end: End) {
        let event = ended(id, pending.kind, end);
        self.push(event);
    }

    fn push(&mut self, event: ClientEvent) {
        let weight = event.weight();
        self.events.push(event, weight);
    }

    /// Notes when reading stops and goes on.
    fn note_pause(&mut self, now: Instant) {
        if !self.wants_input() {
            self.paused_at.get_or_insert(now);
        } else if let Some(since) = self.paused_at.take() {
            let pause = now.saturating_duration_since(since);
            self.catching_up = Some(later(now, pause.min(CATCH_UP)));
        }
    }

    /// Whether what has come has been read, so that what is missing is late.
    fn is_up_to_date(&mut self, now: Instant) -> bool {
        self.note_pause(now);
        self.paused_at.is_none() && self.catching_up.is_none_or(|until| until <= now)
    }

    fn refused(&mut self, words: &str) {
        let message = words.to_owned();
        self.shut(CloseReason::Authentication { message }, CloseFrame::NORMAL);
    }

    /// Sends a Close and ends. What is queued still leaves before it.
    fn shut(&mut self, reason: CloseReason, code: u16) {
        let words = match &reason {
            CloseReason::Local | CloseReason::Authentication { .. } => String::new(),
            other => other.to_string(),
        };
        self.shut_with(reason, CloseFrame::new(code, words));
    }

    fn shut_with(&mut self, reason: CloseReason, frame: CloseFrame) {
        if self.closed.is_none() {
            self.outbox.close(frame);
            self.end(reason);
        }
    }

    /// Ends. What is in flight ends in [`poll_event`](Machine::poll_event), so that no number of
    /// requests needs room in the queue.
    fn end(&mut self, reason: CloseReason) {
        self.state = ClientState::Closed;
        self.closed = Some(reason);
        self.timers.stop_all();
        self.heart = None;
    }

    /// What the end of the line means. Known gateways refuse a token with a Close without a code,
    /// and their words may get lost.
    fn meaning(&self, why: Disconnect) -> CloseReason {
        let waiting = self.state == ClientState::AwaitHello && !self.let_in_before;
        let words = match &why {
            Disconnect::PeerClosed(None) if waiting => "",
            Disconnect::PeerClosed(Some(frame))
                if frame.code == AUTH_FAILED_CODE
                    || waiting && matches!(frame.code, CloseFrame::NORMAL | CloseFrame::POLICY) =>
            {
                &frame.reason
            }
            _ => return why.into(),
        };
        let message = match (words, &self.config.token) {
            ("", Some(_)) => "the gateway closed without a hello and probably refused the token",
            ("", None) => "the gateway closed without a hello and probably wants a token",
            (words, _) => words,
        };
        CloseReason::Authentication {
            message: message.to_owned(),
        }
    }

    fn no_hello(&mut self) {
        let reason = match &self.config.token {
            Some(_) => CloseReason::HandshakeTimeout {
                after: self.config.hello_timeout,
            },
            None if self.let_in_before => CloseReason::HandshakeTimeout {
                after: self.config.tokenless_hello_timeout,
            },
            None => {
                let after = self.config.tokenless_hello_timeout;
                let message = format!(
                    "the gateway said no hello within {after:?} and probably wants a token"
                );
                CloseReason::Authentication { message }
            }
        };
        self.shut(reason, CloseFrame::NORMAL);
    }

    fn delivery(&self, pending: &Pending) -> Delivery {
        if let Kind::Chat(run) = &pending.kind
            && run.summary.frames > 0
        {
            Delivery::Delivered
        } else if self.cut && !self.outbox.was_taken(pending.frame) {
            Delivery::NotSent
        } else {
            Delivery::Unknown
        }
    }
}

fn remote(words: &str) -> CallError<RpcError> {
    CallError::Remote(RpcError::new(words))
}

/// The event that ends a request.
fn ended(id: CallId, kind: Kind, end: End) -> ClientEvent {
    match kind {
        Kind::Unary => ClientEvent::Reply { id, result: end },
        Kind::Chat(run) => ClientEvent::ChatEnded {
            id,
            result: end.map(|_| run.summary),
        },
    }
}

impl Machine for ClientConn {
    type Event = ClientEvent;

    fn handle_message(&mut self, message: Incoming<'_>, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        if let Some(heart) = &mut self.heart {
            heart.heard();
        }
        self.note_pause(now);
        match message {
            Incoming::Text(text) => self.on_text(text, now),
            Incoming::Binary(_) => {
                let error = DecodeError::new(DecodeErrorKind::Binary);
                self.push(ClientEvent::Warning(error));
            }
            _ => {}
        }
        self.note_pause(now);
    }

    fn handle_disconnect(&mut self, why: Disconnect, _: Instant) {
        // Whatever is queued cannot leave any more.
        self.outbox.discard();
        if self.closed.is_none() {
            self.cut = true;
            let reason = self.meaning(why);
            self.end(reason);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        if self.timers.pop_expired(now).is_some() {
            return self.no_hello();
        }
        while self.is_up_to_date(now)
            && let Some((id, pending)) = self.calls.pop_expired(now)
        {
            let delivery = self.delivery(&pending);
            self.finish(id, pending, Err(CallError::TimedOut { delivery }));
        }
        // Known gateways answer a ping only between requests, so silence proves nothing then.
        let deaf = !self.wants_input() || !self.calls.is_empty();
        if let Some(heart) = &mut self.heart
            && let Some(gone) = heart.beat(now, deaf, &mut self.outbox)
        {
            self.shut(gone, CloseFrame::GOING_AWAY);
        }
    }

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.outbox.pop()
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.events.pop() {
            return Some(event);
        }
        let reason = self.closed.as_ref()?;
        if let Some((id, pending)) = self.calls.pop_any() {
            let delivery = self.delivery(&pending);
            let error = CallError::Closed {
                reason: reason.clone(),
                delivery,
            };
            return Some(ended(id, pending.kind, Err(error)));
        }
        if self.told {
            return None;
        }
        self.told = true;
        Some(ClientEvent::Closed(reason.clone()))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_timeout().map(|(at, _)| at)
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn wants_input(&self) -> bool {
        self.events.has_room(&self.config.limits)
    }
}

/// Prints where it stands, nothing of what it carries.
impl fmt::Debug for ClientConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConn")
            .field("state", &self.state)
            .field("in_flight", &self.calls.len())
            .field("events", &self.events.len())
            .finish_non_exhaustive()
    }
}
