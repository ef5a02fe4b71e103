//! `agent chat` at a terminal: questions in the middle of typing, something to add while the agent works, and
//! the terminal as it was.
#![cfg(unix)]

use std::process::Command;

use crate::programs::{Folder, Running, switchboard};
use crate::pty::Screen;

/// A host, and a home for it and for who talks to it.
pub(crate) struct Fixture {
    home: Folder,
    _host: Running,
    url: String,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let home = Folder::new("agent-terminal");
        let mut command = switchboard("agent", &["host", "--listen", "127.0.0.1:0"]);
        command.env("AGENT_HOME", &*home);
        let (_host, url) = Running::serve(command);
        Self { home, _host, url }
    }

    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let mut command = switchboard("agent", &["chat", &self.url]);
        command.args(args).env("AGENT_HOME", &*self.home);
        command
    }

    fn chat(&self, args: &[&str]) -> Screen {
        let mut screen = Screen::start(self.client(args));
        screen.shows("write a message");
        screen
    }
}

#[test]
fn answers_a_question_and_gives_an_approval() {
    let place = Fixture::new();
    let mut screen = place.chat(&[]);
    screen.types("count to 2\r");
    screen.shows("I count: 1 2 - done");
    screen.types(
        " /call ask_user {\"question\":\"Which colour?\",\"options\":[\"red\",\"green\"]}\r",
    );
    screen.shows("2. green");
    screen.types("2\r");
    screen.shows("✓ ask_user");
    screen.types(" /call write_file {\"path\":\"a.txt\",\"text\":\"milk\"}\r");
    screen.shows("+milk");
    screen.shows("The agent wants to write a.txt (1 line).");
    screen.types("y\r");
    screen.shows("wrote 4 bytes to a.txt");
    screen.types("/help\r");
    screen.shows("/stop");
    screen.types("/nope\r");
    screen.shows("there is no command /nope");
    screen.types("\x04");
    screen.ends_with(0);
}

#[test]
fn a_running_agent_takes_messages_and_can_be_stopped() {
    let place = Fixture::new();
    let mut screen = place.chat(&[]);
    screen.types("!slow 20 50\r");
    screen.types("count to 2\r");
    screen.shows("the agent reads");
    screen.shows("1 2 - done");
    screen.types("!slow 1000 50\r");
    screen.types("/interrupt\r");
    screen.shows("What would you like me to do?");
    screen.types("!slow 1000 50\r");
    screen.shows("Esc stops");
    screen.terminate();
    screen.shows("return to it with --resume");
    screen.ends_with(0);
    // The agent is still at it.
    let mut screen = place.chat(&["--resume"]);
    screen.types("/interrupt\r");
    screen.shows("What would you like me to do?");
    screen.types("/quit\r");
    screen.ends_with(0);
}

#[test]
fn an_aborted_single_answer_says_that_the_agent_continues() {
    let place = Fixture::new();
    let screen = Screen::with_size(place.client(&["!slow 1000 50"]), 24, 60);
    let rows = screen.abort_count();
    let note = &rows[rows.len() - 2];
    assert_eq!(note, "the agent keeps working; return to it with --resume");
    screen.ends_with(130);
}
