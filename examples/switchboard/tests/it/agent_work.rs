//! What the agent keeps of its work without being told to, and what it shows of it.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use connectonion_proto::storage::{FileConfig, FileStore, export};
use serde_json::{Value, json};

use crate::agent_cli::Home;
use crate::programs::{Ended as _, Running, assert_in_order};

#[test]
fn sessions_are_kept_at_home_unless_another_place_is_given() {
    let home = Home::new();
    let host = home.host(&["--fsync", "always"]);
    assert_eq!(home.answer(&host, "count to 2"), "I count: 1 2 - done");
    let kept = fs::read(home.0.join("sessions.redb")).unwrap();
    assert!(String::from_utf8_lossy(&kept).contains("count to 2"));
}

#[test]
fn shows_the_thoughts_of_the_model() {
    let home = Home::new();
    let host = home.host(&[]);
    let (out, _) = home.chat(&host, &["--json", "!think yes"], "").ends(0);
    assert_in_order(&out, &[r#""type":"thinking""#, "shall I say"]);
}

/// The frames that a chat has shown of one type.
fn frames(out: &str, wanted: &str) -> Vec<Value> {
    let lines = out.lines().map(|line| line.parse::<Value>().unwrap());
    let frames = lines.map(|mut line| line["frame"].take());
    frames.filter(|it| it["type"] == wanted).collect()
}

fn texts(frames: &[Value]) -> String {
    frames
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect()
}

#[test]
fn an_answer_is_shown_while_it_grows() {
    let home = Home::new();
    let host = home.host(&[]);
    let (out, _) = home.chat(&host, &["--json", "!slow 12 60"], "").ends(0);
    let parts = frames(&out, "assistant_delta");
    // The parts of one text, none of which has more than a few words.
    assert!((2..=14).contains(&parts.len()), "{out}");
    assert!(
        parts
            .iter()
            .all(|it| it["message_id"] == parts[0]["message_id"])
    );
    let answer: Value = out.lines().last().unwrap().parse().unwrap();
    let answer = answer["result"].as_str().unwrap();
    assert!(answer.starts_with(&texts(&parts)), "{answer}: {out}");
    let (_, out, _) = home.chat(&host, &["--json", "!think yes, of course"], "");
    let (parts, whole) = (frames(&out, "thinking_delta"), frames(&out, "thinking"));
    assert_eq!(parts[0]["message_id"], whole[0]["id"]);
    assert!(texts(&whole).starts_with(&texts(&parts)), "{out}");
}

#[test]
fn an_interrupt_keeps_the_text_so_far() {
    let home = Home::new();
    let host = home.host(&[]);
    let mut command = home.agent(&["chat", &host.url, "--json"]);
    command.stdin(Stdio::piped());
    let mut chat = Running::start(command);
    let mut input = chat.input();
    input.write_all(b"!slow 1000 20\n").unwrap();
    chat.line_with("assistant_delta");
    input.write_all(b"/interrupt\n").unwrap();
    let whole: Value = chat.line_with(r#""type":"assistant""#).parse().unwrap();
    let said = whole["frame"]["content"].as_str().unwrap();
    let output: Value = chat.line_with("What would you like").parse().unwrap();
    assert_eq!(output["event"], "output");
    drop(input);
    assert_eq!(chat.end(), Some(0));
    drop(host);
    let store = FileStore::open(&home.0.join("sessions.redb"), FileConfig::default()).unwrap();
    let mut kept = Vec::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(export(&store, &mut kept)).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    let messages = kept["session"]["messages"].as_array().unwrap();
    let words: Vec<_> = messages
        .iter()
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert_eq!(words[1], said, "{words:?}");
}

#[test]
fn reports_a_conversation_that_is_too_long_for_the_model() {
    let home = Home::new();
    let host = home.host(&["--context-tokens", "200"]);
    home.answer(&host, "count to 2");
    let mut kept = fs::read_dir(home.0.join("sessions")).unwrap();
    let file = kept.next().unwrap().unwrap().path();
    let mut resume: Value = fs::read_to_string(&file).unwrap().parse().unwrap();
    let said = |role| json!({ "role": role, "content": "hi" });
    let turns = (0..150).flat_map(|_| [said("user"), said("assistant")]);
    resume["session"]["messages"] = turns.collect();
    resume["session"]["turn"] = 150.into();
    fs::write(&file, resume.to_string()).unwrap();
    let (out, _) = home
        .chat(&host, &["--resume", "--json", "count to 3"], "")
        .ends(0);
    let frames: Vec<Value> = out.lines().map(|line| line.parse().unwrap()).collect();
    let told = frames.iter().map(|it| &it["frame"]);
    let told: Vec<_> = told.filter(|it| it["type"] == "compact").collect();
    assert_eq!(told.len(), 1, "{out}");
    assert_eq!(told[0]["status"], "done");
    let words = told[0]["message"].as_str().unwrap();
    assert!(words.contains("oldest messages"), "{words}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_aborts_a_question_and_the_agent_continues() {
    let home = Home::new();
    let host = home.host(&[]);
    let args = ["chat", &host.url, "!slow 1000 50", "--json"];
    let chat = Running::start(home.agent(&args));
    chat.line_with("llm_call");
    chat.interrupt();
    chat.line_with("return to it with --resume");
    assert_eq!(chat.end(), Some(130));
}
