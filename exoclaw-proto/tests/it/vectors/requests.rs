//! Vectors of the requests that a server receives.

use exoclaw_proto::auth::Auth;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{Call, Method, SessionRef};
use exoclaw_proto::server::{ServerConfig, ServerConn, ServerEvent};
use rpc_core::{Incoming, Instant, Machine, Outgoing};
use serde_json::{Value, json};

use super::{Vector, run, variant};

#[test]
fn decoded_requests_match_the_vectors() {
    run("requests_received", |vector| {
        check(vector, vector.str("text"));
    });
}

#[test]
fn chat_parameters_match_the_vectors() {
    run("chat_params", |vector| {
        let params = vector.str("params");
        let text = format!(r#"{{"id":"1","method":"chat.send","params":{params}}}"#);
        check(vector, &text);
    });
}

fn sent(conn: &mut ServerConn) -> Vec<String> {
    std::iter::from_fn(|| conn.poll_transmit())
        .map(|frame| match frame {
            Outgoing::Text(text) => text.as_str().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn events(conn: &mut ServerConn) -> Vec<ServerEvent> {
    std::iter::from_fn(|| conn.poll_event()).collect()
}

fn check(vector: &Vector, text: &str) {
    let (name, now) = (vector.name(), Instant::now());
    let config = ServerConfig {
        extensions: if vector.is("extensions") {
            Method::EXTENSIONS.to_vec()
        } else {
            Vec::new()
        },
        echo_numbers: vector.is("echo_numbers"),
        ..ServerConfig::default()
    };
    let mut conn = ServerConn::new(config, Auth::open(), now);
    assert_eq!(sent(&mut conn).len(), 1, "{name}: the hello");
    assert_eq!(events(&mut conn), [ServerEvent::Authenticated], "{name}");

    conn.handle_message(Incoming::Text(text), now);
    let id = vector.try_str("id").unwrap_or(r#""1""#);
    let events = events(&mut conn);
    if vector.has("call") {
        let [ServerEvent::Request { id: request, call }] = &events[..] else {
            panic!("{name}: {events:?}")
        };
        assert_eq!(&called(call), vector.get("call"), "{name}");
        assert_eq!(sent(&mut conn), [""; 0], "{name}");
        conn.fail(*request, &RpcError::new("no")).unwrap();
        let answer = format!(r#"{{"id":{id},"error":"no"}}"#);
        assert_eq!(sent(&mut conn), [answer], "{name}");
    } else {
        assert!(events.is_empty(), "{name}: {events:?}");
        let [answer] = &sent(&mut conn)[..] else {
            panic!("{name}: no answer")
        };
        if let Some(exact) = vector.try_str("answer") {
            assert_eq!(answer, exact, "{name}");
        } else {
            let start = format!(r#"{{"id":{id},"error":"#);
            assert!(answer.starts_with(&start), "{name}: {answer}");
            let answer: Value = serde_json::from_str(answer).unwrap();
            let words = answer["error"].as_str().unwrap();
            let kind = RpcError::new(words).kind();
            assert_eq!(variant(&kind), vector.str("error"), "{name}: {words}");
            if let Some(part) = vector.try_str("with") {
                assert!(words.contains(part), "{name}: {words}");
            }
        }
    }
    assert_eq!(conn.in_flight(), 0, "{name}");
    assert!(!conn.is_closed(), "{name}");
}

fn place(session: &SessionRef) -> Value {
    json!([
        session.channel,
        session.account,
        session.peer(),
        session.guild,
        session.team,
    ])
}

/// What reached the application, in the form of the vectors.
fn called(call: &Call) -> Value {
    match call {
        Call::ChatSend(chat) => json!([
            "chat.send",
            chat.session.channel,
            chat.session.account,
            chat.session.peer(),
            chat.content,
            chat.session.guild,
            chat.session.team,
        ]),
        Call::ChatHistory(it) => json!(["chat.history", place(&it.session), it.limit]),
        Call::SessionClear(session) => json!(["session.clear", place(session)]),
        Call::BudgetStatus(it) => json!(["budget.status", it.session.as_ref().map(place)]),
        Call::MemorySearch(it) => {
            json!(["memory.search", place(&it.session), it.query, it.limit])
        }
        other => json!([other.tag()]),
    }
}
