//! Both machines on one line, under virtual time; and the rules of the server's.

use std::time::{Duration, Instant};

use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent, ClientState};
use connectonion_proto::frame::{
    Connect, Connected, ErrorFrame, Input, Output, SessionState, Signed,
};
use connectonion_proto::server::{ServerConfig, ServerConn, ServerEvent, ServerState};
use rpc_core::encode::encode;
use rpc_core::testing::{Pair, conformance};

type Machines = Pair<ClientConn, ServerConn>;

fn line() -> Machines {
    let now = Instant::now();
    let connect = Connect::new(Signed::none());
    let client = ClientConn::new(ClientConfig::default(), &connect, 7, now);
    let server = ServerConn::new(ServerConfig::default(), now);
    let mut line = Pair::new(client, server, now);
    line.settle();
    line
}

fn inside() -> Machines {
    let mut line = line();
    let connected = Connected::new("s", SessionState::New);
    line.server.accept(&connected).unwrap();
    line.settle();
    let events = line.take_client_events();
    assert!(
        matches!(&events[..], [ClientEvent::Connected(_)]),
        "{events:?}"
    );
    line.take_server_events();
    line
}

#[test]
fn a_prompt_gets_its_output() {
    let mut line = inside();
    let now = line.now();
    line.client.input(&Input::new("hello"), now).unwrap();
    line.settle();
    let events = line.take_server_events();
    assert!(
        matches!(&events[..], [ServerEvent::Input(..)]),
        "{events:?}"
    );
    line.server.begun().unwrap();
    let output = encode(&Output::new("s", "hi", 3)).unwrap();
    line.server.send(output).unwrap();
    line.settle();
    let events = line.take_client_events();
    let ended = events
        .iter()
        .any(|it| matches!(it, ClientEvent::RunEnded(Ok(output)) if &*output.result == "hi"));
    assert!(ended, "{events:?}");
}

#[test]
fn pings_keep_both_sides_alive_for_hours() {
    let mut line = inside();
    line.advance(Duration::from_secs(3 * 3600));
    let pongs = line.take_server_events();
    assert!(pongs.iter().all(|it| *it == ServerEvent::Pong), "{pongs:?}");
    assert_eq!(pongs.len(), 3 * 120);
    assert_eq!(line.server.state(), ServerState::Ready);
    assert_eq!(line.client.state(), ClientState::Ready);
}

#[test]
fn a_refused_connect_is_reported() {
    let mut line = line();
    line.server
        .refuse(&ErrorFrame::new("unauthorized: invalid signature"))
        .unwrap();
    line.settle();
    let events = line.take_client_events();
    assert!(
        events
            .iter()
            .any(|it| matches!(it, ClientEvent::Refused(_))),
        "{events:?}"
    );
}

#[test]
fn the_server_machine_conforms() {
    let now = Instant::now();
    let mut nasty = conformance::nasty_texts();
    for text in [
        r#"{"type":"CONNECT","session":[],"payload":7}"#,
        r#"{"type":"CONNECT","session_id":"s"}"#,
        r#"{"type":"INPUT","prompt":"hi","images":{},"files":7}"#,
        r#"{"type":"INPUT","prompt":"hi"}"#,
        r#"{"type":"ONBOARD_SUBMIT"}"#,
        r#"{"type":"APPROVAL_RESPONSE","approved":"yes"}"#,
        r#"{"type":"SESSION_STATUS","session":{"session_id":[]}}"#,
        r#"{"type":"ADMIN_BLOCK","payload":{}}"#,
        r#"{"type":"mode_change","mode":null}"#,
        r#"{"type":"INTERRUPT"}"#,
    ] {
        nasty.push(text.to_owned());
    }
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    for mut machine in [
        inside().server,
        line().server,
        ServerConn::new(ServerConfig::default(), now),
    ] {
        conformance::early_timeout_is_a_no_op(&mut machine, now);
        conformance::any_text_is_survived(&mut machine, &texts, now);
        conformance::timeouts_make_progress(&mut machine, 10);
        conformance::closed_is_inert(&mut machine, &texts, now);
    }
}
