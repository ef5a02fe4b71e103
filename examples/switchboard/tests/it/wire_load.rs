//! `switchboard wire load` as a user runs it.

use std::process::Command;

use crate::programs::{Ended as _, Running, outcome, switchboard};

fn load_on(protocol: &str, url: &str, args: &[&str]) -> Command {
    let mut command = switchboard(
        "wire",
        &["load", url, "--protocol", protocol, "--warmup", "0"],
    );
    command.args(args);
    command
}

fn load(url: &str, args: &[&str]) -> Command {
    load_on("snek", url, args)
}

fn bots() -> (Running, String) {
    let serve = switchboard("bot", &["serve", "--open", "--listen", "127.0.0.1:0"]);
    Running::serve(serve)
}

#[test]
fn texts_are_posted_to_a_router_and_reach_their_clients() {
    let serve = switchboard("router", &["--listen", "127.0.0.1:0"]);
    let (_router, url) = Running::serve(serve);
    let args = ["--rate", "50", "--duration", "400ms", "--json"];
    let (out, _) = outcome(load_on("smarthole", &url, &args)).ends(0);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&report["ok"], &report["sent"]),
        (&20.into(), &20.into()),
        "{out}"
    );
}

#[test]
fn a_run_is_reported_in_words_and_as_json() {
    let (_server, url) = bots();

    let short = ["--rate", "100", "--duration", "300ms"];
    let (out, _) = outcome(load(&url, &[&short[..], &["--json"]].concat())).ends(0);
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&report["ok"], &report["sent"]), (&30.into(), &30.into()));
    let (out, _) = outcome(load(&url, &short)).ends(0);
    assert!(out.contains("answered  30 of 30 sent"), "{out}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_reports_what_it_did() {
    let (_server, url) = bots();
    let run = Running::start(load(&url, &["--duration", "600"]));
    run.line_with("100 calls/s for 600 s");
    run.interrupt();
    run.line_with("waiting for the last answers");
    assert_eq!(run.end(), Some(130));
}

#[test]
fn mistakes_suggest_a_correction_and_an_absent_server_is_code_3() {
    for (url, args, expected, wanted) in [
        (
            "ws://127.0.0.1:1",
            &["--rate", "none"][..],
            2,
            "such as 100",
        ),
        (
            "ws://127.0.0.1:1",
            &["--scenario", "task"],
            2,
            "possible values: echo, chat, connect",
        ),
        ("ws://snek.invalid", &[], 2, "--insecure"),
        (
            "wss://127.0.0.1:1",
            &["--ca", "/nowhere"],
            2,
            "--ca /nowhere",
        ),
        ("ws://127.0.0.1:1", &[], 3, "connection refused"),
    ] {
        outcome(load(url, args)).fails(expected, &[wanted]);
    }
}
