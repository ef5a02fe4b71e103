//! [`StreamChat`]: the client's side of one chat over HTTP, without IO.

use std::collections::VecDeque;
use std::time::Duration;

use rpc_core::Instant;
use rpc_core::timers::later;
use rpc_core::{CloseReason, Delivery};

use super::{ChatUpdate, ClientConfig, Failure, Outcome, Warning};
use crate::error::RpcError;
use crate::event::Event;
use crate::http::{StreamDecoder, StreamError, StreamFrame};
use crate::tool_calls::ToolCalls;

/// The number of bytes of a refusal that are read.
const MAX_REFUSAL: usize = 4 * 1024;

/// One chat over HTTP, from the head of the response to its end: the counterpart of a
/// [`ClientConn`](super::ClientConn) for a transport that carries a single chat.
///
/// Feed it the response and take the updates, which are those of a chat over a WebSocket.
/// [`ChatUpdate::Ended`] is the last; the connection can be closed then. Closing it earlier is the
/// only way to abort: servers of this crate then stop the work, others go on.
///
/// ```
/// use std::time::Instant;
/// use acolyte_proto::client::{ChatUpdate, ClientConfig, StreamChat};
///
/// let now = Instant::now();
/// let mut chat = StreamChat::new(&ClientConfig::default(), now);
/// chat.handle_head(200, true, now);
/// chat.handle_bytes(b"data: {\"type\":\"error\",\"errorMessage\":\"no\"}\n\n", now);
/// assert_eq!(chat.poll_update(), Some(ChatUpdate::Started));
/// assert!(matches!(chat.poll_update(), Some(ChatUpdate::Ended(_))));
/// ```
pub struct StreamChat {
    decoder: StreamDecoder,
    tools: ToolCalls,
    updates: VecDeque<ChatUpdate>,
    phase: Phase,
    idle: Option<Duration>,
    /// When the chat has waited too long for its next frame.
    idle_until: Option<Instant>,
    /// The longest silence of a live server, which sends at least a comment about every 15 s.
    silence: Option<Duration>,
    silent_until: Option<Instant>,
}

enum Phase {
    Head,
    Frames,
    /// The status, and the body so far.
    Refusal(u16, Vec<u8>),
    Ended,
}

impl StreamChat {
    /// Creates a chat whose request was just sent.
    #[must_use]
    pub fn new(config: &ClientConfig, now: Instant) -> Self {
        let keep_alive = config.keep_alive;
        let silence = keep_alive.interval;
        let mut chat = Self {
            decoder: StreamDecoder::new(&config.limits),
            tools: ToolCalls::default(),
            updates: VecDeque::new(),
            phase: Phase::Head,
            idle: config.chat_idle_timeout,
            idle_until: None,
            silence: silence.map(|interval| interval.saturating_add(keep_alive.pong_timeout)),
            silent_until: None,
        };
        chat.touch(now);
        chat.lives(now);
        chat
    }

    /// Handles the head of the response: its status, and whether an event stream follows. The chat
    /// then runs, unless it is refused.
    pub fn handle_head(&mut self, status: u16, is_stream: bool, now: Instant) {
        if !matches!(self.phase, Phase::Head) {
            return;
        }
        self.touch(now);
        self.lives(now);
        if status == 200 && is_stream {
            self.phase = Phase::Frames;
            self.updates.push_back(ChatUpdate::Started);
        } else {
            self.phase = Phase::Refusal(status, Vec::new());
        }
    }

    /// Handles more of the response's body, in any chunks.
    pub fn handle_bytes(&mut self, mut bytes: &[u8], now: Instant) {
        self.touch(now);
        match &mut self.phase {
            Phase::Frames => {}
            Phase::Refusal(_, body) => {
                let room = MAX_REFUSAL.saturating_sub(body.len()).min(bytes.len());
                body.extend_from_slice(bytes.get(..room).unwrap_or_default());
                if room < bytes.len() {
                    self.handle_end(None);
                }
                return;
            }
            Phase::Head | Phase::Ended => return,
        }
        while matches!(self.phase, Phase::Frames)
            && let Some(frame) = self.decoder.decode(&mut bytes)
        {
            self.lives(now);
            match frame {
                Ok(frame) => self.on_frame(frame),
                Err(error) => self.on_bad_frame(error),
            }
        }
    }

    /// Handles the end of the response: regular, or for a reason.
    pub fn handle_end(&mut self, why: Option<CloseReason>) {
        let outcome = match &self.phase {
            Phase::Ended => return,
            Phase::Refusal(status, body) => {
                let words = String::from_utf8_lossy(body).trim().to_owned();
                let error = match status {
                    400 => RpcError::new(words),
                    status => RpcError::of_status(*status, words),
                };
                Outcome::Refused { error }
            }
            Phase::Head | Phase::Frames => {
                let reason = why.unwrap_or(CloseReason::Lost);
                self.closed(reason)
            }
        };
        self.end(outcome);
    }

    /// Gives the chat up: close the connection.
    pub fn abort(&mut self) {
        self.end(Outcome::Aborted { error: None });
    }

    /// Acts on deadlines at or before `now`. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_due = |until: Option<Instant>| until.is_some_and(|until| until <= now);
        if is_due(self.silent_until) {
            let after = self.silence.unwrap_or_default();
            let outcome = self.closed(CloseReason::KeepAlive { after });
            self.end(outcome);
        } else if is_due(self.idle_until) {
            let delivery = self.delivery();
            self.end(Outcome::TimedOut { delivery });
        }
    }

    /// Returns the next update, in order.
    pub fn poll_update(&mut self) -> Option<ChatUpdate> {
        self.updates.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.silent_until, self.idle_until];
        deadlines.into_iter().flatten().min()
    }

    /// Returns whether the chat has ended. Updates may still be queued.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended)
    }

    fn on_frame(&mut self, frame: StreamFrame) {
        match frame {
            StreamFrame::Done(reply) => self.end(Outcome::of_reply(reply)),
            StreamFrame::Error(error) => {
                self.end(Outcome::Failed(Failure::Server(Box::new(error))));
            }
            StreamFrame::Event(event) => self.on_event(event),
        }
    }

    fn on_event(&mut self, event: Event) {
        let warning = Warning::of_stray(&mut self.tools, &event);
        self.updates.extend(warning.map(ChatUpdate::Warning));
        self.updates.push_back(ChatUpdate::Event(event));
    }

    fn on_bad_frame(&mut self, error: StreamError) {
        let StreamError { error, terminal } = error;
        if terminal {
            self.end(Outcome::Failed(Failure::Unreadable(error)));
        } else {
            let warning = ChatUpdate::Warning(Warning::BadFrame(error));
            self.updates.push_back(warning);
        }
    }

    fn end(&mut self, outcome: Outcome) {
        if self.has_ended() {
            return;
        }
        self.phase = Phase::Ended;
        self.idle_until = None;
        self.silent_until = None;
        self.updates.push_back(ChatUpdate::Ended(outcome));
    }

    fn closed(&self, reason: CloseReason) -> Outcome {
        let delivery = self.delivery();
        Outcome::Closed { reason, delivery }
    }

    const fn delivery(&self) -> Delivery {
        match self.phase {
            Phase::Head => Delivery::Unknown,
            _ => Delivery::Delivered,
        }
    }

    /// Notes that bytes came, even a mere comment.
    fn touch(&mut self, now: Instant) {
        if !self.has_ended() {
            self.silent_until = self.silence.map(|silence| later(now, silence));
        }
    }

    /// Notes that the chat itself has progressed.
    fn lives(&mut self, now: Instant) {
        self.idle_until = self.idle.map(|idle| later(now, idle));
    }
}

rpc_core::debug_fields!([] StreamChat, this => {
    ended: this.has_ended(),
    updates: this.updates.len(),
});

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn started() -> (StreamChat, Instant) {
        let now = Instant::now();
        let mut chat = StreamChat::new(&ClientConfig::default(), now);
        chat.handle_head(200, true, now);
        assert_eq!(chat.poll_update(), Some(ChatUpdate::Started));
        (chat, now)
    }

    fn only(chat: &mut StreamChat) -> Outcome {
        let Some(ChatUpdate::Ended(outcome)) = chat.poll_update() else {
            panic!("no end")
        };
        assert!(chat.has_ended() && chat.poll_update().is_none());
        assert_eq!(chat.poll_timeout(), None);
        outcome
    }

    #[test]
    fn a_stream_ends_at_its_first_terminal_frame() {
        let (mut chat, now) = started();
        chat.handle_bytes(
            b"data: {\"type\":\"done\",\"reply\":{\"output\":\"o\",\"model\":\"m\"}}\n\n\
              data: {\"type\":\"text-delta\",\"text\":\"late\"}\n\n",
            now,
        );
        assert_eq!(only(&mut chat).reply().unwrap().output, "o");
        chat.handle_end(None);
        assert!(chat.poll_update().is_none());
    }

    #[test]
    fn a_truncated_stream_is_an_error() {
        let (mut chat, now) = started();
        chat.handle_bytes(
            b"data: {\"type\":\"text-delta\",\"text\":\"so far\"}\n\ndata: {",
            now,
        );
        chat.handle_end(None);
        assert!(matches!(chat.poll_update(), Some(ChatUpdate::Event(_))));
        let reason = CloseReason::Lost;
        let delivery = Delivery::Delivered;
        assert_eq!(only(&mut chat), Outcome::Closed { reason, delivery });
    }

    #[test]
    fn a_refusal_has_the_servers_message() {
        for (status, error) in [
            (400, RpcError::new("Invalid request shape")),
            (401, RpcError::of_status(401, "Invalid request shape")),
        ] {
            let now = Instant::now();
            let mut chat = StreamChat::new(&ClientConfig::default(), now);
            chat.handle_head(status, false, now);
            chat.handle_bytes(b"Invalid request", now);
            chat.handle_bytes(b" shape\n", now);
            chat.handle_end(None);
            assert_eq!(only(&mut chat), Outcome::Refused { error });
        }
        let now = Instant::now();
        let mut chat = StreamChat::new(&ClientConfig::default(), now);
        chat.handle_head(200, false, now);
        chat.handle_bytes(&[b'x'; 10_000], now);
        assert!(matches!(only(&mut chat), Outcome::Refused { .. }));
    }

    #[test]
    fn a_gateway_error_of_a_proxy_leaves_delivery_unknown() {
        for (status, may_have_run) in [
            (200, true),
            (400, false),
            (401, false),
            (404, false),
            (500, true),
            (502, true),
            (503, false),
            (504, true),
        ] {
            let now = Instant::now();
            let mut chat = StreamChat::new(&ClientConfig::default(), now);
            // A status that is not 200 is a refusal, even of the type of a stream.
            chat.handle_head(status, status != 200, now);
            chat.handle_end(None);
            assert_eq!(only(&mut chat).may_have_run(), may_have_run, "{status}");
        }
    }

    #[test]
    fn comments_keep_the_connection_alive_but_do_not_extend_the_chat() {
        let (mut chat, mut now) = started();
        for _ in 0..17 {
            now += 10 * SECOND;
            chat.handle_timeout(now);
            chat.handle_bytes(b":\n\n", now);
        }
        assert!(!chat.has_ended());
        now += 10 * SECOND;
        chat.handle_timeout(now);
        let delivery = Delivery::Delivered;
        assert_eq!(only(&mut chat), Outcome::TimedOut { delivery });
    }

    #[test]
    fn a_stream_without_comments_times_out() {
        let (mut chat, now) = started();
        assert_eq!(chat.poll_timeout(), Some(now + 55 * SECOND));
        chat.handle_timeout(now + 54 * SECOND);
        assert!(!chat.has_ended());
        chat.handle_timeout(now + 55 * SECOND);
        let outcome = only(&mut chat);
        assert!(
            matches!(
                outcome,
                Outcome::Closed {
                    reason: CloseReason::KeepAlive { .. },
                    ..
                }
            ),
            "{outcome:?}"
        );
    }

    #[test]
    fn an_abort_ends_the_stream_locally() {
        let (mut chat, _) = started();
        chat.abort();
        assert_eq!(only(&mut chat), Outcome::Aborted { error: None });
    }

    #[test]
    fn a_bad_frame_is_a_warning_and_a_bad_terminal_frame_an_error() {
        let (mut chat, now) = started();
        chat.handle_bytes(b"data: nope\n\ndata: {\"type\":\"done\"}\n\n", now);
        assert!(matches!(chat.poll_update(), Some(ChatUpdate::Warning(_))));
        assert!(matches!(
            only(&mut chat),
            Outcome::Failed(Failure::Unreadable(_))
        ));
    }

    #[test]
    fn a_result_without_its_call_is_reported() {
        let (mut chat, now) = started();
        let result =
            b"data: {\"type\":\"tool-result\",\"toolCallId\":\"c\",\"toolName\":\"t\"}\n\n";
        chat.handle_bytes(result, now);
        assert!(matches!(
            chat.poll_update(),
            Some(ChatUpdate::Warning(Warning::ToolWithoutCall { .. }))
        ));
        assert!(matches!(
            chat.poll_update(),
            Some(ChatUpdate::Event(Event::ToolResult(_)))
        ));
    }
}
