//! The bot's command line: help, mistakes, and bot and server together.

use std::process::Command;

use crate::programs::{Ended as _, Running, assert_holds, model, outcome, switchboard};

fn bot(args: &[&str]) -> Command {
    switchboard("bot", args)
}

/// A bot that logs in with this password.
fn user(url: &str, name: &str, password: &str, args: &[&str]) -> Command {
    let mut command = bot(&["--url", url, "--username", name]);
    command.args(args).env("SNEK_PASSWORD", password);
    command
}

const OPEN: [&str; 4] = ["serve", "--open", "--listen", "127.0.0.1:0"];

#[test]
fn every_mistake_says_what_to_do() {
    let url = ["--url", "ws://127.0.0.1:1", "--username", "b"];
    for (args, password, expected) in [
        (&[][..], None, &["--url", "SNEK_URL", "bot serve"][..]),
        (&url[..2], None, &["--username"]),
        (&url, None, &["no password", "SNEK_PASSWORD"]),
        (
            &["--url", "127.0.0.1:1", "--username", "b"],
            Some("p"),
            &["not a URL", "did you mean ws://127.0.0.1:1?"],
        ),
        (
            &["--url", "ftp://h", "--username", "b"],
            Some("p"),
            &["bad URL", "scheme", "wss"],
        ),
        (
            &["--url", "ws://192.0.2.1", "--username", "b"],
            Some("p"),
            &["without encryption", "wss://", "--insecure"],
        ),
        (
            &[&url[..], &["--trigger", "("]].concat(),
            Some("p"),
            &["trigger"],
        ),
        (
            &[&url[..], &["--heartbeat", "1h"]].concat(),
            Some("p"),
            &["--heartbeat", "30"],
        ),
        (&["--password", "p"], None, &["--password"]),
        (
            &[&url[..], &["--provider", "openai"]].concat(),
            Some("p"),
            &["give --model"],
        ),
        (
            &[&url[..], &["--provider", "openai", "--model", "m"]].concat(),
            Some("p"),
            &["needs a key", "OPENAI_API_KEY", "--key-file"],
        ),
        (
            &[
                &url[..],
                &["--provider", "openai", "--model", "m", "--base-url", "h:1"],
            ]
            .concat(),
            Some("p"),
            &["--base-url", "bad address", "https://"],
        ),
        (&["chat", ""], None, &["nothing to say"]),
        (&["serve"], None, &["--user", "--open"]),
        (
            &["serve", "--open", "--listen", "0.0.0.0:0"],
            None,
            &["--public"],
        ),
        (&["serve", "--user", "a-b"], None, &["SNEK_PASSWORD_A_B"]),
        (
            &["serve", "--open", "--channel", "a b"],
            None,
            &["--channel a b"],
        ),
        (
            &["serve", "--open", "--allow-origin", "x/y"],
            None,
            &["x/y"],
        ),
    ] {
        let mut command = bot(args);
        command.envs(password.map(|it| ("SNEK_PASSWORD", it)));
        outcome(command).fails(2, expected);
    }
}

#[test]
fn a_bot_answers_another_bot_and_ends() {
    let (_server, url) = Running::serve(bot(&OPEN));

    let trigger = ["--once", "--trigger", "^here I am"];
    let first = Running::start(user(&url, "first", "1", &trigger));
    first.line_with("logged in");
    // The second bot is asked to join by no one but the test, through a third client.
    let once = ["--once", "--within", "50s"];
    let second = Running::start(user(&url, "second", "2", &once));
    second.line_with("logged in");

    talk(&url, "@second join");
    second.line_with("joined general");
    assert_eq!(second.end(), Some(0));
    // What the second bot said has set off the first one's trigger.
    assert_eq!(first.end(), Some(0));
}

#[test]
fn a_refused_login_fails_at_once_and_says_where_to_look() {
    let mut server = bot(&["serve", "--user", "b", "--listen", "127.0.0.1:0"]);
    server.env("SNEK_PASSWORD_B", "right");
    let (_server, url) = Running::serve(server);
    let wrong = user(&url, "b", "hunter2", &[]);
    let err = outcome(wrong).fails(3, &["refused the login", "password in SNEK_PASSWORD"]);
    assert!(!err.contains("hunter2"), "{err}");
}

#[test]
fn a_bot_that_answers_nothing_in_time_fails() {
    let (_server, url) = Running::serve(bot(&OPEN));
    let lonely = user(&url, "b", "p", &["--once", "--within", "200ms"]);
    outcome(lonely).fails(1, &["the time of --within is up", "nothing was answered"]);
}

#[test]
fn a_bot_answers_with_a_model_behind_http() {
    let hi = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let (model_url, provider) = model(&[hi]);
    let (_server, url) = Running::serve(bot(&OPEN));
    let mut command = user(&url, "b", "p", &["--once", "--provider", "openai"]);
    command
        .args(["--base-url", &model_url, "--model", "toy"])
        .env("OPENAI_API_KEY", "sk-hunter2");
    let running = Running::start(command);
    running.line_with("logged in");
    talk(&url, "@b hello");
    let requests = provider.join().unwrap();
    assert_holds(
        &requests[0],
        &["Bearer sk-hunter2", "carol: @b hello", "\"toy\""],
    );
    assert_eq!(running.end(), Some(0));
}

/// Logs in as a user and posts one message.
fn talk(url: &str, text: &str) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let config = snek_proto::client::ClientConfig::new("carol", "3");
        let (client, _events, connection) = snek_proto::net::connect_lazy(url, config).unwrap();
        let connection = tokio::spawn(connection.run());
        client.ready().await.unwrap();
        let sent = client.send_message("general", text, snek_proto::frame::Final::Yes);
        sent.await.unwrap();
        client.close();
        connection.await.unwrap();
    });
}

#[test]
fn json_is_one_object_for_each_event() {
    let (_server, url) = Running::serve(bot(&OPEN));
    let command = user(&url, "b", "p", &["--json", "--once", "--within", "300ms"]);
    let (out, _) = outcome(command).ends(1);
    let events = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<serde_json::Value> = events.collect();
    let names: Vec<_> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(names, ["connected", "note", "error"], "{out}");
    let running = Running::start(user("ws://127.0.0.1:1", "b", "p", &["--json"]));
    running.line_with("\"event\":\"lost\"");
}

#[test]
fn a_password_in_the_environment_goes_before_the_file() {
    let file = std::env::temp_dir().join(format!("bot-cli-{}", std::process::id()));
    std::fs::write(&file, "b:of-the-file\nc:of-the-file\n").unwrap();
    let mut server = bot(&["serve", "--user", "b", "--user", "c"]);
    server.args(["--listen", "127.0.0.1:0", "--passwords"]);
    server.arg(&file);
    server.env("SNEK_PASSWORD_B", "of-the-variable");
    let (_server, url) = Running::serve(server);
    for (name, password, expected) in [
        ("b", "of-the-variable", 1),
        ("b", "of-the-file", 3),
        ("c", "of-the-file", 1),
    ] {
        let once = ["--once", "--within", "100ms"];
        outcome(user(&url, name, password, &once)).ends(expected);
    }
    std::fs::remove_file(file).unwrap();
}

#[cfg(unix)]
#[test]
fn ctrl_c_aborts_a_bot_that_has_to_answer_once() {
    let (_server, url) = Running::serve(bot(&OPEN));
    for (once, expected) in [(&["--once"][..], 130), (&[], 0)] {
        let running = Running::start(user(&url, "b", "p", once));
        running.line_with("logged in");
        running.interrupt();
        assert_eq!(running.end(), Some(expected), "{once:?}");
    }
}
