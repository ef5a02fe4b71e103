//! Bodies of the fuzz targets: any bytes go in, and the rules of frames and machines must hold.
#![allow(clippy::panic, reason = "a broken rule has to stop the fuzzer")]

mod pure;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rpc_core::fuzzing::{Script, assert_inert, fire};
use rpc_core::{CallId, Disconnect, Incoming, Limits, Machine, Outgoing, Text};

use crate::client::{ClientConfig, ClientConn, ClientEvent};
use crate::codec;
use crate::frame::{ClientFrame, Final, ServerFrame, User};
use crate::id::WireId;
use crate::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

pub use pure::{image_urls, sanitize, toolloop};

/// Decoding, encoding and decoding again gives the same request.
pub fn client_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = Limits::default();
    let Ok(frame) = ClientFrame::decode(text, &limits) else {
        return;
    };
    let _ = frame.call();
    let Ok(again) = codec::encode(&frame) else {
        panic!("a decoded frame must encode")
    };
    match ClientFrame::decode(again.as_str(), &limits) {
        Ok(decoded) => assert!(decoded == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
}

/// Decoding, encoding and decoding again gives the same frame.
pub fn server_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = Limits::default();
    let Ok(frame) = ServerFrame::decode(text, &limits) else {
        return;
    };
    let strict = ServerFrame::decode_strict(text, &limits);
    let _ = (
        frame.clone().into_event(),
        strict.map(ServerFrame::into_event),
    );
    if let Ok(answer) = frame.clone().into_login_result() {
        let _ = answer.extra("username");
    }
    let Ok(again) = codec::encode(&frame) else {
        panic!("a decoded frame must encode")
    };
    match ServerFrame::decode(again.as_str(), &limits) {
        Ok(decoded) => assert!(decoded == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
}

fn small() -> Limits {
    Limits::default()
        .with_max_message_bytes(4096)
        .with_max_pending(4)
        .with_max_outbox_frames(4)
        .with_max_events(4)
}

/// After the end nothing comes out, whatever goes in.
fn inert<M: Machine>(machine: &mut M, now: Instant) {
    assert_inert(
        machine,
        now,
        &[r#"{"event":"x","method":"ping","callId":1}"#],
    );
}

/// Runs a client through operations. Every call must end exactly once.
pub fn client_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let config = ClientConfig::new("mybot", "mypassword").with_limits(small());
    let mut conn = ClientConn::new(config, 0x5eed, now);
    let mut open = HashSet::new();
    let mut ids: Vec<String> = Vec::new();
    let mut held = 0;
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            held = drain_client(&mut conn, &mut open, &mut ids);
        } else {
            held += 1;
        }
        match op % 12 {
            0 => conn.handle_message(Incoming::Text(script.text()), now),
            1 => {
                let data = script.text();
                let id = script.pick(&ids).cloned().unwrap_or_default();
                let text = format!(r#"{{"callId":"{id}","data":{data}}}"#);
                conn.handle_message(Incoming::Text(&text), now);
            }
            2..=4 => {
                // The answer that the opening waits for, most of the time.
                let id = ids.last().cloned().unwrap_or_default();
                let data = [
                    "{}",
                    r#"{"username":"mybot","nick":"MyBot"}"#,
                    r#"[{"uid":"ch1"}]"#,
                ];
                let data = data
                    .get(usize::from(op % 12 - 2))
                    .copied()
                    .unwrap_or_default();
                let text = format!(r#"{{"callId":"{id}","data":{data}}}"#);
                conn.handle_message(Incoming::Text(&text), now);
            }
            5 | 6 => {
                if let Ok(id) = conn.send_message("ch1", script.text(), Final::No, now) {
                    assert!(open.insert(id), "a call id was given twice");
                }
            }
            7 => {
                let picked: Vec<CallId> = open.iter().copied().collect();
                if let Some(id) = script.pick(&picked)
                    && conn.cancel(*id)
                {
                    open.remove(id);
                }
            }
            8 => {
                let wait = Duration::from_secs(u64::from(script.byte().unwrap_or_default()));
                fire(&mut conn, &mut now, wait);
            }
            9 => conn.handle_timeout(now),
            10 => {
                let _ = conn.set_typing(script.text(), "#FF0000");
                conn.handle_message(Incoming::Pong(b""), now);
            }
            _ => match script.byte().unwrap_or_default() {
                0 => conn.close(now),
                1 => conn.handle_disconnect(Disconnect::Eof, now),
                _ => conn.handle_message(Incoming::Binary(data), now),
            },
        }
        assert!(held < 10_000, "the script is bounded");
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    drain_client(&mut conn, &mut open, &mut ids);
    assert!(open.is_empty(), "every call must have ended");
    inert(&mut conn, now);
}

fn drain_client(conn: &mut ClientConn, open: &mut HashSet<CallId>, ids: &mut Vec<String>) -> usize {
    while let Some(frame) = conn.poll_transmit() {
        if let Outgoing::Text(text) = frame {
            let Ok(frame) = ClientFrame::decode(text.as_str(), &Limits::default()) else {
                panic!("a client must send requests only");
            };
            assert!(frame.call().is_ok(), "a request must be valid");
            let id = frame.call_id.as_ref().and_then(WireId::as_text);
            ids.extend(id.map(String::from));
        }
    }
    while let Some(event) = conn.poll_event() {
        if let ClientEvent::Reply { id, .. } = event {
            assert!(open.remove(&id), "a call ended twice, or was never made");
        }
    }
    0
}

/// Runs a server's connection through operations. Every open request can be answered once.
pub fn server_conn(data: &[u8]) {
    let mut script = Script::new(data);
    let mut now = Instant::now();
    let config = ServerConfig::default()
        .with_limits(small())
        .with_max_requests(4);
    let mut conn = ServerConn::new(config, now);
    let mut logins: Vec<RequestId> = Vec::new();
    let mut open: Vec<RequestId> = Vec::new();
    while let Some(op) = script.byte() {
        if op & 0x80 == 0 {
            drain_server(&mut conn, &mut logins, &mut open);
        }
        match op % 11 {
            0 => conn.handle_message(Incoming::Text(script.text()), now),
            1 => {
                let text = r#"{"method":"login","args":["a","b"],"callId":"L"}"#;
                conn.handle_message(Incoming::Text(text), now);
            }
            2 => {
                if let Some(id) = logins.pop() {
                    let _ = conn.accept_login(id, User::new("a", "A"));
                }
            }
            3 => {
                if let Some(id) = logins.pop() {
                    let _ = conn.fail(id, "no");
                }
            }
            4 | 5 => {
                let args = script.text();
                let text = format!(r#"{{"method":"search_user","args":[{args}],"callId":7}}"#);
                conn.handle_message(Incoming::Text(&text), now);
            }
            6 => {
                if let Some(id) = open.pop()
                    && conn.reply(id, &"value").is_ok()
                {
                    assert!(
                        conn.reply(id, &"again").is_err(),
                        "a request was answered twice"
                    );
                }
            }
            7 => {
                let _ = conn.push(Text::from(r#"{"event":"x"}"#));
            }
            8 => {
                let wait = Duration::from_secs(u64::from(script.byte().unwrap_or_default()));
                fire(&mut conn, &mut now, wait);
            }
            9 => {
                conn.handle_timeout(now);
                conn.handle_message(Incoming::Pong(b""), now);
            }
            _ => match script.byte().unwrap_or_default() {
                0 => conn.close(now),
                1 => conn.handle_disconnect(Disconnect::Eof, now),
                _ => conn.handle_message(Incoming::Binary(data), now),
            },
        }
        assert!(conn.in_flight() <= 4, "requests in flight are bounded");
    }
    conn.handle_disconnect(Disconnect::PeerClosed(None), now);
    drain_server(&mut conn, &mut logins, &mut open);
    inert(&mut conn, now);
}

fn drain_server(conn: &mut ServerConn, logins: &mut Vec<RequestId>, open: &mut Vec<RequestId>) {
    while let Some(frame) = conn.poll_transmit() {
        if let Outgoing::Text(text) = frame
            && let Err(error) = ServerFrame::decode(text.as_str(), &Limits::default())
        {
            panic!("a server must send frames only: {error}");
        }
    }
    while let Some(event) = conn.poll_event() {
        match event {
            ServerEvent::Login { id, .. } => logins.push(id),
            ServerEvent::Request { id, .. } => open.push(id),
            ServerEvent::Warning(_) | ServerEvent::Closed(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn machines_keep_their_rules(data in prop::collection::vec(any::<u8>(), 0..400)) {
            client_conn(&data);
            server_conn(&data);
        }

        #[test]
        fn machines_keep_their_rules_after_the_opening(
            data in prop::collection::vec(prop::sample::select((0..=24_u8).collect::<Vec<_>>()), 0..200),
        ) {
            let mut client = vec![2, 3, 4];
            client.extend(&data);
            client_conn(&client);
            let mut server = vec![1, 2];
            server.extend(&data);
            server_conn(&server);
        }

        #[test]
        fn tool_loops_keep_their_rules(data in prop::collection::vec(any::<u8>(), 0..300)) {
            toolloop(&data);
        }

        #[test]
        fn tool_loops_keep_their_rules_when_calls_repeat(
            data in prop::collection::vec(0..=8_u8, 0..200),
        ) {
            toolloop(&data);
        }

        #[test]
        fn texts_keep_their_rules(
            text in r"(snek|Ira|https?://|\(/drive\.bin|-|_|é|x|\.png|\?|[\s:/.]|\x1c|.){0,16}",
        ) {
            image_urls(text.as_bytes());
            sanitize(text.as_bytes());
        }

        #[test]
        fn frames_keep_their_rules(text in r#"\{("(method|callId|data|event|args|success)":("x"|1|null|\[\]|\{\}|"\\u00e9"),?){0,4}\}"#) {
            client_frames(text.as_bytes());
            server_frames(text.as_bytes());
        }
    }
}
