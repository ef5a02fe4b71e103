//! `gateway chat` at a terminal: a dialogue before, during and after an answer, on screens of several widths.
#![cfg(unix)]

use std::os::unix::process::CommandExt as _;

use rustix::process::{Signal, kill_process, kill_process_group};

use super::*;
use crate::pty::Screen;

fn dialogue(folder: &Folder, url: &str, columns: u16) -> Screen {
    let command = folder.gateway(&["chat", "--url", url]);
    let mut screen = Screen::with_size(command, 60, columns);
    screen.shows("write a message");
    screen.ends_in(">");
    screen
}

#[test]
fn an_answer_is_rendered_for_the_width_of_the_screen_and_stays_once() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    for columns in [60, 80, 120] {
        let mut screen = dialogue(&folder, &url, columns);
        let first = "model scripted · conversation main · write a message, or /help >";
        assert_eq!(screen.rows().join(" "), first);
        screen.types("show markdown\r");
        screen.has_sample();
        let rows = screen.rows();
        let asked = rows.iter().filter(|row| *row == "> show markdown");
        assert_eq!(asked.count(), 1, "{rows:#?}");
        screen.types("\x04");
        screen.ends_with(0);
    }
}

#[test]
fn a_dialogue_that_was_stopped_is_in_raw_mode_only_after_it_goes_on() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let mut command = folder.gateway(&["chat", "--url", &url]);
    // As shells start a job.
    command.process_group(0);
    let mut screen = Screen::start(command);
    screen.shows("write a message");
    screen.ends_in(">");
    for round in 1..=16 {
        match round % 4 {
            0 => kill_process(screen.pid(), Signal::TSTP).unwrap(),
            1 => kill_process_group(screen.pid(), Signal::TSTP).unwrap(),
            2 => kill_process(screen.pid(), Signal::STOP).unwrap(),
            _ => screen.types("half\x1a"),
        }
        screen.stops();
        if round % 4 == 2 {
            // It was not asked: it is the shell that changes the terminal.
            screen.cook();
        }
        assert!(screen.is_cooked(), "stopped in raw mode: {round}");
        screen.goes_on();
        assert!(!screen.is_cooked(), "continued without raw mode: {round}");
        screen.types(&format!("\x15count to {round}\r"));
        screen.shows(&format!("{round} - done"));
        screen.ends_in(">");
    }
    screen.types("\x04");
    screen.ends_with(0);
}

#[test]
fn esc_stops_the_answer_and_the_dialogue_continues() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let mut screen = dialogue(&folder, &url, 80);
    screen.types("!slow 1000 50\r");
    screen.is_answering();
    screen.types("\x1b");
    screen.shows("stopped");
    screen.ends_in(">");
    // Nothing runs: it does nothing.
    screen.types("\x1b[27u");
    screen.types("/hlep\r");
    screen.shows("did you mean /help?");
    screen.types("count to 3\r");
    screen.shows("I count: 1 2 3 - done");
    screen.ends_in(">");
    screen.types("\x03");
    screen.ends_with(0);
}

#[test]
fn help_lists_the_commands_and_new_starts_a_conversation() {
    let folder = Folder::new();
    let (_plain, url) = folder.start(&[]);
    let mut screen = dialogue(&folder, &url, 80);
    screen.types("/help\r");
    screen.has("A text that begins with a slash");
    let help = screen.rows().join("\n");
    assert!(
        help.contains("/new") && !help.contains("/history"),
        "{help}"
    );
    screen.types("\x04");
    screen.ends_with(0);
    let text = "[gateway]\ndata_dir = \":memory:\"\nextensions = true\n";
    let file = folder.file("config.toml", text);
    let (_gateway, url) = folder.start(&["--config", &file]);
    let mut screen = dialogue(&folder, &url, 80);
    screen.types("count to 2\r");
    screen.shows("1 2 - done");
    screen.types("/history\r");
    screen.shows("> count to 2");
    screen.types("/new\r");
    screen.has("a new conversation; --peer main-");
    screen.types("/history\r");
    screen.has("nothing");
    // A line that is not finished is cleared; the next Ctrl-C leaves.
    screen.types("half a li\x03");
    screen.ends_in(">");
    screen.types("\x03");
    screen.ends_with(0);
}

#[test]
fn output_that_is_not_a_terminal_gets_the_text_unchanged() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    for args in [&["chat", "--url", &url, "-"][..], &["chat", "--url", &url]] {
        let mut command = folder.gateway(args);
        command.stdin(std::process::Stdio::piped());
        let mut chat = Running::start(command);
        let mut input = chat.input();
        std::io::Write::write_all(&mut input, b"count to 2\n").unwrap();
        drop(input);
        let (code, lines) = chat.end_with_lines();
        assert_eq!(
            (code, lines.concat().as_str()),
            (Some(0), "I count: 1 2 - done")
        );
    }
}

#[test]
fn a_single_answer_is_rendered_without_a_prompt() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let command = folder.gateway(&["chat", "--url", &url, "show markdown"]);
    let screen = Screen::with_size(command, 60, 60);
    screen.ends_in("}");
    let rows = screen.rows();
    assert_eq!(rows[0], "A sample", "{rows:#?}");
    assert!(!rows.concat().contains("stops"), "{rows:#?}");
    screen.ends_with(0);
}

#[test]
fn a_single_answer_that_is_aborted_leaves_no_status_line() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let command = folder.gateway(&["chat", "--url", &url, "!slow 1000 50"]);
    let screen = Screen::with_size(command, 60, 60);
    screen.abort_count();
    screen.ends_with(130);
}

#[test]
fn a_terminal_without_a_cursor_gets_a_dialogue_line_by_line() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let mut screen = Screen::dumb("", folder.gateway(&["chat", "--url", &url]));
    screen.shows("write a message");
    screen.types("count to 2\r");
    screen.shows("I count: 1 2 - done\r\n");
    screen.types("/help\r");
    screen.shows("begin a new conversation");
    // What was said before the end is answered.
    screen.types("count to 3\r\x04");
    screen.shows("I count: 1 2 3 - done");
    screen.ends_with(0);
}

#[test]
fn a_terminal_says_how_to_end_a_whole_message() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let mut screen = Screen::dumb("dumb", folder.gateway(&["chat", "--url", &url, "-"]));
    screen.shows("Ctrl-D");
    screen.types("count to 2\r\x04");
    screen.shows("I count: 1 2 - done");
    screen.ends_with(0);
}
