//! Both machines on one line, under virtual time; and the rules of the server's.

use std::time::Instant;

use connectonion_proto::client::{ClientConfig, ClientConn, ClientEvent};
use connectonion_proto::frame::{Connect, Connected, SessionState, Signed};
use connectonion_proto::server::{ServerConfig, ServerConn};
use rpc_core::testing::Pair;
use switchboard_testing::rules::conforms;

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
fn the_server_machine_conforms() {
    let now = Instant::now();
    let texts = [
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
    ];
    for machine in [
        inside().server,
        line().server,
        ServerConn::new(ServerConfig::default(), now),
    ] {
        conforms(machine, &texts, now);
    }
}
