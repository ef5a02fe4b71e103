//! What the agent keeps of its work without being told to, and what it shows of it.

use std::fs;

use serde_json::{Value, json};

use crate::agent_cli::{Home, assert_holds};

#[test]
fn sessions_are_kept_at_home_unless_another_place_is_given() {
    let home = Home::new();
    let host = home.host(&["--fsync"]);
    assert_eq!(home.answer(&host, "count to 2"), "I count: 1 2 - done");
    let kept = fs::read_to_string(home.0.join("session_results.jsonl")).unwrap();
    assert!(kept.contains("count to 2"), "{kept}");
}

#[test]
fn what_the_model_thinks_is_shown() {
    let home = Home::new();
    let host = home.host(&[]);
    let (code, out, err) = home.chat(&host, &["--json", "!think yes"], "");
    assert_eq!(code, Some(0), "{err}");
    assert_holds(&out, &[r#""type":"thinking""#, "shall I say"]);
}

#[test]
fn it_is_told_when_a_conversation_is_too_long_for_the_model() {
    let home = Home::new();
    let host = home.host(&[]);
    home.answer(&host, "count to 2");
    let mut kept = fs::read_dir(home.0.join("sessions")).unwrap();
    let file = kept.next().unwrap().unwrap().path();
    let mut resume: Value = fs::read_to_string(&file).unwrap().parse().unwrap();
    let said = |role| json!({ "role": role, "content": "hi" });
    let turns = (0..150).flat_map(|_| [said("user"), said("assistant")]);
    resume["session"]["messages"] = turns.collect();
    resume["session"]["turn"] = 150.into();
    fs::write(&file, resume.to_string()).unwrap();
    let (code, out, err) = home.chat(&host, &["--resume", "--json", "count to 3"], "");
    assert_eq!(code, Some(0), "{err}");
    let frames: Vec<Value> = out.lines().map(|line| line.parse().unwrap()).collect();
    let told = frames.iter().map(|it| &it["frame"]);
    let told: Vec<_> = told.filter(|it| it["type"] == "compact").collect();
    assert_eq!(told.len(), 2, "{out}");
    assert_eq!(
        (&told[0]["status"], &told[1]["status"]),
        (&json!("compacting"), &json!("done"))
    );
    assert_eq!(told[0]["id"], told[1]["id"]);
    let words = told[1]["message"].as_str().unwrap();
    assert!(words.contains("oldest messages"), "{words}");
}
