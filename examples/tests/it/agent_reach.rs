//! An agent's host that other machines can reach: what it wants to hear first, and who comes in.

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer as _, Message};
use rpc_core::{Outgoing, Text};

use crate::agent_cli::{Home, Host};
use crate::programs::outcome;

fn assert_holds(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[test]
fn a_host_that_other_machines_reach_says_so() {
    let home = Home::new();
    // Somebody else is there, so that it ends.
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let host = |args: &[&str]| {
        let mut command = home.agent(&["host", "--listen", &address, "--public"]);
        let (code, _, err) = outcome({
            command.args(args);
            command
        });
        assert_eq!(code, Some(1), "{err}");
        err
    };
    let (encrypted, all, names) = ("nothing is encrypted", "lets all of them in", "any Host");
    let unsigned = "who proves nothing";
    let err = host(&["--trust", "open"]);
    assert_holds(&err, &[encrypted, all, names, "cannot listen on"]);
    assert!(!err.contains(unsigned), "{err}");
    let err = host(&["--trust", "open", "--unsigned"]);
    assert_holds(&err, &[all, unsigned]);
    let err = host(&["--trust", "strict", "--allow-host", "agent.example.com"]);
    assert_holds(&err, &[encrypted]);
    assert!(!err.contains(all) && !err.contains(names), "{err}");
}

#[test]
fn a_host_that_other_machines_reach_wants_signatures() {
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
