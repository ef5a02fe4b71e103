//! What stands on the screen of `agent chat`, `daemon chat` and `router` while lines come and someone types:
//! each line once, none of them blank, and what is typed below them.
#![cfg(unix)]

use crate::agent_terminal;
use crate::daemon_cli;
use crate::programs::switchboard;
use crate::pty::{COLUMNS, Screen};

const TYPED: &str = "> half a li";
const SIZES: [u16; 2] = [24, 45];

/// Lets the program print its help, which is many lines at once, above a line that is being typed: before
/// the screen is full, and after it.
fn check_help(screen: &mut Screen, rows: u16) {
    screen.ends_in(">");
    let mut expected = screen.rows();
    expected.pop();
    screen.types("/help\rhalf a li");
    screen.shows("A text that begins with a slash");
    screen.ends_in(TYPED);
    let shown = screen.rows();
    assert!(shown.len() > expected.len() + 6, "{shown:#?}");
    let help = &shown[expected.len()..shown.len() - 1];
    assert_eq!(help[0], "> /help", "{shown:#?}");
    let mut is_full = false;
    for _ in 0..10 {
        expected.extend_from_slice(help);
        let (visible, gone) = (screen.rows(), screen.rows_gone());
        assert!(!is_full || gone > 0);
        is_full = gone > 0;
        let on_screen = [&expected[gone..], &[TYPED.to_owned()]].concat();
        assert_eq!(visible, on_screen, "{rows} rows, {gone} gone");
        let typed = u16::try_from(visible.len() - 1).unwrap();
        assert_eq!(screen.cursor(), (typed, 11));
        // Ctrl-U takes back what is typed.
        screen.types("\x15/help\rhalf a li");
        screen.shows("A text that begins with a slash");
        screen.shows(TYPED);
        screen.ends_in(TYPED);
    }
    assert!(is_full);
    screen.types("\x15/quit\r");
}

#[test]
fn the_routers_lines_appear_above_the_typed_text() {
    for rows in SIZES {
        let command = switchboard("router", &["--listen", "127.0.0.1:0"]);
        let mut screen = Screen::with_rows(command, rows);
        screen.shows("write a message");
        check_help(&mut screen, rows);
        screen.ends_with(0);
    }
}

#[test]
fn a_flood_of_lines_keeps_the_typed_text() {
    let place = daemon_cli::Fixture::new();
    let server = place.serve(&[]);
    let mut screen = Screen::with_rows(server.client(&["chat", "--yes"]), 12);
    screen.shows("write a message");
    let typed = "ä".repeat(usize::from(COLUMNS));
    screen.types(&format!(
        " /call shell-run {{\"command\":\"seq 300\"}}\r{typed}"
    ));
    screen.shows("299 300");
    screen.ends_in("ää");
    let rows = screen.rows();
    assert_eq!(rows.len(), 12);
    assert_eq!(
        rows[10],
        format!("> {}", "ä".repeat(usize::from(COLUMNS) - 2))
    );
    assert_eq!(screen.cursor(), (11, 2));
    screen.types("\x15\x04");
    screen.ends_with(0);
}

#[test]
fn logs_and_warnings_appear_above_the_typed_text() {
    let place = agent_terminal::Fixture::new();
    let mut screen = Screen::with_rows(place.client(&["-vv"]), 45);
    screen.shows("write a message");
    screen.types("count to 2\rhalf a li");
    screen.shows("I count: 1 2 - done");
    screen.shows(TYPED);
    screen.ends_in(TYPED);
    let rows = screen.rows();
    let is_log = |row: &&String| row.contains("TRACE ") || row.contains("DEBUG ");
    let logs: Vec<_> = rows.iter().filter(is_log).collect();
    assert!(!logs.is_empty(), "{rows:#?}");
    for row in logs {
        assert!(row.starts_with("20"), "{rows:#?}");
    }
    let typed = rows.iter().filter(|row| row.contains(TYPED)).count();
    assert_eq!(typed, 1, "{rows:#?}");
    screen.types("\x15\x04");
    screen.ends_with(0);
}

/// The numbers in rows of answers: those that are made of digits and blanks.
fn numbers(rows: &[String]) -> Vec<u32> {
    let is_of_numbers = |row: &&String| row.bytes().all(|it| it == b' ' || it.is_ascii_digit());
    let rows = rows.iter().filter(is_of_numbers);
    let words = rows.flat_map(|row| row.split_ascii_whitespace());
    words.map(|word| word.parse().unwrap()).collect()
}

#[test]
fn five_hundred_words_a_second_are_all_shown_above_the_status_line() {
    let daemon = daemon_cli::Fixture::new();
    let server = daemon.serve(&[]);
    let agent = agent_terminal::Fixture::new();
    for command in [server.client(&["chat", "--yes"]), agent.client(&[])] {
        let mut screen = Screen::with_size(command, 60, 80);
        screen.shows("write a message");
        screen.ends_in(">");
        screen.types("!slow 1000 2\r");
        // Whenever someone looks, there is one status line, and it is where it belongs.
        for number in ["101", "401", "701"] {
            screen.has(number);
            screen.has_last(">");
            let rows = screen.rows();
            let statuses = rows.iter().filter(|row| row.ends_with(" · Esc stops"));
            assert!(statuses.count() <= 1, "{rows:#?}");
        }
        screen.has("999");
        screen.waits_for_no("Esc stops");
        screen.ends_in(">");
        let rows = screen.rows();
        assert_eq!(numbers(&rows), (1..=1000).collect::<Vec<_>>(), "{rows:#?}");
        let once = |part: &str| rows.iter().filter(|row| row.contains(part)).count() == 1;
        assert!(once("> !slow 1000 2"), "{rows:#?}");
        screen.types("\x04");
        screen.ends_with(0);
    }
}

#[test]
fn a_terminal_resized_during_an_answer_shows_all_of_it() {
    let place = daemon_cli::Fixture::new();
    let server = place.serve(&[]);
    let mut screen = Screen::with_size(server.client(&["chat", "--yes"]), 60, 120);
    screen.shows("write a message");
    screen.types("!slow 400 5\r");
    for columns in [60, 100, 80] {
        screen.shows("0 ");
        screen.resize(60, columns);
        screen.has("Esc stops");
    }
    screen.waits_for_no("Esc stops");
    screen.types("count to 2\r");
    screen.shows("I count: 1 2 - done");
    screen.ends_in(">");
    let rows = screen.rows();
    assert!(
        rows.iter().all(|row| row.chars().count() <= 80),
        "{rows:#?}"
    );
    let statuses = rows.iter().filter(|row| row.contains("Esc stops")).count();
    assert_eq!(statuses, 0, "{rows:#?}");
    let last = numbers(&rows);
    assert!(
        last.ends_with(&(300..=400).collect::<Vec<_>>()),
        "{rows:#?}"
    );
    screen.types("\x04");
    screen.ends_with(0);
}
