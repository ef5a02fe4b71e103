//! Vectors of the requests that a client sends.

use rpc_core::{Machine as _, Refused};
use serde_json::Value;
use snek_proto::client::ClientConfig;
use snek_proto::frame::{Final, NoKwargs};

use super::{Hand, Vector, config, run};

#[test]
fn encoded_requests_match_the_vectors() {
    run("requests_sent", check);
}

fn check(vector: &Vector) {
    let name = vector.name();
    let with = vector.get("with");
    let text = |at: usize| with[at].as_str().unwrap();
    if vector.str("do") == "login" {
        let mut hand = Hand::new(ClientConfig::new(text(0), text(1)));
        return same(&mut hand, None, vector);
    }
    let mut hand = Hand::ready(config());
    let now = hand.now;
    let conn = &mut hand.conn;
    let outcome = match vector.str("do") {
        "get_user" => conn.call("get_user", &[with[0].as_str()], &NoKwargs {}, now),
        "get_channels" => conn.call("get_channels", &[(); 0], &NoKwargs {}, now),
        "ping" => conn.ping(now),
        "send_message" => {
            let is_final = Final::from(with[2].as_bool().unwrap());
            conn.send_message(text(0), text(1), is_final, now)
        }
        "set_typing" => conn.set_typing(text(0), text(1)),
        "call" => conn.call(text(0), &with[1], &with[2], now),
        other => panic!("{other}"),
    };
    match (outcome, vector.try_str("refused")) {
        (Ok(id), None) => same(&mut hand, Some(id.to_string()), vector),
        (Err(Refused::Invalid { what, .. }), Some(refused)) => {
            assert_eq!(what, refused, "{name}");
            assert_eq!(hand.conn.in_flight(), 0, "{name}");
            assert_eq!(hand.text(), None, "{name}");
        }
        other => panic!("{name}: {other:?}"),
    }
}

/// One text has left: the vector's, with the id of the call, which is 16 hex digits.
fn same(hand: &mut Hand, id: Option<String>, vector: &Vector) {
    let sent = hand.text().unwrap();
    let found: Value = serde_json::from_str(&sent).unwrap();
    let found = found["callId"].as_str().unwrap();
    assert!(
        found.len() == 16 && found.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{found}"
    );
    assert!(id.is_none_or(|id| id == found), "{}", vector.name());
    let expected = vector.str("wire").replace("<id>", found);
    assert!(
        sent == expected,
        "{}:\n{:.300}\n{:.300}",
        vector.name(),
        sent,
        expected
    );
    assert_eq!(hand.text(), None, "{}", vector.name());
}
