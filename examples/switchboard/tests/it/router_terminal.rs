//! The router at a terminal: what is typed is edited and remembered, events come above it, and the
//! terminal is left as it was.
#![cfg(unix)]

use std::process::Command;

use crate::programs::{Running, switchboard};
use crate::pty::Screen;

fn router(args: &[&str]) -> Command {
    let mut command = switchboard("router", &["--listen", "127.0.0.1:0"]);
    command.args(args);
    command.current_dir(std::env::temp_dir());
    command
}

/// A router at a terminal, with a client that takes nothing.
fn started() -> (Screen, Running) {
    let mut screen = Screen::start(router(&[]));
    screen.shows("listening on ");
    let url = screen.shows(" (input: ");
    let url = url.trim_end_matches(" (input: ").to_owned();
    let client = switchboard(
        "router",
        &["client", "--url", &url, "--reject", "not today"],
    );
    let client = Running::start(client);
    screen.shows("is here");
    (screen, client)
}

#[test]
fn a_line_is_edited_sent_and_called_back() {
    let (mut screen, _client) = started();
    // Typed faster than it is read, with a mistake that is taken back.
    screen.types("notes: milj\x7fk\r");
    screen.shows(r#""milk" to "#);
    screen.shows("rejects it: not today");
    screen.types("\x1b[A and bread\r");
    screen.shows(r#""milk and bread" to "#);
    screen.types("/help\r");
    screen.shows("/clients");
    screen.types("/quit\r");
    screen.shows("has left");
    screen.ends_with(0);
}

#[test]
fn a_signal_in_the_middle_of_a_line_leaves_the_terminal_as_it_was() {
    let (mut screen, _client) = started();
    screen.types("half a li");
    screen.shows("half a li");
    screen.terminate();
    screen.shows("has left");
    screen.ends_with(0);
}
