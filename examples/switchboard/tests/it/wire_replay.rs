//! `switchboard wire` between our own programs: recorded, replayed, decoded, broken, checked.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::{Ended as _, Folder, Running, outcome, switchboard};

fn wire(args: &[&str]) -> Command {
    switchboard("wire", args)
}

fn command(name: &str, args: &[&str], folder: &Folder) -> Command {
    let mut command = switchboard(name, args);
    command.current_dir(&folder.0);
    command.env("HOME", &folder.0).env("TMPDIR", &folder.0);
    command
}

/// A program that listens, and its address.
fn listening(command: Command) -> (Running, String) {
    let running = Running::start(command);
    let line = running.line_with("://127.0.0.1:");
    let (_, rest) = line.split_once("://").unwrap();
    let end = rest.find([' ', '/', '"', ',', ')']).unwrap_or(rest.len());
    let url = format!("ws://{}", &rest[..end]);
    (running, url)
}

/// Records what a client and a server say.
fn record(folder: &Folder, url: &str, args: &[&str], client: impl FnOnce(&str)) -> PathBuf {
    let file = folder.0.join("run.jsonl");
    let _ = fs::remove_file(&file);
    let path = file.to_str().unwrap();
    let start = [
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--to",
        url,
        "--record",
        path,
    ];
    let (proxy, at) = listening(wire(&[&start[..], args].concat()));
    client(&at);
    // What is open may end.
    proxy.interrupt();
    assert_eq!(proxy.end(), Some(0));
    file
}

/// Replays to a server: exit code and output.
fn as_client(file: &Path, url: &str, args: &[&str]) -> (Option<i32>, String, String) {
    let start = ["replay", file.to_str().unwrap(), "--as", "client", url];
    outcome(wire(&[&start[..], args].concat()))
}

/// Replays to a client, and returns the exit code and the lines.
fn as_server(file: &Path, client: impl FnOnce(&str)) -> (Option<i32>, Vec<String>) {
    let path = file.to_str().unwrap();
    let args = ["replay", path, "--as", "server", "--listen", "127.0.0.1:0"];
    let (replay, url) = listening(wire(&args));
    client(&url);
    replay.end_with_lines()
}

fn runs(command: Command) {
    outcome(command).ends(0);
}

#[test]
fn a_chat_with_a_gateway_is_replayed_both_ways_and_a_changed_one_differs() {
    let folder = Folder::new("wire-replay-exoclaw");
    let serve = || listening(command("gateway", &["serve", "--port", "0"], &folder));
    let chat = |url: &str| {
        let url = format!("{url}/ws");
        runs(command(
            "gateway",
            &["chat", "--url", &url, "hello there"],
            &folder,
        ));
    };
    let (server, url) = serve();
    let file = record(&folder, &url, &[], chat);
    drop(server);
    let (_fresh, url) = serve();
    // How much a server remembers depends on its other chats.
    let (_, err) = as_client(&file, &url, &["--tolerate", "input_tokens"]).ends(0);
    assert!(err.contains("1 connections: all as recorded"), "{err}");
    assert_eq!(as_server(&file, chat).0, Some(0));

    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("hello there", "hello here")).unwrap();
    let (code, lines) = as_server(&file, |url| {
        let url = format!("{url}/ws");
        let _ = outcome(command(
            "gateway",
            &["chat", "--url", &url, "hello there"],
            &folder,
        ));
    });
    assert_eq!(code, Some(1), "{lines:?}");
    let expected = r#"params.content: recorded "hello here", got "hello there""#;
    assert!(
        lines.iter().any(|line| line.contains(expected)),
        "{lines:?}"
    );
}

#[test]
fn a_chat_with_a_bot_is_replayed_both_ways() {
    let folder = Folder::new("wire-replay-snek");
    let serve = || {
        let args = ["serve", "--open", "--listen", "127.0.0.1:0"];
        let (server, url) = listening(command("bot", &args, &folder));
        let mut bot = command("bot", &["--url", &url, "--username", "mybot"], &folder);
        bot.env("SNEK_PASSWORD", "secret");
        let bot = Running::start(bot);
        bot.line_with("logged in");
        (server, bot, url)
    };
    // An answer of one piece: where others are cut depends on time.
    let chat = |url: &str| {
        let args = ["chat", "--url", url, "--username", "ann", "@mybot echo hi"];
        runs(command("bot", &args, &folder));
    };
    let (server, bot, url) = serve();
    let file = record(&folder, &url, &[], chat);
    drop((server, bot));
    let (_server, _bot, url) = serve();
    // The server picks colours.
    as_client(&file, &url, &["--tolerate", "color"]).ends(0);
    assert_eq!(as_server(&file, chat).0, Some(0));
}

#[test]
fn tasks_of_a_daemon_are_replayed_both_ways_with_their_events() {
    let folder = Folder::new("wire-replay-acolyte");
    let serve = || {
        let args = ["serve", "--listen", "127.0.0.1:0", "--commands", "open"];
        listening(command("daemon", &args, &folder))
    };
    let task = |url: &str| {
        let args = ["run", "hi", "--yes", "--url", url];
        runs(command("daemon", &args, &folder));
        runs(command(
            "daemon",
            &[&args[..], &["--sse"]].concat(),
            &folder,
        ));
    };
    let (server, url) = serve();
    let file = record(&folder, &url, &[], task);
    drop(server);
    let (_fresh, url) = serve();
    as_client(&file, &url, &["--tolerate", "service"]).ends(0);
    let (code, lines) = as_server(&file, task);
    assert_eq!(code, Some(0), "{lines:?}");
}

#[test]
fn a_registration_with_a_router_is_replayed_both_ways() {
    let folder = Folder::new("wire-replay-smarthole");
    let serve = || listening(command("router", &["--listen", "127.0.0.1:0"], &folder));
    let client = |url: &str| {
        let args = ["client", "--url", url, "--name", "notes"];
        let client = Running::start(command("router", &args, &folder));
        client.line_with("registered as notes");
        client.interrupt();
        assert!(client.end().is_some());
    };
    let (server, url) = serve();
    let file = record(&folder, &url, &[], client);
    drop(server);
    let (_fresh, url) = serve();
    as_client(&file, &url, &[]).ends(0);
    assert_eq!(as_server(&file, client).0, Some(0));
}

#[test]
fn a_replay_needs_a_recording_a_url_and_a_key() {
    let folder = Folder::new("wire-replay-mistakes");
    let file = folder.0.join("run.jsonl");
    let path = file.to_str().unwrap();
    let signed = r#"{"at":0,"conn":1,"dir":"c2s","kind":"text","data":"{\"payload\":{\"timestamp\":1},\"signature\":\"a\"}"}"#;
    fs::write(&file, signed).unwrap();
    for (args, expected) in [
        (&["--as", "client"][..], "<URL>"),
        (&["--as", "client", "ws://127.0.0.1:1"], "--key FILE"),
        (
            &["--as", "server", "--listen", "0.0.0.0:0"],
            "on this machine only",
        ),
    ] {
        outcome(wire(&[&["replay", path], args].concat())).fails(2, &[expected]);
    }
}

#[test]
fn a_recording_is_decoded_from_a_file_and_a_pipe() {
    let folder = Folder::new("wire-decode");
    let file = folder.0.join("run.jsonl");
    let lines = [
        r#"{"transcript":1,"protocol":"exoclaw"}"#,
        r#"{"at":0.5,"conn":1,"dir":"c2s","kind":"text","data":"{\"token\":\"hunter2\"}"}"#,
        r#"{"at":1,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":7}"}"#,
        "",
    ];
    let text = lines.join("\n");
    fs::write(&file, &text).unwrap();
    let path = file.to_str().unwrap();
    let (out, err) = outcome(wire(&["decode", path])).ends(0);
    assert!(!out.contains("hunter2") && out.contains('^'), "{out}");
    assert!(
        err.contains("2 entries, 2 problems: 1 with errors"),
        "{err}"
    );
    let mut pipe = wire(&["decode", "--json"]);
    let mut running = Running::start_with(pipe.stdin(Stdio::piped()));
    running.input().write_all(text.as_bytes()).unwrap();
    let line = running.line_with("\"line\":3");
    let json: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&json["dir"], &json["conn"]), (&"c2s".into(), &1.into()));
    assert_eq!(running.end(), Some(0));

    fs::write(&file, "nonsense\n").unwrap();
    outcome(wire(&["decode", path])).ends(1);
    outcome(wire(&["decode", "no-such-file"])).ends(2);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let folder = Folder::new("wire-seed");
    let run = || {
        let (_server, url) = listening(command(
            "bot",
            &["serve", "--open", "--listen", "127.0.0.1:0"],
            &folder,
        ));
        let faults = ["--fault", "s2c * duplicate 1/2", "--seed", "7"];
        let file = record(&folder, &url, &faults, |url| {
            let args = [
                "chat",
                "--url",
                url,
                "--username",
                "ann",
                "--within",
                "300ms",
                "hi",
            ];
            let _ = outcome(command("bot", &args, &folder));
        });
        let text = fs::read_to_string(file).unwrap();
        let entries = text.lines().skip(1).map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            let fault = match &*text("kind") {
                "fault" => text("data"),
                _ => String::new(),
            };
            (text("dir"), text("kind"), fault)
        });
        let mut entries: Vec<_> = entries.collect();
        // The directions are recorded as they come; each has its order.
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        entries
    };
    let first = run();
    assert!(
        first.iter().any(|(_, kind, _)| kind == "fault"),
        "{first:?}"
    );
    assert_eq!(first, run());
}
