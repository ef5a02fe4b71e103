//! `gateway chat`: what it says, shows and asks.

use serde_json::{Value, json};

use super::*;
use crate::programs::model;

#[test]
fn a_chat_shows_tools_apart_from_the_text_and_cannot_control_the_terminal() {
    let folder = Folder::new();
    let file = root().join("examples/switchboard/gateway.toml");
    let file = folder.file("gateway.toml", &read(&file));
    let (_gateway, url) = folder.start(&["--config", &file]);
    let order = r#"/call echo {"message":"hi \u001b[2Jthere"}"#;
    let err = folder.chat(&url, &[order]).prints("hi \\u{1b}[2Jthere\n");
    assert_holds(&err, &["  echo {", "    hi "]);
    assert!(!err.contains('\u{1b}'), "{err}");
}

#[test]
fn a_failed_chat_says_why_and_keeps_the_partial_answer() {
    let folder = Folder::new();
    let file = folder.file(
        "config.toml",
        "[gateway]\ndata_dir = \":memory:\"\n[budgets]\nsession = 100\n",
    );
    let (_gateway, url) = folder.start(&["--config", &file]);
    let (code, out, err) = folder.chat(&url, &["!break"]);
    assert_eq!((code, out.as_str()), (Some(1), "so far so good\n"));
    assert_holds(&err, &["error: provider error: "]);
    folder
        .chat(&url, &[&"long ".repeat(100)])
        .fails(3, &["error: token budget exceeded (session: ", "/100)"]);
    folder.chat("ftp://h", &["hi"]).ends(2);
    folder
        .chat("ws://127.0.0.1:1", &["hi"])
        .fails(3, &["no connection to ws://127.0.0.1:1"]);
}

#[test]
fn a_chat_shows_what_the_gateway_remembers_and_who_asks() {
    let folder = Folder::new();
    let text = "[gateway]\ndata_dir = \":memory:\"\nextensions = true\n\
                [budgets]\ndaily = 100000\n\
                [[bindings]]\nagent_id = \"helper\"\nguild_id = \"acme\"\nteam_id = \"support\"\n";
    let file = folder.file("config.toml", text);
    let (_gateway, url) = folder.start(&["--config", &file]);
    let acme = ["--guild", "acme", "--team", "support"];
    let asks = |args: &[&str]| folder.hears(&url, &[&acme[..], args].concat());
    asks(&["My name is Ann."]);
    asks(&["count to 2"]);
    let history = asks(&["--history"]);
    assert_holds(
        &history,
        &["> My name is Ann.\n", "> count to 2\nI count: 1 2 - done\n"],
    );
    assert_eq!(
        asks(&["--history=1"]),
        "> count to 2\nI count: 1 2 - done\n"
    );
    assert_eq!(asks(&["--search", "name"]), "My name is Ann.\n");
    // Without the guild it is another agent's conversation.
    assert_eq!(folder.hears(&url, &["--history"]), "");
    let budget = asks(&["--budget"]);
    assert_holds(
        &budget,
        &[
            "session: ",
            "day: ",
            " tokens of 100000\n",
            " without a limit\n",
        ],
    );
    for (failing, history) in [
        ("!break", "> !break\nso far so good\n(broken off: "),
        ("!fail no luck", "> !fail no luck\n(failed: no luck)\n"),
    ] {
        assert_eq!(
            folder.chat(&url, &[&acme[..], &[failing]].concat()).0,
            Some(1)
        );
        assert_holds(&asks(&["--history=1"]), &[history]);
    }
    assert_eq!(asks(&["--clear"]), "4 turns forgotten\n");
    assert_eq!(asks(&["--history"]), "");
}

/// Asks until the answer is not empty: what is learnt of a turn comes after it.
fn learnt(ask: impl Fn() -> String) -> String {
    let answers = std::iter::repeat_with(ask).take(200);
    answers
        .into_iter()
        .find(|it| !it.is_empty())
        .unwrap_or_default()
}

#[test]
fn what_a_gateway_knows_is_shown_found_and_forgotten() {
    let folder = Folder::new();
    let text = "[gateway]\ndata_dir = \":memory:\"\nextensions = true\n";
    let file = folder.file("config.toml", text);
    let (_gateway, url) = folder.start(&["--config", &file]);
    let asks = |args: &[&str]| folder.hears(&url, args);
    let order = r#"/call remember {"subject":"user","relation":"home","value":"K\u00f6ln"}"#;
    assert_eq!(asks(&[order]), "noted\n");
    assert_eq!(learnt(|| asks(&["--memory"])), "user, home: Köln\n");
    assert_eq!(asks(&["--account", "eve", "--memory"]), "");
    assert_eq!(asks(&["--search", "köln"]), "user, home: Köln\n");
    let (_, fact, _) = folder.chat(&url, &["--json", "--memory"]);
    let fact: Value = serde_json::from_str(&fact).unwrap();
    assert_eq!(
        (&fact["subject"], &fact["relation"]),
        (&json!("user"), &json!("home"))
    );
    assert_eq!(asks(&["--forget", "user, name"]), "");
    assert_eq!(
        asks(&["--forget", "User, Home"]),
        "forgotten: user, home: Köln\n"
    );
    assert_eq!(asks(&["--memory"]), "");
    asks(&[order]);
    learnt(|| asks(&["--memory"]));
    assert_eq!(asks(&["--clear"]), "2 turns and 1 fact forgotten\n");
    assert_eq!(asks(&["--memory"]), "");
}

#[test]
fn a_gateway_without_extensions_is_reported() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    folder
        .chat(&url, &["--budget"])
        .fails(3, &["unknown method: budget.status", "extensions = true"]);
}

#[test]
fn json_is_one_object_for_each_event_and_answer() {
    let folder = Folder::new();
    let text = "[gateway]\ndata_dir = \":memory:\"\nextensions = true\n";
    let file = folder.file("config.toml", text);
    let (_gateway, url) = folder.start(&["--config", &file]);
    let lines = |args: &[&str]| -> (Option<i32>, Vec<Value>) {
        let (code, out, err) = folder.chat(&url, &[&["--json"], args].concat());
        let lines = out
            .lines()
            .map(|line| serde_json::from_str(line).expect(&err));
        (code, lines.collect())
    };
    let (code, events) = lines(&["My name is Ann. Count to 2!"]);
    assert_eq!(code, Some(0));
    let texts = events.iter().filter(|event| event["event"] == "text");
    let text: String = texts.filter_map(|event| event["data"].as_str()).collect();
    assert_eq!(text, "I count: 1 2 - done");
    assert!(events.iter().any(|event| event["event"] == "usage"));
    assert_eq!(events.last(), Some(&json!({ "event": "done" })));
    let (code, turns) = lines(&["--history"]);
    assert_eq!((code, turns.len()), (Some(0), 1));
    assert_eq!(turns[0]["assistant"], "I count: 1 2 - done");
    let (_, facts) = lines(&["--search", "name"]);
    assert_eq!(facts[0]["text"], "My name is Ann. Count to 2!");
    let (_, budget) = lines(&["--budget"]);
    assert!(budget[0]["daily"]["used"].as_u64() > Some(0), "{budget:?}");
    assert_eq!(lines(&["--clear"]), (Some(0), vec![json!({ "turns": 1 })]));
    let (code, events) = lines(&["!break"]);
    assert_eq!(code, Some(1));
    let last = events.last().unwrap();
    assert_eq!(last["event"], "error");
    assert!(
        last["message"]
            .as_str()
            .unwrap()
            .starts_with("provider error: "),
        "{last}"
    );
    let (code, out, _) = folder.chat("ws://127.0.0.1:1", &["--json", "hi"]);
    assert_eq!((code, out.lines().count()), (Some(3), 1), "{out}");
}

#[test]
fn a_check_answers_in_json_too() {
    let folder = Folder::new();
    let check = |text: &str| -> (Option<i32>, Vec<Value>) {
        let file = folder.file("config.toml", text);
        let (code, out, _) = checked(folder.gateway(&["check", "--json", "--config", &file]));
        (
            code,
            out.lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        )
    };
    let (code, said) = check("[gateway]\ndata_dir = \":memory:\"\n");
    assert_eq!((code, &said[0]["ok"]), (Some(0), &json!(true)));
    assert!(said[0]["summary"].as_str().unwrap().contains("listens on"));
    let (code, said) = check("[budgets]\ndaily = 0\n");
    assert_eq!((code, &said[0]["ok"]), (Some(1), &json!(false)));
    assert_eq!(
        said[0]["problems"],
        json!(["every chat will fail: [budgets] daily is 0"])
    );
    let (code, said) = check("[agent]\nmodel = 1\n");
    assert_eq!((code, &said[0]["event"]), (Some(2), &json!("error")));
}

#[test]
fn a_token_may_be_the_file_of_a_service_manager() {
    let folder = Folder::new();
    folder.file("EXOCLAW_TOKEN", "hunter2\n");
    let mut command = folder.gateway(&["--port", "0"]);
    command.env("CREDENTIALS_DIRECTORY", &*folder.0);
    let (_gateway, url) = start(command);
    for (token, code) in [("hunter2", Some(0)), ("hunter3", Some(3))] {
        let mut chat = folder.gateway(&["chat", "--url", &url, "count to 1"]);
        chat.env("EXOCLAW_TOKEN", token);
        assert_eq!(outcome(chat).0, code, "{token}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_aborts_a_chat() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let chat = ["chat", "--url", &url, "--json", "!slow 1000 50"];
    let chat = Running::start(folder.gateway(&chat));
    chat.line_with("\"text\"");
    chat.interrupt();
    assert_eq!(chat.end(), Some(130));
}

#[test]
fn a_real_model_is_one_command_away() {
    let folder = Folder::new();
    let chunk = r#"{"choices":[{"delta":{"content":"hello field"},"finish_reason":"stop"}]}"#;
    let (model_url, provider) = model(&[chunk]);
    // What the file says of another provider does not count.
    let file = folder.file(
        "config.toml",
        "[agent]\nprovider = \"anthropic\"\napi_key = \"k\"\n",
    );
    let mut command = folder.gateway(&["--port", "0", "--config", &file]);
    command.args(["--provider", "openai", "--base-url", &model_url]);
    let (gateway, url) = start({
        command.args(["--model", "toy"]);
        command
    });
    gateway.line_with(&format!("model: toy of OpenAI at {model_url}"));
    assert_eq!(folder.hears(&url, &["hi"]).trim(), "hello field");
    let request = provider.join().unwrap().remove(0);
    assert_holds(&request, &["\"model\":\"toy\"", "\"hi\""]);
    assert!(
        !request.to_lowercase().contains("authorization"),
        "{request}"
    );
    outcome(folder.gateway(&["--port", "0", "--model", "toy"]))
        .fails(2, &["--model needs --provider"]);
}
