//! `daemon run` and `daemon chat` at a terminal: colours, places in the queue, Ctrl-C, and the terminal as it
//! was.
#![cfg(unix)]

use crate::daemon_cli::{Place, Server};
use crate::pty::Screen;

fn chat(server: &Server) -> Screen {
    let mut screen = Screen::start(server.client(&["chat", "--yes"]));
    screen.shows("write what you want done");
    screen
}

#[test]
fn what_is_asked_meanwhile_waits_for_its_turn() {
    let place = Place::new();
    let server = place.serve(&[]);
    let mut screen = chat(&server);
    screen.types("!slow 30 20\r");
    screen.types("create b.txt: x\r");
    screen.shows("chat 2 waiting, place 1");
    screen.types("count to 2\r");
    screen.shows("chat 3 waiting, place 2");
    screen.shows("29 30");
    screen.shows("b.txt +1 -0");
    screen.shows("I count: 1 2 - done");
    screen.types("/quit\r");
    screen.ends_with(0);
}

#[test]
fn ctrl_c_aborts_what_runs_and_waits_and_only_then_ends() {
    let place = Place::new();
    let server = place.serve(&[]);
    let mut screen = chat(&server);
    screen.types("run sleep 60\r");
    screen.shows("shell-run sleep 60");
    screen.types("create late.txt: x\r");
    screen.shows("waiting, place 1");
    screen.types("\x03");
    screen.shows("aborted");
    screen.shows("aborted");
    screen.types("run ls\r");
    screen.shows("✓ shell-run ls");
    screen.types("\x03");
    screen.ends_with(0);
}

#[test]
fn an_edit_is_shown_in_colours_and_the_answer_as_it_comes() {
    let place = Place::new();
    let server = place.serve(&[]);
    let mut screen = Screen::start(server.client(&["run", "edit a.txt: two -> 2", "--yes"]));
    screen.shows("\x1b[31m-   2  two");
    screen.shows("\x1b[32m+   2  2");
    screen.shows("changed a.txt (+1 -1)");
    screen.ends_with(0);
}

#[test]
fn a_tool_that_takes_long_is_told_to_run() {
    let place = Place::new();
    let server = place.serve(&[]);
    let mut screen = Screen::start(server.client(&["run", "run sleep 60", "--yes"]));
    screen.shows("running shell-run 1 s");
    screen.terminate();
    screen.shows("aborting");
    screen.shows("error: aborted");
    screen.ends_with(130);
}
