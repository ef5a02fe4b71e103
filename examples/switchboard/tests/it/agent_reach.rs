//! An agent's host that other machines can reach: what it wants to hear first, and who comes in.

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer as _, Message};
use rpc_core::{Outgoing, Text};

use crate::agent_cli::{Home, Host};
use crate::programs::{Ended as _, assert_in_order, outcome};

#[test]
fn a_public_host_says_so() {
    let home = Home::new();
    // Someone else is there, so that it ends.
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let host = |args: &[&str]| {
        let mut command = home.agent(&["host", "--listen", &address, "--public"]);
        let (_, err) = outcome({
            command.args(args);
            command
        })
        .ends(1);
        err
    };
    let (encrypted, all, names) = ("nothing is encrypted", "may use the agent", "any host name");
    let unsigned = "need not prove who they are";
    let err = host(&["--trust", "open"]);
    assert_in_order(&err, &[encrypted, names, all, "cannot listen on"]);
    assert!(!err.contains(unsigned), "{err}");
    let err = host(&["--trust", "open", "--unsigned"]);
    assert_in_order(&err, &[all, unsigned]);
    let err = host(&["--trust", "strict", "--allow-host", "agent.example.com"]);
    assert_in_order(&err, &[encrypted]);
    assert!(!err.contains(all) && !err.contains(names), "{err}");
}

#[test]
fn a_public_host_requires_signatures() {
    let home = Home::new();
    let refused = r#"{"type":"ERROR","message":"unauthorized: signed request required"}"#;
    let connected = r#"{"type":"CONNECTED","#;
    let public = ["--listen", "0.0.0.0:0", "--public", "--trust", "open"];
    for (args, expected) in [
        (&public[..], refused),
        (&[&public[..], &["--unsigned"]].concat(), connected),
        (&["--listen", "127.0.0.1:0"], connected),
        (&["--listen", "127.0.0.1:0", "--invite", "x"], refused),
    ] {
        let mut command = home.agent(&["host"]);
        command.args(args);
        let host = Host::start(command);
        let answer = unsigned(&host.url.replace("0.0.0.0", "127.0.0.1"));
        assert!(answer.starts_with(expected), "{args:?}: {answer}");
    }
}

/// What a CONNECT without a signature is answered with.
fn unsigned(url: &str) -> String {
    let url = url.replace("http://", "ws://") + "ws";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let dialer = WsDialer::new(&url).unwrap();
        let mut line = dialer.dial().await.unwrap();
        let connect = Outgoing::Text(Text::from(r#"{"type":"CONNECT"}"#));
        line.send(connect).await.unwrap();
        loop {
            if let Message::Text(text) = line.next().await.unwrap().unwrap() {
                return text.as_str().to_owned();
            }
        }
    })
}

#[test]
fn a_stranger_needs_a_code_once() {
    let home = Home::new();
    let guest = Home::new();
    let careful = ["--trust", "careful"];
    let mut command = home.agent(&["host", "--listen", "127.0.0.1:0"]);
    command.args(careful).env("AGENT_INVITE", "red onion");
    let host = Host::start(command);
    let (code, _, err) = guest.chat(&host, &["count to 2"], "");
    assert_eq!(code, Some(3));
    assert_in_order(&err, &["write an invite code", "--invite"]);
    let (code, out, err) = guest.chat(&host, &["count to 2"], "blue onion\nred onion\n");
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "I count: 1 2 - done\n"),
        "{err}"
    );
    assert_in_order(&err, &["Invalid invite code", "You are now a contact"]);
    assert_eq!(guest.answer(&host, "count to 3"), "I count: 1 2 3 - done");
    drop(host);
    // Another host at this home knows who came in.
    let host = home.host(&[&careful[..], &["--invite", "other"]].concat());
    assert_eq!(guest.answer(&host, "count to 3"), "I count: 1 2 3 - done");
    let other = Home::new();
    other
        .chat(&host, &["--invite", "other", "count to 2"], "")
        .prints("I count: 1 2 - done\n");
}

#[test]
fn a_strict_host_admits_only_allowed_callers() {
    let (home, guest) = (Home::new(), Home::new());
    let host = home.host(&["--trust", "strict"]);
    guest
        .chat(&host, &["hello"], "")
        .fails(3, &["error: no connection to ", "forbidden"]);
    let line = host.running.line_with("CONNECT auth error");
    assert_in_order(&line, &["✗ CONNECT auth error: forbidden"]);
    drop(host);
    // Who that is, an open host says.
    let open = home.host(&[]);
    let (_, out, _) = guest.chat(&open, &["--json"], "");
    assert_in_order(&out, &[r#""event":"connected""#]);
    drop(open);
    let key = connectonion_proto::auth::Signer::load(guest.0.join("chat.key")).unwrap();
    let host = home.host(&["--trust", "strict", "--allow", &key.address().to_string()]);
    assert_eq!(guest.answer(&host, "count to 2"), "I count: 1 2 - done");
}
