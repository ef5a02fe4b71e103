//! The router at a terminal: what is typed is edited and remembered, events come above it, and the
//! terminal is left as it was.
#![cfg(unix)]

use std::process::Command;

use crate::programs::{Running, switchboard};
use crate::pty::Screen;

fn router(args: &[&str]) -> Command {
    let mut command = switchboard("router");
    command.args(["--listen", "127.0.0.1:0"]).args(args);
    command.current_dir(std::env::temp_dir());
    command
}

/// A router at a terminal, with a client that takes nothing.
fn started() -> (Screen, Running) {
    let mut screen = Screen::start(router(&[]));
    screen.shows("listening on ");
    let url = screen.shows(" (input: ");
    let url = url.trim_end_matches(" (input: ").to_owned();
    let mut client = switchboard("router");
    client.args(["client", "--url", &url, "--reject", "not today"]);
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
fn lines_break_at_words_on_screens_of_several_widths() {
    for columns in [60, 80, 120] {
        let mut screen = Screen::with_size(router(&[]), 40, columns);
        screen.shows("listening on ");
        let url = screen.shows(" (input: ");
        let url = url.trim_end_matches(" (input: ").to_owned();
        let mut client = switchboard("router");
        client.args([
            "client",
            "--url",
            &url,
            "--reject",
            "not today, for there is a feast in town and all shops are closed",
        ]);
        let _client = Running::start(client);
        screen.shows("is here");
        screen.types("buy milk and bread and eggs and flour and butter and a bottle of wine for the evening\r");
        screen.shows("     tried ");
        screen.ends_in(">");
        screen.types("/help\r");
        screen.shows("/quit");
        screen.ends_in(">");
        let rows = screen.rows();
        // All but what was typed, which a terminal breaks anywhere.
        let own = rows
            .iter()
            .filter(|row| !row.contains("bottle") && !row.contains("evening"));
        let text = own.map(|row| row.trim()).collect::<Vec<_>>().join(" ");
        for whole in [
            "#1 notes rejects it: not today, for there is a feast in town and all shops are closed",
            "goes to the client NAME and no other",
            "A text that begins with a slash goes out with a blank before it.",
        ] {
            assert!(text.contains(whole), "{whole}: {rows:#?}");
        }
        screen.types("\x04");
        screen.ends_with(0);
    }
}

#[test]
fn events_appear_above_the_line_being_typed() {
    let (mut screen, client) = started();
    screen.types("half a li");
    screen.shows("half a li");
    drop(client);
    screen.shows("has left");
    // It is there again below the event, and goes on.
    screen.shows("half a li");
    screen.types("ne\r");
    screen.shows("half a line");
    screen.shows("no client is connected");
    screen.types("\x04");
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
