//! The rules of `Machine` for the server's end, and what it may say about a request.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use exoclaw_proto::auth::Auth;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::server::{RequestId, ServerConfig, ServerConn, ServerEvent};
use proptest::prelude::*;
use rpc_core::testing::conformance;
use rpc_core::{Incoming, Limits, Machine, Outgoing};
use serde_json::{Value, json};

use crate::harness::chat;

fn with_token() -> ServerConn {
    let (config, auth) = (ServerConfig::default(), Auth::token("s3cret").unwrap());
    ServerConn::new(config, auth, Instant::now())
}

fn nasty() -> Vec<String> {
    let mut nasty = conformance::nasty_texts();
    nasty.extend(
        [
            r#"{"token":"s3cret"}"#,
            r#"{"id":"1","method":"ping","params":[[[[]]]]}"#,
            r#"{"id":{},"method":"chat.send"}"#,
            r#"{"id":"1","method":"chat.send","params":{"channel":{},"channel":[]}}"#,
            r#"["1","chat.send",["c","a",null,"x"]]"#,
            r#"{"id":-0.0,"method":"status"}"#,
            r#"{"id":"1","method":"plugin.load","params":{"name":1}}"#,
        ]
        .map(str::to_owned),
    );
    nasty
}

#[test]
fn the_server_machine_conforms() {
    let nasty = nasty();
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let now = Instant::now();
    for in_order in [false, true] {
        let config = ServerConfig {
            in_order,
            ..ServerConfig::default()
        };
        for mut conn in [ServerConn::new(config, Auth::open(), now), with_token()] {
            conformance::early_timeout_is_a_no_op(&mut conn, now);
            conformance::any_text_is_survived(&mut conn, &texts, now);
            conformance::timeouts_make_progress(&mut conn, 10);
            conformance::closed_is_inert(&mut conn, &texts, now);
        }
        let mut conn = with_token();
        conformance::timeouts_make_progress(&mut conn, 10);
        assert!(conn.is_closed());
        conformance::closed_is_inert(&mut conn, &texts, now);
    }
}

/// What happens to a connection, by the wire and by the application.
#[derive(Clone, Debug)]
enum Step {
    Chat,
    Ping,
    Status,
    Bad,
    /// Of the open requests, the one with this index.
    Text(usize),
    End(usize),
    Error(usize),
    Fail(usize),
    Forget(usize),
    Send(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Chat),
        Just(Step::Ping),
        Just(Step::Status),
        Just(Step::Bad),
        (0..8_usize).prop_map(Step::Text),
        (0..8_usize).prop_map(Step::End),
        (0..8_usize).prop_map(Step::Error),
        (0..8_usize).prop_map(Step::Fail),
        (0..8_usize).prop_map(Step::Forget),
        (1..4_usize).prop_map(Step::Send),
    ]
}

/// What the client has been told about one id.
#[derive(Default)]
struct Seen {
    begun: bool,
    error: bool,
    ended: bool,
}

#[derive(Default)]
struct Replies {
    seen: HashMap<String, Seen>,
    order: Vec<String>,
}

impl Replies {
    fn note(&mut self, text: &str) {
        let frame: Value = serde_json::from_str(text).unwrap();
        let Some(id) = frame["id"].as_str().filter(|id| *id != "0") else {
            return;
        };
        let seen = self.seen.entry(id.to_owned()).or_default();
        assert!(!seen.ended, "behind its end: {text}");
        match frame["event"].as_str() {
            Some("done") => seen.ended = true,
            Some("error") => {
                assert!(!seen.error);
                seen.error = true;
            }
            Some(_) => {
                assert!(!seen.error, "behind its error: {text}");
                seen.begun = true;
            }
            None => {
                assert!(!seen.begun && !seen.error, "a response to a stream: {text}");
                seen.ended = true;
            }
        }
        if seen.ended {
            self.order.push(id.to_owned());
        }
    }
}

proptest! {
    #[test]
    fn no_frame_follows_the_end_of_a_request(
        steps in prop::collection::vec(step(), 0..80),
        in_order in any::<bool>(),
        frames in 8..40_usize,
    ) {
        let limits = Limits { max_outbox_frames: frames, ..Limits::default() };
        let config = ServerConfig {
limits,
in_order,
..ServerConfig::default()
};
        let now = Instant::now();
        let mut conn = ServerConn::new(config, Auth::open(), now);
        let (mut open, mut book): (Vec<(String, RequestId)>, Replies) = Default::default();
        let mut asked: Vec<String> = Vec::new();
        let mut forgotten = Vec::new();
        let mut waiting = std::collections::VecDeque::new();
        let drain = |conn: &mut ServerConn, most: usize, book: &mut Replies| {
            for _ in 0..most {
                if let Some(Outgoing::Text(text)) = conn.poll_transmit() {
                    book.note(text.as_str());
                }
            }
        };
        drain(&mut conn, 1, &mut book);
        for step in steps.into_iter().chain(std::iter::once(Step::Send(1_000))) {
            let id = asked.len().to_string();
            let say = |conn: &mut ServerConn, text: &str| {
                conn.handle_message(Incoming::Text(text), now);
            };
            let at = |index: usize| open.get(index % open.len().max(1)).map(|(_, id)| *id);
            match step {
                Step::Chat => {
                    say(&mut conn, &chat(&id, "x"));
                    waiting.push_back(id.clone());
                    asked.push(id);
                }
                Step::Status => {
                    say(&mut conn, &json!({"id": id, "method": "status"}).to_string());
                    waiting.push_back(id.clone());
                    asked.push(id);
                }
                Step::Ping => {
                    say(&mut conn, &json!({"id": id, "method": "ping"}).to_string());
                    asked.push(id);
                }
                Step::Bad => say(&mut conn, "bad"),
                Step::Text(index) => { at(index).map(|id| conn.text(id, "x")); }
                Step::End(index) => {
                    if let Some(id) = at(index) && conn.done(id).is_err() {
                        let _ = conn.reply(id, &1);
                    }
                }
                Step::Error(index) => { at(index).map(|id| conn.error(id, "x")); }
                Step::Fail(index) => { at(index).map(|id| conn.fail(id, &RpcError::new("x"))); }
                Step::Forget(index) => {
                    if let Some(id) = at(index) {
                        conn.forget(id);
                        forgotten.extend(open.iter().filter(|o| o.1 == id).map(|o| o.0.clone()));
                    }
                }
                Step::Send(most) => drain(&mut conn, most, &mut book),
            }
            while let Some(event) = conn.poll_event() {
                if let ServerEvent::Request { id, .. } = event {
                    let name = waiting.pop_front().unwrap();
                    // Forgetting succeeds only for one that is still open.
                    let alone = !in_order || open.iter().all(|(_, id)| !conn.forget(*id));
                    prop_assert!(alone, "two at a time");
                    open.push((name, id));
                }
            }
        }
        if in_order && !conn.is_closed() {
            let asked: Vec<_> = asked.into_iter().filter(|id| book.order.contains(id)).collect();
            prop_assert_eq!(&book.order, &asked);
        }
        conn.handle_timeout(now + Duration::from_secs(1));
    }
}
