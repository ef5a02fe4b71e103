//! Screens of several widths, and keys.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::wire::faults::Plan;
use crate::wire::view::{Lines, open};

const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}
{"at":0.004,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"p\\u001b[2Jong\"}"}
{"at":0.005,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"2\",\"method\":\"status\",\"mood\":{\"a\":[1,2]}}"}
{"at":0.009,"conn":1,"dir":"s2c","kind":"close","code":1011,"data":"bro\u001b]0;ken"}
"#;

fn top(rules: Option<Rules>) -> Top {
    let view = Shared::default();
    open(RUN.as_bytes(), Lines::new(None, false), &view).unwrap();
    Top::new(view, "run.jsonl", rules)
}

/// The screen as text, without the spaces at the end of its lines.
fn screen(top: &mut Top, width: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, 20)).unwrap();
    terminal.draw(|frame| top.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let symbols: Vec<_> = buffer
        .content()
        .iter()
        .map(ratatui::buffer::Cell::symbol)
        .collect();
    let lines = symbols.chunks(usize::from(width)).map(<[&str]>::concat);
    let lines: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

fn press(top: &mut Top, keys: &[KeyCode]) -> Flow {
    let mut flow = Flow::On;
    for key in keys {
        flow = top.handle(&Event::Key(KeyEvent::from(*key)));
    }
    flow
}

fn write(top: &mut Top, text: &str) {
    for c in text.chars() {
        press(top, &[KeyCode::Char(c)]);
    }
}

#[test]
fn frames_problems_and_the_selected_frame_fit_on_each_width() {
    for width in [60, 80, 120] {
        let mut top = top(None);
        let first = screen(&mut top, width);
        assert!(first.contains("run.jsonl complete  4 frames"), "{first}");
        assert!(first.contains("Problems 2"), "{first}");
        assert!(first.contains("1 -> ping"), "{first}");
        press(&mut top, &[KeyCode::Char('n')]);
        let problem = screen(&mut top, width);
        assert!(problem.contains("Frame 4: status"), "{problem}");
        assert!(problem.contains("never answered"), "{problem}");
        assert!(problem.contains("method: \"status\""), "{problem}");
        press(&mut top, &[KeyCode::Char('n')]);
        assert!(screen(&mut top, width).contains("Frame 5: close"));
        press(&mut top, &[KeyCode::Char('n')]);
        assert!(
            screen(&mut top, width).contains("Frame 4: status"),
            "round and round"
        );
    }
}

#[test]
fn what_peers_send_cannot_control_the_terminal() {
    let mut top = top(None);
    for keys in [KeyCode::Home, KeyCode::Down, KeyCode::Down, KeyCode::Down] {
        press(&mut top, &[keys]);
        let text = screen(&mut top, 160);
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n'),
            "{text:?}"
        );
        assert!(text.contains(r"bro\u{1b}]0;ken"), "{text}");
    }
}

#[test]
fn a_filter_narrows_the_list_while_it_is_written() {
    let mut top = top(None);
    press(&mut top, &[KeyCode::Char('/')]);
    write(&mut top, "kind:ping");
    let text = screen(&mut top, 80);
    assert!(
        text.contains("-> ping") && !text.contains("status"),
        "{text}"
    );
    assert!(text.contains("filter: kind:ping"), "{text}");
    press(&mut top, &[KeyCode::Esc]);
    assert!(screen(&mut top, 80).contains("status"));
    press(&mut top, &[KeyCode::Char('/')]);
    write(&mut top, "dir:s2c");
    press(&mut top, &[KeyCode::Enter]);
    let text = screen(&mut top, 80);
    assert!(
        text.contains("frames  filter: dir:s2c") && !text.contains("-> ping"),
        "{text}"
    );
}

#[test]
fn a_tree_opens_and_closes() {
    let mut top = top(None);
    press(&mut top, &[KeyCode::Char('n'), KeyCode::Enter]);
    assert!(screen(&mut top, 120).contains("a: [ 2 ]"));
    // To the last member, which is the object, and close it.
    press(&mut top, &[KeyCode::End]);
    press(&mut top, &[KeyCode::Left; 4]);
    let text = screen(&mut top, 120);
    assert!(
        text.contains("▸ mood: { 1 }") && !text.contains("a: [ 2 ]"),
        "{text}"
    );
    press(&mut top, &[KeyCode::Right]);
    assert!(screen(&mut top, 120).contains("a: [ 2 ]"));
    press(&mut top, &[KeyCode::Esc, KeyCode::Down]);
    assert!(screen(&mut top, 120).contains("Frame 5"));
}

#[test]
fn calls_have_bars() {
    let mut top = top(None);
    press(&mut top, &[KeyCode::Tab, KeyCode::Tab]);
    let text = screen(&mut top, 80);
    assert!(text.contains("3.0 ms ping 1"), "{text}");
    assert!(text.contains("never answered status 2"), "{text}");
    assert!(text.contains("██"), "{text}");
}

#[test]
fn faults_are_switched_with_the_keyboard() {
    let rules = Rules::new(&Arc::new(Plan::parse("c2s drop 1/3").unwrap()));
    let mut top = top(Some(rules.clone()));
    press(&mut top, &[KeyCode::BackTab]);
    assert!(screen(&mut top, 80).contains("[x] c2s drop 1/3  happened 0 times"));
    press(&mut top, &[KeyCode::Char(' ')]);
    assert!(screen(&mut top, 80).contains("[ ] c2s drop 1/3"));
    assert!(rules.plan().borrow().is_empty());
    press(&mut top, &[KeyCode::Char('a')]);
    write(&mut top, "explode");
    press(&mut top, &[KeyCode::Enter]);
    assert!(screen(&mut top, 80).contains("a fault is missing"));
    for _ in 0.."explode".len() {
        press(&mut top, &[KeyCode::Backspace]);
    }
    write(&mut top, "s2c delay 1s");
    press(&mut top, &[KeyCode::Enter]);
    assert_eq!(rules.list()[1].text, "s2c delay 1s");
    press(&mut top, &[KeyCode::Down, KeyCode::Char('d')]);
    assert_eq!(rules.list().len(), 1);
}

#[test]
fn a_list_follows_what_comes_until_it_is_paused() {
    let (view, mut lines) = (Shared::default(), Lines::new(None, false));
    let mut top = Top::new(view.clone(), "live", None);
    let mut push = |n: usize| {
        let line = format!(
            r#"{{"at":{n},"conn":1,"dir":"c2s","kind":"text","data":"{{\"id\":\"{n}\",\"method\":\"ping\"}}"}}"#
        );
        let row = lines.read(n, &line, |_| {}).unwrap();
        lock(&view).push(row);
    };
    (1..=50).for_each(&mut push);
    assert!(screen(&mut top, 80).contains("50.000"));
    press(&mut top, &[KeyCode::Char(' ')]);
    push(51);
    let text = screen(&mut top, 80);
    assert!(
        text.contains("paused  51 frames  51 pending") && !text.contains("51.000"),
        "{text}"
    );
    press(&mut top, &[KeyCode::Char(' ')]);
    assert!(screen(&mut top, 80).contains("51.000"));
    press(&mut top, &[KeyCode::Home]);
    assert!(screen(&mut top, 80).contains("Frame 1: ping"));
    assert_eq!(press(&mut top, &[KeyCode::Char('q')]), Flow::Quit);
}
