//! `switchboard wire page` as a user runs it.

use std::fs;

use crate::programs::{Folder, outcome, switchboard};

/// The line of the `chat.send` is never answered, and the last one is not a frame of Exoclaw.
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
