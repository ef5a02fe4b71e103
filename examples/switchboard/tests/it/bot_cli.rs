//! The bot's command line: help, mistakes, and bot and server together.

use std::process::Command;

use crate::programs::{Running, answer_as_a_model, assert_holds, outcome, switchboard};

fn bot(args: &[&str]) -> Command {
    let mut command = switchboard("bot");
    command.args(args);
    command
}

/// A wrong call ends with code 2 and one message on standard error.
fn mistake(args: &[&str], password: Option<&str>) -> String {
    let mut command = bot(args);
    if let Some(password) = password {
        command.env("SNEK_PASSWORD", password);
    }
    let (code, out, err) = outcome(command);
    assert_eq!((code, out.as_str()), (Some(2), ""), "{args:?}: {err}");
    err
}

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
        assert_holds(&mistake(args, password), expected);
    }
}

#[test]
fn a_bot_answers_another_bot_and_ends() {
    let server = Running::start(bot(&["serve", "--open", "--listen", "127.0.0.1:0"]));
    let line = server.line_with("listening on ws://127.0.0.1:");
    let url = line.trim_start_matches("listening on ").to_owned();

    let mut first = bot(&["--url", &url, "--username", "first", "--once"]);
    first
        .args(["--trigger", "^here I am"])
        .env("SNEK_PASSWORD", "1");
    let first = Running::start(first);
    first.line_with("logged in");
    // The second bot is asked to join by no one but the test, through a third client.
    let mut second = bot(&[
        "--url",
        &url,
        "--username",
        "second",
        "--once",
        "--within",
        "50s",
    ]);
    second.env("SNEK_PASSWORD", "2");
    let second = Running::start(second);
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
    let server = Running::start(server);
    let line = server.line_with("listening on");
    let url = line.trim_start_matches("listening on ").to_owned();
    let mut wrong = bot(&["--url", &url, "--username", "b"]);
    wrong.env("SNEK_PASSWORD", "hunter2");
    let (code, _, err) = outcome(wrong);
    assert_eq!(code, Some(3));
    assert_holds(&err, &["refused the login", "password in SNEK_PASSWORD"]);
    assert!(!err.contains("hunter2"), "{err}");
}

#[test]
fn a_bot_that_answers_nothing_in_time_fails() {
    let server = Running::start(bot(&["serve", "--open", "--listen", "127.0.0.1:0"]));
    let line = server.line_with("listening on");
    let url = line.trim_start_matches("listening on ").to_owned();
    let mut lonely = bot(&[
        "--url",
        &url,
        "--username",
        "b",
        "--once",
        "--within",
        "200ms",
    ]);
    lonely.env("SNEK_PASSWORD", "p");
    let (code, _, err) = outcome(lonely);
    assert_eq!(code, Some(1), "{err}");
    assert_holds(
        &err,
        &["the time of --within is up", "nothing was answered"],
    );
}

#[test]
fn a_bot_answers_with_a_model_behind_http() {
    let provider = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let model_url = format!("http://{}", provider.local_addr().unwrap());
    let hi = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
    let provider = std::thread::spawn(move || answer_as_a_model(&provider, &[hi]));
    let server = Running::start(bot(&["serve", "--open", "--listen", "127.0.0.1:0"]));
    let line = server.line_with("listening on");
    let url = line.trim_start_matches("listening on ").to_owned();
    let args = [
        "--url",
        &url,
        "--username",
        "b",
        "--once",
        "--provider",
        "openai",
    ];
    let mut command = bot(&args);
    command
        .args(["--base-url", &model_url, "--model", "toy"])
        .env("OPENAI_API_KEY", "sk-hunter2")
        .env("SNEK_PASSWORD", "p");
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
    let server = Running::start(bot(&["serve", "--open", "--listen", "127.0.0.1:0"]));
    let line = server.line_with("listening on");
    let url = line.trim_start_matches("listening on ").to_owned();
    let mut command = bot(&["--url", &url, "--username", "b", "--json", "--once"]);
    command
        .args(["--within", "300ms"])
        .env("SNEK_PASSWORD", "p");
    let (code, out, _) = outcome(command);
    assert_eq!(code, Some(1));
    let events = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<serde_json::Value> = events.collect();
    let names: Vec<_> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(names, ["connected", "note", "error"], "{out}");
    let mut nowhere = bot(&["--url", "ws://127.0.0.1:1", "--username", "b", "--json"]);
    nowhere.env("SNEK_PASSWORD", "p");
    let running = Running::start(nowhere);
    running.line_with("\"event\":\"lost\"");
}

#[test]
fn a_password_in_the_environment_goes_before_the_file() {
    let file = std::env::temp_dir().join(format!("bot-cli-{}", std::process::id()));
    std::fs::write(&file, "b:of-the-file\nc:of-the-file\n").unwrap();
    let mut server = bot(&[
        "serve",
        "--user",
        "b",
        "--user",
        "c",
        "--listen",
        "127.0.0.1:0",
    ]);
    server.arg("--passwords").arg(&file);
    server.env("SNEK_PASSWORD_B", "of-the-variable");
    let server = Running::start(server);
    let line = server.line_with("listening on");
    let url = line.trim_start_matches("listening on ").to_owned();
    for (name, password, expected) in [
        ("b", "of-the-variable", 1),
        ("b", "of-the-file", 3),
        ("c", "of-the-file", 1),
    ] {
        let mut command = bot(&[
            "--url",
            &url,
            "--username",
            name,
            "--once",
            "--within",
            "100ms",
        ]);
        command.env("SNEK_PASSWORD", password);
        let (code, _, err) = outcome(command);
        assert_eq!(code, Some(expected), "{name} {password}: {err}");
    }
    std::fs::remove_file(file).unwrap();
}

#[cfg(unix)]
#[test]
fn ctrl_c_aborts_a_bot_that_has_to_answer_once() {
    let server = Running::start(bot(&["serve", "--open", "--listen", "127.0.0.1:0"]));
    let line = server.line_with("listening on");
    let url = line.trim_start_matches("listening on ").to_owned();
    for (once, expected) in [(&["--once"][..], 130), (&[], 0)] {
        let mut command = bot(&["--url", &url, "--username", "b"]);
        command.args(once).env("SNEK_PASSWORD", "p");
        let running = Running::start(command);
        running.line_with("logged in");
        running.interrupt();
        assert_eq!(running.end(), Some(expected), "{once:?}");
    }
}
