//! Vectors of how a connection begins and ends, as a client sees it.

use std::time::Duration;

use exoclaw_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState};
use rpc_core::{CloseFrame, Disconnect, Incoming, Instant, Machine};
use serde_json::Value;

use super::{run, variant};

#[test]
fn openings_match_the_vectors() {
    run("openings", |vector| {
        let name = vector.name();
        let mut now = Instant::now();
        let mut config = ClientConfig::default();
        if vector.is("token") {
            config.token = Some("s3cret".into());
        }
        let mut conn = ClientConn::new(config, 7, now);
        for step in vector.list("steps") {
            let text = |at: usize| step.get(at).and_then(Value::as_str);
            match text(0).unwrap() {
                "text" => conn.handle_message(Incoming::Text(text(1).unwrap()), now),
                "binary" => conn.handle_message(Incoming::Binary(b"x"), now),
                "wait" => {
                    now += Duration::from_secs(step[1].as_u64().unwrap());
                    conn.handle_timeout(now);
                }
                "ping" => drop(conn.ping(now).unwrap()),
                "eof" => conn.handle_disconnect(Disconnect::Eof, now),
                "close" => {
                    let code = step[1].as_u64().map(|code| u16::try_from(code).unwrap());
                    let frame = code.map(|code| CloseFrame::new(code, text(2).unwrap_or("")));
                    conn.handle_disconnect(Disconnect::PeerClosed(frame), now);
                }
                other => panic!("{name}: {other}"),
            }
        }
        let events: Vec<_> = std::iter::from_fn(|| conn.poll_event()).collect();
        let names: Vec<_> = events.iter().map(variant).collect();
        assert_eq!(Value::from(names), *vector.get("events"), "{name}");
        let expected = vector.str("state");
        match events.last() {
            Some(ClientEvent::Closed(reason)) => {
                assert_eq!(variant(reason), expected, "{name}");
                assert_eq!(conn.state(), ClientState::Closed, "{name}");
            }
            _ => assert_eq!(variant(&conn.state()), expected, "{name}"),
        }
    });
}
