//! `daemon run` and `daemon chat` at a terminal: colours, places in the queue, Ctrl-C, and the terminal as it
//! was.
#![cfg(unix)]

use crate::daemon_cli::{Fixture, Server};
use crate::pty::Screen;

fn chat(server: &Server) -> Screen {
    let mut screen = Screen::start(server.client(&["chat", "--yes"]));
    screen.shows("write a message");
    screen
}

#[test]
fn questions_asked_meanwhile_wait_their_turn() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = chat(&server);
    screen.types("!slow 30 20\r");
    screen.types(" /call file-create {\"path\":\"b.txt\",\"content\":\"x\\n\"}\r");
    screen.shows("waiting, place 1");
    screen.types("count to 2\r");
    screen.shows("waiting, place 2");
    screen.shows("29 30");
    screen.shows("b.txt +1 -0");
    screen.shows("I count: 1 2 - done");
    screen.types("/quit\r");
    screen.ends_with(0);
}

#[test]
fn an_answer_grows_above_its_status_and_stays_once_on_screens_of_several_widths() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    for columns in [70, 80, 120] {
        let mut screen = Screen::with_size(server.client(&["chat", "--yes"]), 60, columns);
        screen.shows("write a message");
        screen.ends_in(">");
        screen.types("!slow 1000 20\r");
        screen.shows(" 40 ");
        screen.is_answering();
        screen.types("\x1b");
        screen.shows("aborted");
        screen.ends_in(">");
        screen.types(" /call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}\r");
        screen.shows("changed a.txt");
        screen.ends_in(">");
        let rows = screen.rows();
        let expected = [
            "aborted",
            ">  /call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}",
            "✓ file-edit a.txt",
            "     a.txt +1 -1",
            "        1  one",
            "    -   2  two",
            "    +   2  2",
            "",
            "changed a.txt (+1 -1)",
            "",
            ">",
        ];
        assert!(rows.ends_with(&expected.map(str::to_owned)), "{rows:#?}");
        screen.types(" /call file-edit {\"path\":\"a.txt\",\"find\":\"2\",\"replace\":\"two\"}\r");
        screen.shows("changed a.txt");
        screen.ends_in(">");
        screen.types("\x04");
        screen.ends_with(0);
    }
}

#[test]
fn ctrl_c_aborts_what_runs_and_waits_and_only_then_ends() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = chat(&server);
    screen.types(" /call shell-run {\"command\":\"sleep 60\"}\r");
    screen.shows("shell-run sleep 60");
    screen.types(" /call file-create {\"path\":\"late.txt\",\"content\":\"x\\n\"}\r");
    screen.shows("waiting, place 1");
    screen.types("\x03");
    screen.shows("aborted");
    screen.ends_in(">  /call file-create {\"path\":\"late.txt\",\"content\":\"x\\n\"}");
    screen.types("\x15 /call shell-run {\"command\":\"ls\"}\r");
    screen.shows("✓ shell-run ls");
    screen.ends_in(">");
    screen.types("\x03");
    screen.ends_with(0);
}

#[test]
fn an_edit_is_shown_in_colours_and_the_answer_as_it_comes() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = Screen::start(server.client(&[
        "run",
        "/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}",
        "--yes",
    ]));
    screen.shows("\x1b[31m-   2  two");
    screen.shows("\x1b[32m+   2  2");
    screen.shows("changed a.txt (+1 -1)");
    screen.ends_with(0);
}

#[test]
fn an_approval_shows_a_coloured_diff_and_esc_declines_it() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = Screen::start(server.client(&["chat"]));
    screen.shows("write a message");
    screen.types(" /call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}\r");
    screen.shows("\x1b[31m-two");
    screen.shows("\x1b[32m+2");
    screen.shows("Allow? y/N/always");
    screen.shows("waiting for your answer");
    screen.types("\x1b");
    screen.shows("✗ file-edit a.txt");
    screen.shows("you declined it");
    screen.shows("the user does not allow it");
    assert_eq!(place.file("a.txt").as_deref(), Some("one\ntwo\n"));
    screen.types(" /call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}\r");
    screen.shows("Allow? y/N/always");
    screen.types("y\r");
    screen.shows("✓ file-edit a.txt");
    screen.shows("changed a.txt (+1 -1)");
    screen.types("/quit\r");
    screen.ends_with(0);
    assert_eq!(place.file("a.txt").as_deref(), Some("one\n2\n"));
}

#[test]
fn a_run_asks_below_the_diff_and_continues_after_a_yes() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = Screen::start(server.client(&[
        "run",
        "/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}",
    ]));
    screen.shows("\x1b[31m-two");
    screen.shows("\x1b[32m+2");
    screen.shows("Allow? y/N/always");
    let asked = screen.rows();
    assert_eq!(
        asked.iter().filter(|row| row.contains("-two")).count(),
        1,
        "{asked:#?}"
    );
    assert_eq!(place.file("a.txt").as_deref(), Some("one\ntwo\n"));
    screen.types("y\r");
    screen.shows("✓ file-edit a.txt");
    screen.shows("changed a.txt (+1 -1)");
    screen.ends_with(0);
    assert_eq!(place.file("a.txt").as_deref(), Some("one\n2\n"));
}

#[test]
fn a_plan_stays_where_it_is_while_it_is_done() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let plan = "/call checklist {\"title\":\"Plan\",\"items\":\"[~] read a.txt\\n[ ] run sleep 60\"}\n/call file-read {\"path\":\"a.txt\"}\n/call checklist {\"title\":\"Plan\",\"items\":\"[x] read a.txt\\n[~] run sleep 60\"}\n/call shell-run {\"command\":\"sleep 60\"}";
    let mut screen = Screen::start(server.client(&["run", plan, "--yes"]));
    screen.shows("[~] run sleep 60");
    let rows = screen.rows();
    let plans = rows
        .iter()
        .filter(|row| row.contains("read a.txt") && row.contains('['));
    assert_eq!(plans.collect::<Vec<_>>(), ["    [x] read a.txt"]);
    screen.terminate();
    screen.ends_with(130);
}

#[test]
fn esc_aborts_what_runs_and_commands_are_completed() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = chat(&server);
    screen.types(" /call shell-run {\"command\":\"sleep 60\"}\r");
    screen.shows("running shell-run");
    screen.shows("Esc stops");
    screen.types("\x1b");
    screen.shows("aborted");
    screen.types("/sta\t\r");
    screen.shows("model: scripted");
    screen.types("/hlep\r");
    screen.shows("did you mean /help?");
    screen.types("/quit\r");
    screen.ends_with(0);
}

#[test]
fn a_slow_tool_is_shown_as_running() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let mut screen = Screen::start(server.client(&[
        "run",
        "/call shell-run {\"command\":\"sleep 60\"}",
        "--yes",
    ]));
    screen.shows("running shell-run 1 s");
    screen.terminate();
    screen.shows("aborting");
    screen.shows("error: aborted");
    screen.ends_with(130);
}
