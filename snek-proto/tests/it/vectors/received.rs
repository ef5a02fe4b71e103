//! Vectors of the requests that a server receives.

use rpc_core::{Incoming, Instant, Machine, Outgoing};
use serde_json::{Value, json};
use snek_proto::frame::{Call, User};
use snek_proto::server::{ServerConfig, ServerConn, ServerEvent};

use super::{Vector, run};

#[test]
fn decoded_requests_match_the_vectors() {
    run("requests_received", check);
}

fn events(conn: &mut ServerConn) -> Vec<ServerEvent> {
    std::iter::from_fn(|| conn.poll_event()).collect()
}

fn sent(conn: &mut ServerConn) -> Vec<String> {
    std::iter::from_fn(|| conn.poll_transmit())
        .map(|frame| match frame {
            Outgoing::Text(text) => text.as_str().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect()
}

fn logged_in(now: Instant) -> ServerConn {
    let mut conn = ServerConn::new(ServerConfig::default(), now);
    let login = r#"{"method":"login","args":["ann","secret"],"callId":"L"}"#;
    conn.handle_message(Incoming::Text(login), now);
    let [ServerEvent::Login { id, .. }] = events(&mut conn)[..] else {
        panic!("no login")
    };
    conn.accept_login(id, User::new("ann", "Ann")).unwrap();
    assert_eq!(sent(&mut conn).len(), 1);
    conn
}

fn check(vector: &Vector) {
    let name = vector.name();
    let now = Instant::now();
    let mut conn = if vector.is("before_login") {
        ServerConn::new(ServerConfig::default(), now)
    } else {
        logged_in(now)
    };
    conn.handle_message(Incoming::Text(vector.str("text")), now);
    let events = events(&mut conn);
    assert!(!conn.is_closed(), "{name}");
    if vector.has("call") {
        let [event] = &events[..] else {
            panic!("{name}: {events:?}")
        };
        assert_eq!(&called(event), vector.get("call"), "{name}");
        assert!(sent(&mut conn).is_empty(), "{name}");
        let value = match event {
            ServerEvent::Request { id, .. } => {
                conn.reply(*id, &1).unwrap();
                "1"
            }
            ServerEvent::Login { id, .. } => {
                conn.accept_login(*id, User::new("ann", "Ann")).unwrap();
                r#"{"username":"ann","nick":"Ann"}"#
            }
            other => panic!("{name}: {other:?}"),
        };
        let answer = vector
            .try_str("id")
            .map(|id| format!(r#"{{"callId":{id},"success":true,"data":{value}}}"#));
        let sent = sent(&mut conn);
        assert!(sent.iter().eq(&answer), "{name}: {sent:.200?}");
    } else if vector.is("refused") {
        assert!(events.is_empty(), "{name}: {events:?}");
        let [answer] = &sent(&mut conn)[..] else {
            panic!("{name}: no answer")
        };
        let read: Value = serde_json::from_str(answer).unwrap();
        let error = read["data"]["error"].as_str().unwrap();
        assert!(!error.is_empty(), "{name}");
        let expected = format!(
            r#"{{"callId":{},"success":false,"data":{{"error":{}}}}}"#,
            vector.str("id"),
            read["data"]["error"]
        );
        assert_eq!(answer, &expected, "{name}");
    } else if vector.is("ignored") {
        assert!(
            matches!(events[..], [ServerEvent::Warning(_)]),
            "{name}: {events:?}"
        );
        assert_eq!(sent(&mut conn), [""; 0], "{name}");
    } else {
        assert!(vector.is("nothing"), "{name}: no expectation");
        assert!(events.is_empty(), "{name}: {events:?}");
        assert_eq!(sent(&mut conn), [""; 0], "{name}");
    }
    assert_eq!(conn.in_flight(), 0, "{name}");
}

/// What reached the application, in the form of the vectors.
fn called(event: &ServerEvent) -> Value {
    match event {
        ServerEvent::Login {
            username, password, ..
        } => json!(["login", username.as_str(), password.expose().as_str()]),
        ServerEvent::Request { call, .. } => match call {
            Call::GetUser { username } => json!(["get_user", username.as_deref()]),
            Call::SendMessage {
                channel_uid,
                message,
                is_final,
            } => json!([
                "send_message",
                channel_uid.as_str(),
                message.as_str(),
                bool::from(*is_final)
            ]),
            Call::SetTyping { channel_uid, color } => {
                json!(["set_typing", channel_uid.as_str(), color.as_str()])
            }
            Call::Unknown {
                method,
                args,
                kwargs,
            } => json!([method.as_str(), args.get(), kwargs.get()]),
            call => json!([call.method()]),
        },
        other => panic!("{other:?}"),
    }
}
