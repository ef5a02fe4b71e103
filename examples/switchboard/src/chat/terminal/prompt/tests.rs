//! [`Prompt`] on the screen of an emulated terminal.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::num::NonZeroU16;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;

fn commands() -> Vec<Command> {
    vec![
        Command::new("help", "", "show this"),
        Command::new("history", "[COUNT]", "show the last turns"),
        Command::new("quit", "", "leave"),
    ]
}

/// A prompt on a screen.
struct Seen {
    prompt: Prompt,
    terminal: vt100::Parser,
    columns: u16,
}

impl Seen {
    fn new(columns: u16, rows: u16) -> Self {
        let [high, wide] = [rows, columns].map(|size| NonZeroU16::new(size).unwrap());
        let mut prompt = Prompt::new(History::default(), commands());
        prompt.resize((columns, rows));
        let mut seen = Self {
            prompt,
            terminal: vt100::Parser::new(high, wide, 100),
            columns,
        };
        seen.prompt.update("> ", Vec::new(), &[]);
        seen.look();
        seen
    }

    fn with_history(lines: &[&str]) -> Self {
        let mut seen = Self::new(40, 6);
        for line in lines {
            seen.prompt.remember(line).unwrap();
        }
        seen
    }

    fn look(&mut self) -> Vec<String> {
        self.prints(&[]);
        self.terminal.process(self.prompt.take().as_bytes());
        let rows = self.terminal.screen().rows(0, self.columns);
        let mut rows: Vec<_> = rows.map(|row| row.trim_end().to_owned()).collect();
        while rows.pop_if(|row| row.is_empty()).is_some() {}
        rows
    }

    fn cursor(&self) -> (u16, u16) {
        self.terminal.screen().cursor_position()
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<KeyAction> {
        let event = Event::Key(KeyEvent::new(code, modifiers));
        self.prompt.happened(&event)
    }

    fn types(&mut self, text: &str) {
        for char in text.chars() {
            assert_eq!(self.press(KeyCode::Char(char), KeyModifiers::NONE), None);
        }
    }

    fn prints(&mut self, lines: &[&str]) {
        let (label, live) = (self.prompt.label.clone(), self.prompt.live.clone());
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        self.prompt.update(&label, live, &lines);
    }

    fn shows(&mut self, label: &str, live: &[&str]) {
        let live = live.iter().map(|row| (*row).to_owned());
        self.prompt.update(label, live.collect(), &[]);
    }
}

#[test]
fn output_appears_above_the_prompt_wherever_the_cursor_is() {
    for typed in [
        "",
        "abc",
        "0123456789",
        "01234567",
        "größer als eine Zeile 漢字漢字",
    ] {
        for back in 0..=typed.chars().count() {
            let mut seen = Seen::new(10, 6);
            seen.types(typed);
            let alone = seen.look();
            for _ in 0..back {
                seen.press(KeyCode::Left, KeyModifiers::NONE);
            }
            seen.look();
            let (row, column) = seen.cursor();
            seen.prints(&["one"]);
            let shown = seen.look();
            assert_eq!(shown, [&["one".to_owned()], &alone[..]].concat());
            assert_eq!(seen.cursor(), (row + 1, column), "{typed:?}, {back} back");
            // Until long after the screen is full, also with a line that takes two rows.
            seen.prints(&["two", "", "three\nfour", "a line of 18 chars"]);
            seen.prints(&["last"]);
            let shown = seen.look();
            // A cursor behind a full row is in a row of its own.
            let room = 6 - alone.len().max(usize::from(row) + 1);
            let above = ["", "three", "four", "a line of", "18 chars", "last"];
            assert_eq!(shown[..room], above[above.len() - room..], "{shown:?}");
            assert_eq!(shown[room..], alone[..]);
            assert_eq!(seen.cursor(), (u16::try_from(room).unwrap() + row, column));
        }
    }
}

#[test]
fn a_line_longer_than_the_screen_shows_the_part_with_the_cursor() {
    let mut seen = Seen::new(10, 3);
    seen.prints(&["before"]);
    seen.types(&"0123456789".repeat(5));
    seen.prints(&["one", "two"]);
    assert_eq!(seen.look(), ["8901234567", "8901234567", "89"]);
    seen.press(KeyCode::Home, KeyModifiers::NONE);
    assert_eq!(seen.look(), ["> 01234567", "8901234567", "8901234567"]);
    assert_eq!(seen.cursor(), (0, 2));
    let line = seen.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(line, Some(KeyAction::Line("0123456789".repeat(5))));
}

#[test]
fn pasted_text_stays_one_text_and_does_not_move_the_cursor() {
    let mut seen = Seen::new(20, 6);
    seen.types("ab");
    seen.press(KeyCode::Left, KeyModifiers::NONE);
    let paste = Event::Paste("1\r\n\x1b[5A2\t\u{7}".to_owned());
    assert_eq!(seen.prompt.happened(&paste), None);
    assert_eq!(seen.look(), ["> a1", ". ?[5A2 ?b"]);
    assert_eq!(seen.cursor(), (1, 9));
    let line = seen.press(KeyCode::Enter, KeyModifiers::NONE);
    let text = "a1\n\x1b[5A2\t\u{7}b".to_owned();
    assert_eq!(line, Some(KeyAction::Line(text)));
}

#[test]
fn keys_of_shells_edit_the_line() {
    let control = KeyModifiers::CONTROL;
    let mut seen = Seen::new(40, 6);
    seen.types("one xyz three");
    seen.press(KeyCode::Char('w'), control);
    seen.press(KeyCode::Char('b'), KeyModifiers::ALT);
    seen.press(KeyCode::Char('u'), control);
    seen.press(KeyCode::Char('d'), control);
    assert_eq!(seen.look(), ["> yz"]);
    assert_eq!(seen.press(KeyCode::Char('c'), control), None);
    assert_eq!(
        seen.press(KeyCode::Char('d'), control),
        Some(KeyAction::End)
    );
}

#[test]
fn a_narrower_window_leaves_nothing_of_the_old_prompt() {
    let mut seen = Seen::new(20, 8);
    seen.prints(&["above"]);
    seen.types("0123456789012345678901");
    seen.look();
    // The emulator cuts where most terminals break again: as they would show it.
    let mut narrow = Seen::new(10, 8);
    narrow
        .terminal
        .process(b"\x1b[H\x1b[Jabove\r\n> 012345678901234567\r\n8901");
    seen.terminal = narrow.terminal;
    seen.columns = 10;
    seen.prompt.resize((10, 8));
    let shown = seen.look();
    assert_eq!(shown, ["above", "> 01234567", "8901234567", "8901"]);
}

#[cfg(unix)]
#[test]
fn ctrl_z_leaves_nothing_of_the_prompt_and_keeps_its_line() {
    let mut seen = Seen::new(20, 5);
    seen.types("half");
    let suspended = seen.press(KeyCode::Char('z'), KeyModifiers::CONTROL);
    assert_eq!(suspended, Some(KeyAction::Suspend));
    seen.prompt.hide();
    seen.terminal.process(seen.prompt.take().as_bytes());
    assert_eq!(seen.terminal.screen().contents(), "");
    seen.terminal.process(b"$ fg\r\n");
    assert_eq!(seen.look(), ["$ fg", "> half"]);
}

#[test]
fn ctrl_c_clears_a_line_that_is_not_finished() {
    let mut seen = Seen::new(20, 5);
    seen.types("half a li");
    assert_eq!(seen.press(KeyCode::Char('c'), KeyModifiers::CONTROL), None);
    assert_eq!(seen.look(), [">"]);
    let again = seen.press(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(again, Some(KeyAction::Interrupt));
}

#[test]
fn changing_rows_stay_between_output_and_prompt_and_leave_nothing() {
    let mut seen = Seen::new(10, 9);
    seen.prints(&["above"]);
    seen.shows("#ab> ", &[]);
    seen.types("hello");
    assert_eq!(seen.look(), ["above", "#ab> hello"]);
    for live in [
        &["one"][..],
        &["\x1b[2mone\x1b[0m", "two", "three"],
        &["five"],
    ] {
        seen.shows("#ab> ", live);
        seen.look();
    }
    assert_eq!(seen.look(), ["above", "five", "#ab> hello"]);
    // A cursor behind a full row is in the next one.
    assert_eq!(seen.cursor(), (3, 0));
    seen.prints(&["more"]);
    assert_eq!(seen.look(), ["above", "more", "five", "#ab> hello"]);
    let line = seen.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(line, Some(KeyAction::Line("hello".to_owned())));
    let shown = seen.look();
    assert_eq!(shown, ["above", "more", "#ab> hello", "", "five", "#ab>"]);
}

#[test]
fn a_screen_is_never_cleared_from_its_first_cell() {
    let mut seen = Seen::new(10, 4);
    for live in [&["one", "two", "three"][..], &["four"], &[]] {
        seen.shows("", live);
        let drawn = seen.prompt.take();
        let (cleared, last) = drawn.rsplit_once("\x1b[J").unwrap();
        for part in cleared.split("\x1b[J") {
            seen.terminal.process(part.as_bytes());
            assert_ne!(seen.cursor(), (0, 0), "{drawn:?}");
            seen.terminal.process(b"\x1b[J");
        }
        seen.terminal.process(last.as_bytes());
        assert_eq!(seen.look(), live);
    }
}

#[test]
fn unchanged_rows_are_not_drawn_again() {
    let mut seen = Seen::new(20, 6);
    seen.shows("> ", &["one"]);
    seen.look();
    seen.shows("> ", &["one"]);
    assert_eq!(seen.prompt.take(), "");
}

#[test]
fn rows_above_the_first_change_are_left_alone() {
    let mut seen = Seen::new(20, 6);
    seen.shows("> ", &["one", "two"]);
    seen.look();
    for (lines, live) in [
        (&[][..], vec!["one", "three"]),
        (&["one"], vec!["three", "4"]),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        let live = live.into_iter().map(str::to_owned);
        seen.prompt.update("> ", live.collect(), &lines);
        let drawn = seen.prompt.take();
        assert!(!drawn.contains("one"), "{drawn:?}");
        seen.terminal.process(drawn.as_bytes());
    }
    assert_eq!(seen.look(), ["one", "three", "4", ">"]);
}

#[test]
fn a_row_wider_than_the_screen_is_cleared_whole() {
    let mut seen = Seen::new(12, 6);
    seen.shows("> ", &["twenty columns wide."]);
    seen.look();
    seen.shows("> ", &[]);
    assert_eq!(seen.look(), [">"]);
}

#[test]
fn a_line_of_several_rows_is_edited_before_earlier_lines_come_back() {
    let mut seen = Seen::new(20, 8);
    for line in ["old", "older"] {
        seen.prompt.remember(line).unwrap();
    }
    seen.types("first");
    seen.press(KeyCode::Enter, KeyModifiers::ALT);
    seen.types("second\\");
    // A backslash at the end does the same.
    assert_eq!(seen.press(KeyCode::Enter, KeyModifiers::NONE), None);
    seen.types("3");
    assert_eq!(seen.look(), ["> first", ". second", ". 3"]);
    seen.press(KeyCode::Up, KeyModifiers::NONE);
    seen.press(KeyCode::Up, KeyModifiers::NONE);
    seen.look();
    assert_eq!(seen.cursor(), (0, 3));
    seen.press(KeyCode::End, KeyModifiers::NONE);
    seen.press(KeyCode::Enter, KeyModifiers::SHIFT);
    seen.press(KeyCode::Down, KeyModifiers::NONE);
    seen.press(KeyCode::Home, KeyModifiers::NONE);
    seen.types("the ");
    assert_eq!(seen.look(), ["> first", ".", ". the second", ". 3"]);
    for _ in 0..3 {
        seen.press(KeyCode::Up, KeyModifiers::NONE);
    }
    // Only lines that begin like this one would come.
    assert_eq!(seen.look(), ["> first", ".", ". the second", ". 3"]);
    seen.press(KeyCode::Char('u'), KeyModifiers::CONTROL);
    let line = seen.press(KeyCode::Enter, KeyModifiers::NONE);
    assert!(matches!(line, Some(KeyAction::Line(_))));
    seen.press(KeyCode::Up, KeyModifiers::NONE);
    assert_eq!(seen.look().last().unwrap(), "> older");
}

#[test]
fn tab_completes_commands_and_shows_what_there_is() {
    let mut seen = Seen::new(60, 8);
    seen.types("/h");
    seen.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(
        seen.look(),
        [
            "> /h",
            "  /help             show this",
            "  /history [COUNT]  show the last turns",
        ]
    );
    assert_eq!(seen.cursor(), (0, 4));
    // The next key takes them away.
    seen.types("i");
    assert_eq!(seen.look(), ["> /hi"]);
    seen.press(KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(seen.look()[0], "> /history");
    assert_eq!(seen.cursor(), (0, 11));
    // Esc takes away what is shown before it stops anything.
    assert_eq!(seen.press(KeyCode::Esc, KeyModifiers::NONE), None);
    assert_eq!(
        seen.press(KeyCode::Esc, KeyModifiers::NONE),
        Some(KeyAction::Stop)
    );
    assert_eq!(seen.look(), ["> /history"]);
}

#[test]
fn earlier_lines_are_found_by_what_is_in_them() {
    let control = |seen: &mut Seen, key| seen.press(KeyCode::Char(key), KeyModifiers::CONTROL);
    let mut seen = Seen::with_history(&["count to 2", "show it", "count to 3"]);
    seen.types("draft");
    control(&mut seen, 'r');
    seen.types("to");
    assert_eq!(seen.look(), ["search \"to\": count to 3"]);
    control(&mut seen, 'r');
    assert_eq!(seen.look(), ["search \"to\": count to 2"]);
    seen.press(KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(seen.look(), ["> draft"]);
    control(&mut seen, 'r');
    seen.types("how");
    let entered = seen.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(entered, Some(KeyAction::Line("show it".to_owned())));
}

#[test]
fn what_was_not_sent_comes_before_what_is_written_since() {
    let mut seen = Seen::new(40, 6);
    seen.types("since");
    seen.prompt.restore("first\nsecond");
    assert_eq!(seen.look(), ["> first", ". second", ". since"]);
}
