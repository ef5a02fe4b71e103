//! The files of the agent's host: one host at a time, what cannot be read, lists that people change.

use std::fs;

use crate::agent_cli::{Home, Host};
use crate::programs::{Ended as _, Running, assert_in_order, outcome};

#[test]
fn a_second_host_learns_who_holds_the_sessions_or_waits() {
    let home = Home::new();
    let first = home.host(&[]);
    assert_eq!(home.answer(&first, "count to 2"), "I count: 1 2 - done");
    let place = first
        .url
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let again = ["host", "--listen", place];
    let err = outcome(home.agent(&again)).fails(1, &[]);
    let holder = format!("(process {})", first.running.id());
    assert_in_order(&err, &["--store: ", "in use by switchboard", &holder]);
    let mut patient = home.agent(&again);
    patient.args(["--wait", "60"]);
    let second = std::thread::spawn(move || Host::start(patient));
    drop(first);
    let second = second.join().unwrap();
    let (out, _) = home
        .chat(
            &second,
            &["--resume", "/call search {\"query\":\"count\"}"],
            "",
        )
        .ends(0);
    assert_in_order(&out, &["count to 2"]);
}

#[test]
fn records_that_cannot_be_read_are_counted_at_the_start() {
    let home = Home::new();
    fs::write(
        home.0.join("session_results.jsonl"),
        "{\"session\nnonsense\n",
    )
    .unwrap();
    let host = Running::start(home.agent(&["host", "--listen", "127.0.0.1:0"]));
    let line = host.line_with("cannot be read");
    assert_in_order(
        &line,
        &["session_results.jsonl: ", "2 lines cannot be read"],
    );
}

#[test]
fn addresses_added_to_the_blocklist_by_hand_stay_out() {
    let home = Home::new();
    let host = home.host(&[]);
    assert_eq!(home.answer(&host, "count to 2"), "I count: 1 2 - done");
    let text = "# everybody\n*";
    fs::write(home.0.join("blocklist.txt"), text).unwrap();
    home.chat(&host, &["count to 2"], "")
        .fails(3, &["forbidden"]);
    fs::remove_file(home.0.join("blocklist.txt")).unwrap();
    assert_eq!(home.answer(&host, "count to 2"), "I count: 1 2 - done");
}
