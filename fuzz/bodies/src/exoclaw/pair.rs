//! Both machines on one line that loses frames.

use std::time::Duration;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent};
use exoclaw_proto::error::{ErrorKind, RpcError};
use exoclaw_proto::frame::{Call, ChatSend, Cleared, Method, SessionRef, StreamEvent, Usage};
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use rpc_core::testing::{Pair, Side};
use rpc_core::{CallError, CallId, CloseFrame, Instant, Machine};

use super::TOKEN;
use crate::script::Script;

/// Words that a chat fails with.
const FAILURE: &str = "provider error: x";

/// A request, as both ends see it. Its place in the list is its name on the wire.
#[derive(Default)]
struct Pending {
    id: Option<CallId>,
    request: Option<RequestId>,
    is_chat: bool,
    /// The client let go of it.
    cancelled: bool,
    /// The client was told its end.
    ended: bool,
    /// The server has ended it, well or not.
    answer: Option<bool>,
    /// Chunks of text on both ends.
    said: Vec<u8>,
    heard: Vec<u8>,
}

struct Harness {
    pair: Pair<ClientConn, ServerConn>,
    asked: Vec<Pending>,
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
        auth = Auth::token(TOKEN).unwrap_or_else(|_| Auth::open());
    }
    let mut server = ServerConfig::new(auth);
    server.in_order = settings & 2 == 2;
    server.max_requests = 6;
    server.extensions = Method::EXTENSIONS.to_vec();
    let mut line = Harness {
        pair: Pair::new(
            ClientConn::new(client, 0x5eed, now),
            ServerConn::new(server, now),
            now,
        ),
        asked: Vec::new(),
        lossy: false,
    };
    line.pair
        .set_latency(Duration::from_millis(u64::from(settings >> 4) * 100));
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
    let in_flight = line.pair.client.in_flight();
    let waiting = line.asked.iter().filter(|it| !it.ended && !it.cancelled);
    assert_eq!(waiting.count(), in_flight, "what waits is in flight");
    line.pair.cut();
    line.look();
    assert!(
        line.asked.iter().all(|it| it.ended || it.cancelled),
        "every request ends"
    );
    // A server with enough to do reads on later, and learns of the end then.
    let (client, server) = (&line.pair.client, &line.pair.server);
    assert!(
        client.is_closed() && (server.is_closed() || !server.wants_input()),
        "a cut ends both"
    );
}

impl Harness {
    fn operate(&mut self, op: u8, script: &mut Script<'_>) {
        let now = self.pair.now();
        match op % 14 {
            0 | 1 => {
                let name = self.asked.len().to_string();
                let chat = ChatSend::new("c", name.as_str(), "hi");
                if let Ok(id) = self.pair.client.chat_send(&chat, now) {
                    self.ask(id, true);
                }
            }
            2 => {
                let name = self.asked.len().to_string();
                let session = SessionRef::new("c", name.as_str());
                if let Ok(id) = self.pair.client.request(&Call::SessionClear(session), now) {
                    self.ask(id, false);
                }
            }
            3..=5 => self.step(script),
            6 | 7 => self.answer(script, true),
            8 => self.answer(script, false),
            9 => {
                let at = usize::from(script.byte_or_zero()).checked_rem(self.asked.len());
                if let Some(asked) = at.and_then(|at| self.asked.get_mut(at))
                    && let Some(id) = asked.id
                {
                    let was_over = asked.ended || asked.cancelled;
                    let cancelled = self.pair.client.cancel(id);
                    assert!(!(was_over && cancelled), "what is over was cancelled");
                    asked.cancelled |= cancelled;
                }
            }
            10 => {
                let wait = u64::from(script.byte_or_zero());
                self.pair.advance(Duration::from_millis(wait * wait * 4));
            }
            11 => {
                self.lossy = true;
                let side = [Side::Client, Side::Server];
                let lost = usize::from(script.byte_or_zero() % 3) + 1;
                if let Some(side) = script.pick(&side) {
                    self.pair.drop_next(*side, lost);
                }
            }
            12 => {
                let side = [Side::Client, Side::Server];
                if let Some(side) = script.pick(&side) {
                    let hold = script.byte_or_zero() % 2 == 1;
                    self.pair.hold_events(*side, hold);
                }
            }
            _ => match script.byte_or_zero() {
                0 => {
                    self.lossy = true;
                    self.pair.cut();
                }
                1 => {
                    self.lossy = true;
                    self.pair.client.close(now);
                }
                2 => {
                    self.lossy = true;
                    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "");
                    self.pair.server.close_with(frame, now);
                }
                3 => self.pair.inject(Side::Server, "{"),
                _ => {
                    let at = Duration::from_millis(u64::from(script.byte_or_zero()));
                    self.pair.set_latency(at);
                }
            },
        }
    }

    fn ask(&mut self, id: CallId, is_chat: bool) {
        self.asked.push(Pending {
            id: Some(id),
            is_chat,
            ..Pending::default()
        });
    }

    /// A request that the server works on.
    fn open(&self, script: &mut Script<'_>) -> Option<(usize, RequestId)> {
        let open =
            |(at, it): (usize, &Pending)| Some((at, it.request?)).filter(|_| it.answer.is_none());
        let open: Vec<_> = self.asked.iter().enumerate().filter_map(open).collect();
        script.pick(&open).copied()
    }

    fn step(&mut self, script: &mut Script<'_>) {
        let Some((at, id)) = self.open(script) else {
            return;
        };
        let chunk = script.byte_or_zero();
        let result = if chunk == 0 {
            self.pair
                .server
                .event(id, &StreamEvent::Usage(Usage::new(1, 2)))
        } else {
            self.pair.server.text(id, &chunk.to_string())
        };
        if result.is_ok() && chunk != 0 {
            self.asked[at].said.push(chunk);
        }
    }

    fn answer(&mut self, script: &mut Script<'_>, well: bool) {
        let Some((at, id)) = self.open(script) else {
            return;
        };
        let server = &mut self.pair.server;
        let asked = &mut self.asked[at];
        let result = match (asked.is_chat, well) {
            (true, true) => server.done(id),
            (true, false) => server.error(id, FAILURE),
            (false, true) => server.reply(id, &Cleared { turns: at as u64 }),
            (false, false) => server.fail(id, &RpcError::provider("x")),
        };
        if result.is_ok() {
            asked.answer = Some(well);
        }
    }

    /// Takes the events of both ends and compares.
    fn look(&mut self) {
        for event in self.pair.take_server_events() {
            if let ServerEvent::Request { id, call } = event {
                self.on_request(id, &call);
            }
        }
        for event in self.pair.take_client_events() {
            self.on_event(event);
        }
    }

    fn on_request(&mut self, id: RequestId, call: &Call) {
        let (name, is_chat) = match call {
            Call::ChatSend(chat) => (&chat.session.account, true),
            Call::SessionClear(session) => (&session.account, false),
            _ => panic!("nobody asked this"),
        };
        let at = name.parse::<usize>().ok();
        let Some(asked) = at.and_then(|at| self.asked.get_mut(at)) else {
            panic!("nobody asked this")
        };
        assert!(
            asked.is_chat == is_chat && asked.request.is_none(),
            "a request came twice"
        );
        asked.request = Some(id);
    }

    fn on_event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Reply { id, result } => {
                let (at, asked) = self.end(id);
                match result {
                    Ok(answer) => {
                        assert_eq!(asked.answer, Some(true), "nobody answered that");
                        let cleared = answer.parse::<Cleared>();
                        assert_eq!(
                            cleared,
                            Ok(Cleared { turns: at as u64 }),
                            "another's answer"
                        );
                    }
                    Err(error) => failed(asked, &error),
                }
            }
            ClientEvent::Chat { id, event } => {
                let (_, asked) = self.find(id);
                assert!(!asked.ended, "a step after the end");
                if let StreamEvent::Text(text) = event {
                    asked.heard.push(text.parse().unwrap_or_default());
                }
            }
            ClientEvent::ChatEnded { id, result } => {
                let lossy = self.lossy;
                let (_, asked) = self.end(id);
                match result {
                    Ok(_) => {
                        assert!(
                            asked.answer == Some(true) || (lossy && asked.answer.is_some()),
                            "nobody ended that"
                        );
                        if !lossy {
                            assert_eq!(asked.heard, asked.said, "the text of a chat");
                        }
                    }
                    Err(error) => failed(asked, &error),
                }
                let mut said = asked.said.iter();
                assert!(
                    asked.heard.iter().all(|it| said.any(|other| other == it)),
                    "a chunk that nobody said"
                );
            }
            ClientEvent::Warning(error) => panic!("a frame of the server is bad: {error}"),
            _ => {}
        }
    }

    fn find(&mut self, id: CallId) -> (usize, &mut Pending) {
        let mut asked = self.asked.iter_mut().enumerate();
        match asked.find(|(_, asked)| asked.id == Some(id)) {
            Some(found) => found,
            None => panic!("an answer that nobody asked for"),
        }
    }

    fn end(&mut self, id: CallId) -> (usize, &mut Pending) {
        let (at, asked) = self.find(id);
        assert!(!asked.ended && !asked.cancelled, "it ended twice");
        asked.ended = true;
        (at, asked)
    }
}

fn failed(asked: &Pending, error: &CallError<RpcError>) {
    if let CallError::Remote(error) = error {
        assert_eq!(asked.answer, Some(false), "nobody failed that");
        assert_eq!(error.kind(), ErrorKind::Provider, "another's error");
    }
}
