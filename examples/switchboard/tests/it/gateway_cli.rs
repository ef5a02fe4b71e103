//! The gateway's command line: help, mistakes, chats, its end, and what it remembers.

mod chat;
mod samples;
mod terminal;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use switchboard::gateway::config::{Config, DataDir, Origin};

use crate::programs::{
    self, Ended as _, Outcome, Running, assert_holds, exchange, host, outcome, switchboard,
};
use crate::tree::{read, root};

/// A folder that is removed with the value.
struct Folder(programs::Folder);

impl Folder {
    fn new() -> Self {
        Self(programs::Folder::new("gateway-cli"))
    }

    /// The gateway's program, at home in this folder.
    fn gateway(&self, args: &[&str]) -> Command {
        let mut command = switchboard("gateway", args);
        command.env("HOME", &*self.0);
        command
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A gateway on a free port, and its WebSocket.
    fn start(&self, args: &[&str]) -> (Running, String) {
        let mut command = self.gateway(&["--port", "0"]);
        command.args(args);
        start(command)
    }

    /// What is said of a configuration. One after the other, for all look at the same port.
    fn check(&self, text: &str) -> Outcome {
        let file = self.file("config.toml", text);
        checked(self.gateway(&["check", "--config", &file]))
    }

    /// Says something: exit code, answer, the rest.
    fn chat(&self, url: &str, args: &[&str]) -> Outcome {
        let mut command = self.gateway(&["chat", "--url", url]);
        command.args(args);
        outcome(command)
    }

    /// Says something that is answered well.
    fn hears(&self, url: &str, args: &[&str]) -> String {
        let (out, _) = self.chat(url, args).ends(0);
        out
    }
}

fn start(command: Command) -> (Running, String) {
    let running = Running::start(command);
    let line = running.line_with("listening on http://127.0.0.1:");
    let (_, url) = line.split_once("WebSocket: ").unwrap();
    (running, url.trim_end_matches(')').to_owned())
}

/// The whole answer to a plain request.
fn get(url: &str, path: &str) -> String {
    exchange(host(url), &format!("GET {path}"), "", "")
}

#[test]
fn the_start_says_which_web_pages_may_connect() {
    let folder = Folder::new();
    for (args, pages) in [
        (&[][..], "those of this machine, at any port"),
        (
            &["--token", "s3cret"],
            "its own; those of this machine, at any port",
        ),
    ] {
        let mut command = folder.gateway(&["serve", "--port", "0"]);
        command.args(args);
        let (running, _) = start(command);
        let line = running.line_with("web pages");
        assert_eq!(line, format!("web pages that may connect: {pages}"));
    }
}

#[test]
fn a_gateway_without_a_file_serves_its_page_and_chats() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let health = get(&url, "/health");
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    assert!(health.ends_with("\r\n\r\nok"), "{health}");
    assert_holds(&get(&url, "/"), &["HTTP/1.1 200", "<html", "app.js"]);
    let answer = folder.chat(&url, &["count to 4"]);
    let expected = "I count: 1 2 3 4 - done\n".to_owned();
    assert_eq!(answer, (Some(0), expected, String::new()));
    // The address of the page will do as well.
    let page = url.replace("ws://", "http://").replace("/ws", "/");
    assert_eq!(folder.hears(&page, &["count to 1"]), "I count: 1 - done\n");
}

#[cfg(unix)]
#[test]
fn a_token_is_required_and_never_repeated() {
    let folder = Folder::new();
    let mut command = folder.gateway(&["--port", "0"]);
    command.env("EXOCLAW_TOKEN", "hunter2").args(["-v", "-v"]);
    let (gateway, url) = start(command);
    let mut right = folder.gateway(&["chat", "--url", &url, "count to 1"]);
    right.env("EXOCLAW_TOKEN", "hunter2");
    outcome(right).prints("I count: 1 - done\n");
    let mut wrong = folder.gateway(&["chat", "--url", &url, "count to 1"]);
    wrong.env("EXOCLAW_TOKEN", "hunter3");
    let err = outcome(wrong).fails(3, &["authentication failed", "EXOCLAW_TOKEN"]);
    assert!(!err.contains("hunter"), "{err}");
    let mut elsewhere = folder.gateway(&["chat", "--url", "ws://192.0.2.1", "hi"]);
    elsewhere.env("EXOCLAW_TOKEN", "hunter2");
    outcome(elsewhere).fails(2, &["192.0.2.1 without encryption"]);
    gateway.interrupt();
    let (code, log) = gateway.end_with_lines();
    assert_eq!(code, Some(0));
    assert!(log.len() > 3, "{log:#?}");
    assert!(!log.iter().any(|line| line.contains("hunter")), "{log:#?}");
}

#[test]
fn a_wrong_call_or_file_is_refused_with_the_reason() {
    let folder = Folder::new();
    let toml = folder.file("bad.toml", "[agent]\nid = \"a\"\nmodel = nope\n");
    let provider = folder.file("provider.toml", "[agent]\n  provider = \"abacus\"\n");
    let missing = folder.0.join("missing.toml");
    let missing = missing.to_str().unwrap();
    for (args, token, expected) in [
        (
            &["--bind", "0.0.0.0", "--port", "0"][..],
            None,
            &["token required", "Set --token or EXOCLAW_TOKEN env var."][..],
        ),
        (
            &["--bind", "0.0.0.0", "--port", "0"],
            Some(" \u{feff}\r\n"),
            &["token required"],
        ),
        (
            &["--port", "0"],
            Some("hunt\u{435}r2"),
            &["EXOCLAW_TOKEN: character 5 is U+0435"],
        ),
        (&["check", "--config", &toml], None, &["bad.toml:3:9: "]),
        (&["--config", &toml], None, &["bad.toml:3:9: "]),
        (
            &["--config", &provider, "--port", "0"],
            None,
            &[
                "provider.toml:2:14: ",
                "'abacus'",
                "scripted, openai, anthropic",
            ],
        ),
        (&["--config", missing], None, &["missing.toml"]),
        (&["--port", "70000"], None, &["--port"]),
        (&["--fast"], None, &["--fast"]),
        (&["chat"], None, &["nothing to say"]),
        (&["chat", " "], None, &["nothing to say"]),
    ] {
        let mut command = folder.gateway(args);
        if let Some(token) = token {
            command.env("EXOCLAW_TOKEN", token);
        }
        outcome(command).fails(2, expected);
    }
}

/// What a command says that looks whether its port is free: one after the other, for all have the same one.
fn checked(command: Command) -> Outcome {
    static PORT: Mutex<()> = Mutex::new(());
    let _one = PORT.lock();
    outcome(command)
}

#[test]
fn a_configuration_is_checked_and_explained() {
    let folder = Folder::new();
    let file = folder.file(
        "config.toml",
        "[agent]\nid = \"personal\"\n[budgets]\ndaily = 5\n[[bindings]]\nagent_id = \"work\"\nchannel = \"x\"\n",
    );
    let (out, err) = checked(folder.gateway(&["check", "--config", &file])).ends(0);
    assert_holds(&out, &["127.0.0.1:7200", "\"personal\"", "day 5"]);
    assert_holds(
        &err,
        &["warning: [[bindings]] number 0 names the agent \"work\""],
    );
    let mut by_variable = folder.gateway(&["check"]);
    by_variable.env("EXOCLAW_CONFIG", &file);
    assert_eq!(checked(by_variable).1, out);
    folder
        .check("[gateway]\n[budget]\ndaily = 5\n")
        .fails(2, &["config.toml:2:2: unknown field `budget`", "`budgets`"]);
}

#[test]
fn a_check_reports_what_a_start_would() {
    let folder = Folder::new();
    let text = "[agent]\nsoul_path = \"soul.md\"\n\
        tools = [\"hammer\"]\n[[plugins]]\nname = \"saw\"\npath = \"builtin:saw\"\n";
    let (_, err) = folder.check(text).ends(1);
    let expected = [
        "soul.md cannot be read",
        "error: plugin \"saw\" is skipped",
        "\"hammer\"",
    ];
    assert_holds(&err, &expected);
    let file = folder.file("there.toml", "[gateway]\nbind = \"192.0.2.1\"\n");
    let check = || folder.gateway(&["check", "--config", &file]);
    checked(check()).fails(2, &["token required"]);
    let mut with_token = check();
    with_token.env("EXOCLAW_TOKEN", "a long token of this test");
    checked(with_token).fails(1, &["cannot listen on 192.0.2.1:7200"]);
    assert!(!folder.0.join("gateway.redb").exists());
}

#[test]
fn a_check_fails_if_every_chat_would() {
    let folder = Folder::new();
    for (text, expected) in [
        (
            "[agent]\nprovider = \"anthropic\"\n",
            "every chat will fail: anthropic needs a key",
        ),
        (
            "[agent]\ncatch_all = false\n",
            "every chat will fail: [agent] catch_all is off",
        ),
        (
            "[budgets]\ndaily = 0\n",
            "every chat will fail: [budgets] daily is 0",
        ),
        (
            "[[plugins]]\nname = \"x\"\npath = \"missing.wasm\"\n",
            "plugin \"x\" is skipped: ",
        ),
    ] {
        folder
            .check(text)
            .fails(1, &[&format!("error: {expected}")]);
    }
    let text = "[agent]\nprovider = \"anthropic\"\n";
    let file = folder.file("config.toml", text);
    let mut with_key = folder.gateway(&["check", "--config", &file]);
    with_key.env("ANTHROPIC_API_KEY", "k");
    assert_eq!(checked(with_key).0, Some(0));
}

#[test]
fn a_check_fails_where_a_start_would() {
    let folder = Folder::new();
    let openai = "[agent]\nprovider = \"openai\"\nmodel = \"toy\"\napi_key = \"k\"\n";
    let with = |line: &str| format!("{openai}{line}\n");
    for (text, starts, expected) in [
        (with("model_timeout = \"0s\""), false, "model_timeout"),
        (
            with("base_url = \"nowhere\""),
            false,
            "error: [agent] base_url",
        ),
        (with("[agent]"), false, "config.toml:5"),
        ("[gateway]\nbind = \"127.0.0.1.x\"\n".to_owned(), false, ""),
        ("[gateway]\nbind = \"[::1]\"\n".to_owned(), true, ""),
        ("[gateway]\nbind = \"localhost\"\n".to_owned(), true, ""),
    ] {
        let file = folder.file("config.toml", &text);
        let run = |args: &[&str]| {
            let mut command = folder.gateway(args);
            // Or else addresses that others can reach are refused before.
            command.env("EXOCLAW_TOKEN", "a long token of this test");
            checked(command)
        };
        let (code, _, err) = run(&["check", "--config", &file]);
        assert_eq!(code == Some(0), starts, "{text}: {err}");
        assert!(
            err.contains(expected) && !err.contains("[agent] [agent]"),
            "{err}"
        );
        if !starts {
            let (started, _, said) = run(&["--config", &file]);
            assert_eq!((started, said.lines().last()), (code, err.lines().last()));
        }
    }
    folder
        .check("[nats]\nurl = \"nats://127.0.0.1:1\"\n")
        .fails(3, &["no NATS server", "127.0.0.1:1"]);
}

#[cfg(unix)]
#[test]
fn a_configuration_comes_from_a_pipe_and_its_variable_is_never_ignored() {
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::new();
    let mut check = folder.gateway(&["check", "--config", "/dev/stdin"]);
    let mut running = check.stdin(std::process::Stdio::piped()).spawn().unwrap();
    let text = b"[agent]\nid = \"piped\"\n";
    running.stdin.take().unwrap().write_all(text).unwrap();
    let out = running.wait_with_output().unwrap().stdout;
    let expected = ["agent \"piped\"", "/.exoclaw\n"];
    assert_holds(&String::from_utf8_lossy(&out), &expected);
    let mut check = folder.gateway(&["check"]);
    check.env("EXOCLAW_CONFIG", std::ffi::OsStr::from_bytes(b"/no\xff"));
    assert_holds(&checked(check).2, &["EXOCLAW_CONFIG names /no\u{fffd}"]);
}

#[test]
fn reports_that_nothing_is_stored_without_a_home() {
    let folder = Folder::new();
    let mut check = folder.gateway(&["check"]);
    check.env_remove("HOME").env_remove("USERPROFILE");
    let (out, err) = checked(check).ends(0);
    assert_holds(&out, &["in memory only"]);
    assert_holds(&err, &["warning: HOME is not set", "--config"]);
}

#[test]
fn a_check_tries_the_folder_of_the_data() {
    let folder = Folder::new();
    let config = |data: &str| folder.check(&format!("[gateway]\ndata_dir = \"{data}\"\n"));
    assert_eq!(config("a/b/c").0, Some(0));
    assert!(!folder.0.join("a").exists(), "nothing is left behind");
    folder.file("plain", "");
    let (code, _, err) = config("plain/below");
    assert_eq!(code, Some(1), "{err}");
    let cause = "plain: Not a directory (os error 20); a folder is needed there: choose another with [gateway] data_dir";
    assert_holds(&err, &["error: [gateway] data_dir: ", cause]);
    for command in ["serve", "usage"] {
        let file = folder.0.join("config.toml");
        let args = [command, "--config", file.to_str().unwrap()];
        assert_eq!(
            outcome(folder.gateway(&args)),
            (code, String::new(), err.clone())
        );
    }
    folder.file("exoclaw.redb", &"no database ".repeat(1000));
    config(".").fails(
        1,
        &[
            "exoclaw.redb cannot be taken over",
            "move it away to start over",
        ],
    );
    folder.file("gateway.redb", "");
    let (_, err) = config(".").ends(0);
    assert_holds(
        &err,
        &["warning: ", "gateway.redb is empty: nothing is remembered"],
    );
    folder.file("gateway.redb", &"no database ".repeat(1000));
    config(".").fails(1, &["gateway.redb is damaged"]);
}

#[cfg(unix)]
#[test]
fn a_damaged_store_is_one_line_and_no_panic() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "[gateway]\n");
    let (gateway, url) = folder.start(&["--config", &file]);
    for number in 0..20 {
        folder.hears(&url, &["--account", &number.to_string(), "count to 9"]);
    }
    gateway.interrupt();
    assert_eq!(gateway.end(), Some(0));
    let store = folder.0.join("gateway.redb");
    let whole = fs::read(&store).unwrap();
    assert!(whole.len() > 8192);
    let mut damaged = 0;
    // The header and its copies, and some of every region.
    for page in (0..4).chain((4..whole.len() / 4096).step_by(23)) {
        let mut bytes = whole.clone();
        let start = page * 4096;
        bytes[start..start + 4096].fill(0xa5);
        fs::write(&store, &bytes).unwrap();
        for args in [["usage", "--config"], ["check", "--config"]] {
            let mut command = folder.gateway(&args);
            let (code, _, err) = checked({
                command.arg(&file);
                command
            });
            assert!(
                !err.contains("panic") && !err.contains("RUST_BACKTRACE"),
                "{err}"
            );
            // What it is, and what it held.
            assert!(err.lines().count() < 3, "page {page}: {err}");
            damaged += usize::from(err.contains("damaged"));
            assert!(
                code == Some(0) || err.contains("damaged"),
                "page {page}: {err}"
            );
        }
    }
    assert!(damaged > 0);
}

#[test]
fn an_empty_store_is_reported_at_the_start() {
    let folder = Folder::new();
    folder.file("gateway.redb", "");
    let file = folder.file("config.toml", "[gateway]\n");
    let (code, out, err) = outcome(folder.gateway(&["usage", "--config", &file]));
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert_holds(&err, &["gateway.redb is empty"]);
    let mut command = folder.gateway(&["--port", "0"]);
    command.args(["--config", &file]);
    let gateway = Running::start(command);
    gateway.line_with("gateway.redb is empty: nothing is remembered, and budgets start at 0");
}

#[test]
fn a_second_gateway_cannot_use_the_data_of_the_first() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "");
    let (_first, _) = folder.start(&["--config", &file]);
    outcome(folder.gateway(&["--port", "0", "--config", &file]))
        .fails(1, &["in use by switchboard (process "]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (_first, url) = folder.start(&[]);
    let port = url.trim_end_matches("/ws").rsplit(':').next().unwrap();
    outcome(other.gateway(&["--port", port]))
        .fails(1, &[&format!("cannot listen on 127.0.0.1:{port}: ")]);
}

#[cfg(unix)]
#[test]
fn a_shutdown_lets_a_reply_finish_and_keeps_the_conversation() {
    let folder = Folder::new();
    let file = folder.file(
        "config.toml",
        "[gateway]\nextensions = true\n[budgets]\nsession = 300\n",
    );
    let (gateway, url) = folder.start(&["--config", &file]);
    let name = folder.hears(&url, &["My name is Ann. Count to 1!"]);
    assert_eq!(name, "I count: 1 - done\n");
    let long = "story ".repeat(120);
    folder.hears(&url, &["--peer", "long", &long]);

    let rest = in_the_middle(&url, "!slow 6 80", || {
        gateway.interrupt();
        gateway.line_with("finishing the work in progress");
    });
    assert_eq!(rest.as_deref(), Some("2 3 4 5 6"));
    gateway.line_with("0 cut");
    assert_eq!(gateway.end(), Some(0));

    let (_gateway, url) = folder.start(&["--config", &file]);
    let known = folder.hears(&url, &["--search", "name"]);
    assert_eq!(known, "My name is Ann. Count to 1!\n");
    folder
        .chat(&url, &["--peer", "long", &long])
        .fails(3, &["token budget exceeded (session: ", "/300)"]);
    // Another account is another user.
    let known = folder.hears(&url, &["--account", "eve", "--search", "name"]);
    assert_eq!(known, "");
}

#[cfg(unix)]
#[test]
fn prints_the_usage_beside_a_running_gateway_and_after_its_end() {
    let folder = Folder::new();
    let file = folder.file("config.toml", "[gateway]\n");
    let usage = |last: &str| outcome(folder.gateway(&["usage", "--config", &file, "--last", last]));
    assert_eq!(usage("9"), (Some(0), String::new(), String::new()));
    let (gateway, url) = folder.start(&["--config", &file]);
    folder.hears(&url, &["SECRET plans"]);
    folder.hears(&url, &["--account", "eve", "count to 1"]);
    let beside = usage("9");
    assert_eq!((beside.0, beside.2.as_str()), (Some(0), ""));
    assert_eq!(usage("1").1.lines().count(), 1);
    let socket = folder.0.join("exoclaw.sock");
    let mode = fs::metadata(&socket).unwrap().permissions();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode);
    assert_eq!(mode & 0o777, 0o600);
    gateway.interrupt();
    assert_eq!(gateway.end(), Some(0));
    assert!(!socket.exists());
    assert_eq!(usage("9"), beside);
    let (code, all, _) = usage("9");
    assert_eq!((code, all.lines().count()), (Some(0), 2));
    assert!(!all.contains("SECRET"), "{all}");
    let (_, last, _) = usage("1");
    assert_holds(&last, &["default:cli:eve:main", "\"output_tokens\":"]);
    assert!(all.ends_with(&last));
}

/// Says something, does something when the answer has begun, and returns the rest of the answer.
#[cfg(unix)]
fn in_the_middle(url: &str, text: &str, meanwhile: impl FnOnce()) -> Option<String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let config = exoclaw_proto::client::ClientConfig::default();
        let (client, _, connection) = exoclaw_proto::net::connect_lazy(url, config).unwrap();
        tokio::spawn(connection.run());
        client.ready().await.unwrap();
        let mut chat = client.chat(text).await;
        chat.next().await.unwrap().unwrap();
        meanwhile();
        chat.finish().await.ok()
    })
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_at_once() {
    let folder = Folder::new();
    let (gateway, url) = folder.start(&[]);
    let rest = in_the_middle(&url, "!slow 10000 50", || {
        gateway.interrupt();
        gateway.line_with("Ctrl-C again ends at once");
        gateway.interrupt();
    });
    assert_eq!(rest, None);
    assert_eq!(gateway.end(), Some(130));
}
