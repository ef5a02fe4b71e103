//! Both machines on one line that loses frames.

use std::time::Duration;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent};
use exoclaw_proto::error::{ErrorKind, RpcError};
use exoclaw_proto::frame::{Call, ChatSend, Cleared, Method, SessionRef, StreamEvent, Usage};
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use rpc_core::testing::{Pair, Side};
use rpc_core::{CallError, CallId, CloseFrame, Instant, Machine as _};

use super::TOKEN;
use crate::calls::{Calls, State};
use crate::script::Script;

/// What the server knows of a request and says to it. Its place in the list is its name on the wire.
#[derive(Default)]
struct Asked {
    request: Option<RequestId>,
    is_chat: bool,
    /// It has ended it, well or not.
    answer: Option<bool>,
    /// Chunks of text on both ends.
    said: Vec<u8>,
    received: Vec<u8>,
}

struct Line {
    pair: Pair<ClientConn, ServerConn>,
    calls: Calls<CallId, usize>,
    asked: Vec<Asked>,
    /// Some frame was lost, or the line itself.
    lossy: bool,
}

/// Lets a client and a server talk. Every request ends once; without losses the client hears what
/// the server said, in order and whole; with losses it hears nothing else.
pub fn pair(data: &[u8]) {
    let (settings, mut script) = Script::with_settings(data);
    let now = Instant::now();
    let (mut client, mut auth) = (ClientConfig::default(), Auth::open());
    if settings & 1 == 1 {
        client.token = Some(TOKEN.into());
        auth = Auth::token(TOKEN).expect("a token");
    }
    let server = ServerConfig {
        in_order: settings & 2 == 2,
        max_requests: 6,
        extensions: Method::EXTENSIONS.to_vec(),
        ..ServerConfig::default()
    };
    let client = ClientConn::new(client, 0x5eed, now);
    let mut line = Line {
        pair: Pair::new(client, ServerConn::new(server, auth, now), now),
        calls: Calls::default(),
        asked: Vec::new(),
        lossy: false,
    };
    let latency = Duration::from_millis(u64::from(settings >> 4) * 100);
    line.pair.set_latency(latency);
    // Some scripts begin after the opening.
    if settings & 4 == 4 {
        line.pair.advance(Duration::from_secs(5));
    }
    while let Some(op) = script.byte() {
        line.operate(op, &mut script);
        line.pair.settle();
        line.look();
    }
    // An application that was slow goes on.
    line.pair.hold_events(Side::Client, false);
    line.pair.hold_events(Side::Server, false);
    line.pair.advance(Duration::from_secs(4));
    line.look();
    let (in_flight, open) = (line.pair.client.in_flight(), line.calls.open());
    assert_eq!(open, in_flight, "what waits is in flight");
    line.pair.cut();
    line.look();
    line.calls.assert_none_open();
    // A server with enough to do reads on later, and learns of the end then.
    let (client, server) = (&line.pair.client, &line.pair.server);
    let is_over = client.is_closed() && (server.is_closed() || !server.wants_input());
    assert!(is_over, "a cut ends both");
}

impl Line {
    fn operate(&mut self, op: u8, script: &mut Script<'_>) {
        let now = self.pair.now();
        let sides = [Side::Client, Side::Server];
        match op % 14 {
            what @ 0..=2 => {
                let (place, is_chat) = (self.asked.len(), what < 2);
                let client = &mut self.pair.client;
                let call = match is_chat {
                    true => client.chat_send(&ChatSend::new("c", place.to_string(), "hi"), now),
                    false => {
                        let session = SessionRef::new("c", place.to_string());
                        client.request(&Call::SessionClear(session), now)
                    }
                };
                if let Ok(id) = call {
                    self.calls.made(Some(id), place);
                    let asked = Asked::default();
                    self.asked.push(Asked { is_chat, ..asked });
                }
            }
            3..=5 => self.step(script),
            6 | 7 => self.answer(script, true),
            8 => self.answer(script, false),
            9 => self.calls.cancel(script, |id| self.pair.client.cancel(id)),
            10 => {
                let wait = u64::from(script.byte_or_zero());
                self.pair.advance(Duration::from_millis(wait * wait * 4));
            }
            11 => {
                self.lossy = true;
                let lost = usize::from(script.byte_or_zero() % 3) + 1;
                if let Some(side) = script.pick(&sides) {
                    self.pair.drop_next(*side, lost);
                }
            }
            12 => {
                if let Some(side) = script.pick(&sides) {
                    let hold = script.byte_or_zero() % 2 == 1;
                    self.pair.hold_events(*side, hold);
                }
            }
            _ => {
                let what = script.byte_or_zero();
                self.lossy |= what < 3;
                match what {
                    0 => self.pair.cut(),
                    1 => self.pair.client.close(now),
                    2 => {
                        let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "");
                        self.pair.server.close_with(frame, now);
                    }
                    3 => self.pair.inject(Side::Server, "{"),
                    _ => {
                        let latency = u64::from(script.byte_or_zero());
                        self.pair.set_latency(Duration::from_millis(latency));
                    }
                }
            }
        }
    }

    /// A request that the server works on.
    fn open(&mut self, script: &mut Script<'_>) -> Option<(usize, RequestId)> {
        let asked = self.asked.iter().enumerate();
        let open = asked.filter(|(_, it)| it.answer.is_none());
        let open: Vec<_> = open
            .filter_map(|(at, it)| Some((at, it.request?)))
            .collect();
        script.pick(&open).copied()
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let Some((at, id)) = self.open(script) else {
            return;
        };
        let server = &mut self.pair.server;
        match script.byte_or_zero() {
            0 => drop(server.event(id, &StreamEvent::Usage(Usage::new(1, 2)))),
            chunk if server.text(id, &chunk.to_string()).is_ok() => self.asked[at].said.push(chunk),
            _ => {}
        }
    }

    fn answer(&mut self, script: &mut Script<'_>, well: bool) {
        let Some((at, id)) = self.open(script) else {
            return;
        };
        let (server, asked) = (&mut self.pair.server, &mut self.asked[at]);
        let result = match (asked.is_chat, well) {
            (true, true) => server.done(id),
            (true, false) => server.error(id, "provider error: x"),
            (false, true) => server.reply(id, &cleared(at)),
            (false, false) => server.fail(id, &RpcError::provider("x")),
        };
        asked.answer = result.ok().map(|()| well);
    }

    /// Takes the events of both ends and compares.
    fn look(&mut self) {
        for event in self.pair.take_server_events() {
            let ServerEvent::Request { id, call } = event else {
                continue;
            };
            let (name, is_chat) = match &call {
                Call::ChatSend(chat) => (&chat.session.account, true),
                Call::SessionClear(session) => (&session.account, false),
                _ => panic!("nobody asked this"),
            };
            let at: usize = name.parse().expect("nobody asked this");
            let asked = &mut self.asked[at];
            let is_new = asked.is_chat == is_chat && asked.request.is_none();
            assert!(is_new, "a request came twice");
            asked.request = Some(id);
        }
        for event in self.pair.take_client_events() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Reply { id, result } => {
                let at = self.end(id);
                let value = self.well(at, result);
                let cleared = value.map(|value| value.parse::<Cleared>());
                let is_own = |cleared| cleared == Ok(self::cleared(at));
                assert!(cleared.is_none_or(is_own), "another's answer");
            }
            ClientEvent::Chat { id, event } => {
                let at = *self.calls.kind(id);
                self.calls.goes_on(id, &at);
                if let StreamEvent::Text(text) = event {
                    let chunk = text.parse().unwrap_or_default();
                    self.asked[at].received.push(chunk);
                }
            }
            ClientEvent::ChatEnded { id, result } => {
                let at = self.end(id);
                let is_done = self.well(at, result).is_some();
                let Asked { said, received, .. } = &self.asked[at];
                assert!(
                    !is_done || self.lossy || received == said,
                    "the text of a chat"
                );
                let mut said = said.iter();
                let in_order = received.iter().all(|it| said.any(|other| other == it));
                assert!(in_order, "a chunk that nobody said");
            }
            ClientEvent::Warning(error) => panic!("a frame of the server is bad: {error}"),
            _ => {}
        }
    }

    fn end(&mut self, id: CallId) -> usize {
        let before = self.calls.end(id, None);
        assert_eq!(before, State::Open, "the end of what was cancelled");
        *self.calls.kind(id)
    }

    /// What ends well or with an error was ended so; who loses frames may miss the error of a chat.
    fn well<T>(&self, at: usize, result: Result<T, CallError<RpcError>>) -> Option<T> {
        let Asked {
            answer, is_chat, ..
        } = &self.asked[at];
        match result {
            Ok(value) => {
                let is_lost = self.lossy && *is_chat && answer.is_some();
                assert!(*answer == Some(true) || is_lost, "nobody answered that");
                return Some(value);
            }
            Err(CallError::Remote(error)) => {
                assert_eq!(*answer, Some(false), "nobody failed that");
                assert_eq!(error.kind(), ErrorKind::Provider, "another's error");
            }
            Err(_) => {}
        }
        None
    }
}

fn cleared(at: usize) -> Cleared {
    Cleared {
        turns: at as u64,
        ..Cleared::default()
    }
}
