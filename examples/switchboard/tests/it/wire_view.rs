//! `switchboard wire top` and `page` as a user runs them.

use std::fs;

use crate::programs::{Folder, outcome, switchboard};

/// The line of the `chat.send` is never answered, and the last one is no frame of Exoclaw.
const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}
{"at":0.004,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"pong\"}"}
{"at":0.005,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"2\",\"method\":\"status\"}"}
{"at":0.006,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"2\",\"event\":7}"}
"#;

#[test]
fn a_recording_becomes_a_page_that_is_never_written_over_another_file() {
    let folder = Folder::new("wire-page");
    let (run, page) = (folder.0.join("run.jsonl"), folder.0.join("bug.html"));
    fs::write(&run, RUN).unwrap();
    let mut save = switchboard("wire");
    save.arg("page").arg(&run).arg("--html").arg(&page);
    let (code, _, err) = outcome(save);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("4 frames, 2 problems"), "{err}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Content-Security-Policy") && html.contains("never answered"));
    let mut again = switchboard("wire");
    again.arg("page").arg(&run).arg("--html").arg(&page);
    assert_eq!(outcome(again).0, Some(2));
    assert_eq!(fs::read_to_string(&page).unwrap(), html);
}

#[test]
fn without_a_terminal_the_screen_says_what_to_use() {
    let mut top = switchboard("wire");
    top.args(["top", "run.jsonl"]);
    let (code, _, err) = outcome(top);
    assert_eq!(code, Some(2));
    assert!(err.contains("needs a terminal"), "{err}");
}

#[cfg(unix)]
mod at_a_terminal {
    use super::*;
    use crate::pty::Screen;

    fn top(name: &str) -> (Screen, Folder) {
        let folder = Folder::new(name);
        let run = folder.0.join("run.jsonl");
        fs::write(&run, RUN).unwrap();
        let mut top = switchboard("wire");
        top.arg("top").arg(&run);
        let screen = Screen::start(top);
        screen.has("Problems 2");
        (screen, folder)
    }

    #[test]
    fn the_first_problem_is_one_key_away() {
        let (mut screen, _folder) = top("wire-top-keys");
        screen.types("n");
        screen.has("Frame 4: status");
        screen.types("n");
        screen.has("Frame 5: ?");
        screen.types("q");
        screen.ends_with(0);
    }

    #[test]
    fn ctrl_s_is_a_key_and_stops_nothing() {
        let (mut screen, _folder) = top("wire-top-stop");
        screen.types("\x13n");
        screen.has("Frame 4: status");
        screen.types("\x11n");
        screen.has("Frame 5: ?");
        screen.types("q");
        screen.ends_with(0);
    }

    #[test]
    fn another_size_of_the_terminal_is_filled_anew() {
        let (mut screen, _folder) = top("wire-top-size");
        for (rows, columns) in [(40, 120), (16, 60), (24, 100)] {
            screen.resize(rows, columns);
            screen.has_below(rows, "n/p problem  / filter");
            screen.has("Problems 2");
        }
        screen.types("n");
        screen.has("Frame 4: status");
        screen.types("q");
        screen.ends_with(0);
    }

    #[test]
    fn the_terminal_is_left_as_it_was_after_a_signal() {
        let (screen, _folder) = top("wire-top-signal");
        screen.terminate();
        screen.ends_with(0);
    }

    #[test]
    fn a_proxy_shows_what_passes_and_ends_with_its_screen() {
        let mut proxy = switchboard("wire");
        proxy.args(["proxy", "--listen", "127.0.0.1:0", "--top"]);
        proxy.args(["--to", "ws://127.0.0.1:1", "--fault", "c2s drop"]);
        let mut screen = Screen::start(proxy);
        screen.has("live");
        screen.types("\x1b[Z");
        screen.has("c2s drop");
        screen.types("q");
        screen.ends_with(0);
    }
}
