//! `switchboard wire page` as a user runs it.

use std::fs;

use crate::programs::{Ended as _, Folder, outcome, switchboard};

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
    let save = || {
        let mut command = switchboard("wire", &["page"]);
        command.arg(&run).arg("--html").arg(&page);
        outcome(command)
    };
    let (_, err) = save().ends(0);
    assert!(err.contains("4 frames, 2 problems"), "{err}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Content-Security-Policy") && html.contains("never answered"));
    save().ends(2);
    assert_eq!(fs::read_to_string(&page).unwrap(), html);
}
