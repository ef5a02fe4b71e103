//! [`View`]: what it leaves on the screen, and what changes there.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use super::*;

/// A view without colours, and its clock.
struct Seen {
    view: View,
    now: Instant,
}

impl Seen {
    fn new(width: usize) -> Self {
        let mut view = View::new(false, Some("Esc stops"), true);
        view.set_width(width);
        let now = Instant::now();
        Self { view, now }
    }

    fn show(&mut self, event: ChatEvent) -> Vec<String> {
        self.view.show(event, self.now);
        self.view.take_lines()
    }

    fn text(&mut self, text: &str) -> Vec<String> {
        self.show(ChatEvent::Text(text.to_owned()))
    }

    fn live(&mut self) -> Vec<String> {
        self.view.live(self.now, 12)
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }
}

fn call(id: &str) -> ChatEvent {
    ChatEvent::ToolCall {
        id: id.to_owned(),
        name: "run".to_owned(),
        arguments: "ls -l".to_owned(),
    }
}

fn output(id: &str, text: &str) -> ChatEvent {
    ChatEvent::ToolOutput {
        id: id.to_owned(),
        text: text.to_owned(),
        is_diff: false,
    }
}

#[test]
fn complete_rows_are_written_once_and_the_rest_changes() {
    let mut seen = Seen::new(30);
    assert!(
        seen.text("# Title\nSome *wo")
            .starts_with(&["# Title".to_owned()])
    );
    assert_eq!(seen.live(), ["", "Some *wo", "answering 0 s · Esc stops"]);
    seen.wait(3);
    assert_eq!(seen.text("rds*."), [""; 0]);
    assert_eq!(
        seen.live(),
        ["", "Some *words*.", "answering 3 s · Esc stops"]
    );
    assert_eq!(seen.show(ChatEvent::Usage(412)), [""; 0]);
    let status = "answering 3 s · 412 tokens ·";
    assert_eq!(seen.live().last().unwrap(), status);
    assert_eq!(seen.show(ChatEvent::Ended), ["", "Some *words*.", ""]);
    assert_eq!(seen.live(), [""; 0]);
}

#[test]
fn a_tool_shows_the_end_of_its_output_and_leaves_the_beginning() {
    let mut seen = Seen::new(40);
    seen.show(ChatEvent::Activity("thinking".to_owned()));
    assert_eq!(seen.live(), ["thinking 0 s · Esc stops"]);
    assert_eq!(seen.show(call("a")), [""; 0]);
    seen.wait(2);
    let lines: String = (1..=9).map(|number| format!("line {number}\n")).collect();
    assert_eq!(seen.show(output("a", &lines)), [""; 0]);
    assert_eq!(
        seen.live(),
        [
            "◦ run ls -l",
            "    line 5",
            "    line 6",
            "    line 7",
            "    line 8",
            "    line 9",
            "running run 2 s · Esc stops",
        ]
    );
    let result = ChatEvent::ToolResult {
        id: "a".to_owned(),
        outcome: Ok("not shown again".to_owned()),
    };
    assert_eq!(
        seen.show(result),
        [
            "✓ run ls -l",
            "    line 1",
            "    line 2",
            "    line 3",
            "    line 4",
            "    ... 5 more lines",
        ]
    );
    assert_eq!(seen.live(), ["thinking 0 s · Esc stops"]);
    // The answer is apart.
    assert_eq!(seen.text("Done."), [""; 0]);
    assert_eq!(seen.show(ChatEvent::Ended), ["", "Done.", ""]);
}

#[test]
fn a_tool_that_fails_says_why_and_one_that_is_cut_off_stays() {
    let mut seen = Seen::new(40);
    seen.show(call("a"));
    seen.show(call("b"));
    seen.show(output("a", "part of a li"));
    seen.show(output("a", "ne"));
    let failed = ChatEvent::ToolResult {
        id: "a".to_owned(),
        outcome: Err("exit code 1\u{1b}[2J".to_owned()),
    };
    assert_eq!(
        seen.show(failed),
        [
            "✗ run ls -l",
            "    part of a line",
            r"    failed: exit code 1\u{1b}[2J",
        ]
    );
    assert_eq!(seen.show(ChatEvent::Ended), ["- run ls -l"]);
}

#[test]
fn a_plan_changes_in_place_until_it_is_over() {
    let mut seen = Seen::new(40);
    let plan = |first, second| ChatEvent::Plan {
        title: "Plan".to_owned(),
        items: [(first, "one"), (second, "two")]
            .map(|(status, text)| PlanItem {
                status,
                text: text.to_owned(),
            })
            .to_vec(),
    };
    assert_eq!(
        seen.show(plan(PlanStatus::Active, PlanStatus::Pending)),
        [""; 0]
    );
    assert_eq!(seen.live(), ["  Plan", "    [~] one", "    [ ] two"]);
    assert_eq!(
        seen.show(plan(PlanStatus::Done, PlanStatus::Active)),
        [""; 0]
    );
    assert_eq!(seen.live(), ["  Plan", "    [x] one", "    [~] two"]);
    let over = seen.show(plan(PlanStatus::Done, PlanStatus::Failed));
    assert_eq!(over, ["  Plan", "    [x] one", "    [!] two"]);
    assert_eq!(seen.live(), [""; 0]);
}

#[test]
fn a_thought_streams_and_is_folded() {
    let mut seen = Seen::new(40);
    let thought = |text: &str| ChatEvent::Thinking(text.to_owned());
    seen.show(thought("one\ntwo\nthr"));
    seen.show(thought("ee\nfour\nfive"));
    assert_eq!(
        seen.live(),
        ["  three", "  four", "  five", "thinking 0 s · Esc stops"]
    );
    let written = seen.text("So.");
    assert_eq!(written, ["  one", "  two", "  three", "  ... 2 more lines"]);
}

#[test]
fn typing_is_shown_until_the_message_arrives() {
    let mut seen = Seen::new(40);
    let partial = |text: &str| ChatEvent::Partial {
        from: "mybot".to_owned(),
        text: text.to_owned(),
    };
    seen.show(partial(""));
    assert_eq!(seen.live(), ["mybot is typing 0 s"]);
    seen.show(partial("1 2"));
    seen.wait(1);
    assert_eq!(seen.live(), ["mybot: 1 2", "mybot is writing 1 s"]);
    let message = ChatEvent::Message {
        from: "mybot".to_owned(),
        text: "- 1\n- 2".to_owned(),
    };
    assert_eq!(seen.show(message), ["mybot:", "  • 1", "  • 2"]);
    assert_eq!(seen.live(), [""; 0]);
}

#[test]
fn a_list_taller_than_the_screen_is_written_from_its_beginning() {
    let mut seen = Seen::new(40);
    let rows: Vec<_> = (1..=40).map(|number| format!("- {number}")).collect();
    seen.text(&rows.join("\n"));
    let live = seen.view.live(seen.now, 5);
    assert_eq!(live, ["• 38", "• 39", "• 40", "answering 0 s · Esc stops"]);
    let lines = seen.view.take_lines();
    assert_eq!((lines.len(), &*lines[36]), (37, "• 37"));
}

#[test]
fn another_answer_is_set_apart() {
    let mut seen = Seen::new(40);
    seen.text("The whole");
    assert_eq!(seen.show(ChatEvent::TextEnd), ["The whole"]);
    seen.text("What now?");
    assert_eq!(seen.live()[..2], ["", "What now?"]);
    assert_eq!(seen.show(ChatEvent::Ended), ["", "What now?", ""]);
}

#[test]
fn a_note_does_not_break_the_block_that_is_open() {
    let code = "```py\ndef f(x):\n    return x\n\nf(1)\n```\nend\n";
    let list = "- one\n  - **two** words\n- three\n\n1. four\n";
    let table = "|a|b|\n|-|-|\n|1|2|\n|3|4|\n\nend\n";
    for text in [code, list, table] {
        let pieces: Vec<_> = text.split_inclusive([' ', '\n']).collect();
        let shown = |note_at: usize| {
            let mut seen = Seen::new(40);
            let mut rows = Vec::new();
            for (at, piece) in pieces.iter().enumerate() {
                if at == note_at {
                    rows.extend(seen.show(ChatEvent::Note("waiting".to_owned())));
                    // It is seen at once.
                    let is_seen = |rows: &[String]| rows.contains(&"waiting".to_owned());
                    assert!(is_seen(&rows) || is_seen(&seen.live()), "{rows:?}");
                }
                rows.extend(seen.text(piece));
            }
            rows.extend(seen.show(ChatEvent::Ended));
            rows.retain(|row| !row.is_empty());
            rows
        };
        let uncut = shown(usize::MAX);
        for at in 0..pieces.len() {
            let mut rows = shown(at);
            let notes = rows.len();
            rows.retain(|row| row != "waiting");
            assert_eq!((notes - rows.len(), &rows), (1, &uncut), "{at}");
        }
    }
}

#[test]
fn a_note_after_the_last_word_is_below_it() {
    let mut seen = Seen::new(40);
    seen.text("so far");
    seen.show(ChatEvent::Error("the model broke off".to_owned()));
    assert_eq!(seen.live()[..2], ["so far", "error: the model broke off"]);
    let expected = ["so far", "", "error: the model broke off"];
    assert_eq!(seen.show(ChatEvent::Ended), expected);
}

#[test]
fn a_table_taller_than_the_screen_loses_its_beginning() {
    let mut seen = Seen::new(40);
    seen.text(&format!("|a|b|\n|-|-|\n{}", "|1|2|\n".repeat(9)));
    let live = seen.view.live(seen.now, 4);
    assert_eq!(live, ["...", "1 │ 2", "1 │ 2", "answering 0 s · Esc stops"]);
}

#[test]
fn texts_cannot_control_the_terminal_or_exceed_its_width() {
    let bad = || {
        format!(
            "\u{1b}[2J\u{9b}3A\u{202e} {} 漢字漢字漢字漢字漢字漢字漢字",
            "x".repeat(50)
        )
    };
    let mut seen = Seen::new(24);
    let events = [
        ChatEvent::Info(bad()),
        ChatEvent::Activity(bad()),
        ChatEvent::User(bad()),
        ChatEvent::Text(bad()),
        ChatEvent::Thinking(bad()),
        ChatEvent::ToolCall {
            id: "a".to_owned(),
            name: bad(),
            arguments: bad(),
        },
        output("a", &bad()),
        ChatEvent::ToolResult {
            id: "a".to_owned(),
            outcome: Err(bad()),
        },
        ChatEvent::Plan {
            title: bad(),
            items: vec![PlanItem {
                status: PlanStatus::Active,
                text: bad(),
            }],
        },
        ChatEvent::Partial {
            from: bad(),
            text: bad(),
        },
        ChatEvent::Message {
            from: bad(),
            text: bad(),
        },
        ChatEvent::Note(bad()),
        ChatEvent::Warning(bad()),
        ChatEvent::Error(bad()),
        ChatEvent::Question(bad()),
        ChatEvent::Ended,
    ];
    for event in events {
        let mut rows = seen.show(event.clone());
        rows.extend(seen.live());
        for row in rows {
            assert!(!row.contains(char::is_control), "{event:?}: {row:?}");
            assert!(!row.contains('\u{202e}'), "{event:?}: {row:?}");
            assert!(columns(&row) <= 24, "{event:?}: {row:?}");
        }
    }
}

#[test]
fn rows_that_stay_in_a_narrower_terminal_are_not_written_again() {
    let words: String = (0..20).map(|n| format!("word{n:02} ")).collect();
    let once = |rows: &[String]| {
        let text = rows.join(" ");
        (0..20).all(|n| text.matches(&format!("word{n:02}")).count() == 1)
    };
    // An answer.
    let mut seen = Seen::new(40);
    seen.text(&words);
    let mut shown = seen.live();
    let settled = seen.view.settle();
    assert_eq!(settled, 3);
    shown.truncate(settled);
    seen.view.set_width(25);
    shown.extend(seen.live().into_iter().filter(|row| row.contains("word")));
    assert!(once(&shown), "{shown:?}");
    shown.truncate(settled);
    shown.extend(seen.show(ChatEvent::TextEnd));
    assert!(once(&shown), "{shown:?}");
    // The message of someone, twice.
    let mut seen = Seen::new(40);
    let from = || "bee".to_owned();
    let part = |text: &str| ChatEvent::Partial {
        from: from(),
        text: text.to_owned(),
    };
    let mut shown = Vec::new();
    for (width, end) in [(30, 60), (25, 100)] {
        seen.show(part(words.get(..end).unwrap()));
        let live = seen.live();
        let settled = seen.view.settle();
        shown.extend(live.into_iter().take(settled));
        seen.view.set_width(width);
    }
    let text = words.clone();
    shown.extend(seen.show(ChatEvent::Message { from: from(), text }));
    assert!(once(&shown) && shown[0] == "bee:", "{shown:?}");
    assert_eq!(shown.concat().matches("bee").count(), 1);
    // Another message than the one that grew is written whole.
    seen.show(part(&words));
    assert!(seen.view.settle() > 0);
    let text = "other words".to_owned();
    let rows = seen.show(ChatEvent::Message { from: from(), text });
    assert_eq!(rows, ["bee: other words"]);
}
