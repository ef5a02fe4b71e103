//! Standard output: what is text stays text, and what cannot be written is an error of every command.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::daemon_cli::{Fixture, daemon};
use crate::programs::{
    Ended as _, Folder, Running, SWITCHBOARD, exchange, host, model, outcome, program, switchboard,
};

/// A command line that prints, for the whole program.
fn line(args: &[&str]) -> Command {
    let mut command = program(SWITCHBOARD);
    command.args(args).stdin(Stdio::null());
    command
}

/// What a command prints to whom cannot read it. Servers are in the list of those that end by themselves.
#[cfg(target_os = "linux")]
fn printing(daemon: &str, gateway: &str, script: &str) -> Vec<Command> {
    [
        &["--help"][..],
        &["--version"],
        &["bot", "serve", "--help"],
        &["completions", "bash"],
        &["man"],
        &["gateway", "chat", "hello", "--url", gateway],
        &["gateway", "chat", "hello", "--json", "--url", gateway],
        &["daemon", "run", "hello", "--yes", "--url", daemon],
        &["daemon", "run", "hello", "--yes", "--json", "--url", daemon],
        &["daemon", "chat", "--yes", "--url", daemon],
        &["daemon", "status", "--url", daemon],
        &["wire", "decode", script],
    ]
    .into_iter()
    .map(line)
    .collect()
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error_and_one_that_nobody_reads_is_not() {
    use std::io::Write as _;
    let place = Fixture::new();
    let server = place.serve(&[]);
    let (_gateway, gateway_url) = Running::serve(line(&["gateway", "serve", "--port", "0"]));
    let folder = Folder::new("output");
    let script = folder.0.join("frames.jsonl");
    let frame = r#"{"at":1,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}"#;
    std::fs::write(&script, format!("{{\"transcript\":1}}\n{frame}\n")).unwrap();
    for make in 0.. {
        let commands = || printing(&server.url, &gateway_url, script.to_str().unwrap());
        let Some(mut command) = commands().into_iter().nth(make) else {
            break;
        };
        let mut child = |out: Stdio| {
            let child = command
                .stdin(Stdio::piped())
                .stdout(out)
                .stderr(Stdio::piped());
            let mut child = child.spawn().unwrap();
            // What is chatted about, where a chat reads it.
            let _ = child.stdin.take().unwrap().write_all(b"hello\n");
            let output = child.wait_with_output().unwrap();
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.code(), words)
        };
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, words) = child(full.into());
        let told = "cannot write to standard output: No space left on device";
        assert_eq!(
            (code, words.matches(told).count()),
            (Some(1), 1),
            "{make}: {words}"
        );
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, words) = child(writer.into());
        assert!(
            code == Some(0) && !words.contains("cannot write"),
            "{make}: {words}"
        );
        // As shells open it, and as Python and Node do.
        for read in [false, true] {
            let null = OpenOptions::new().read(read).write(true).open("/dev/null");
            let (code, words) = child(null.unwrap().into());
            let is_told = words.contains("standard output");
            assert_eq!((code, is_told), (Some(0), false), "{make}: {words}");
        }
    }
}

#[test]
fn tabs_and_ends_of_lines_go_through_a_pipe_and_escapes_do_not() {
    // The end of a line and an emoji, each in two pieces, and half an emoji.
    let pieces = [
        r#"{"choices":[{"delta":{"content":"a\tb\r"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\n\tc\u001b[31m\u009b1m\u202e \ud83d"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\ude00 \ud83d"},"finish_reason":"stop"}]}"#,
    ]
    .join("\n\ndata: ");
    let (url, answers) = model(&[&pieces, &pieces]);
    let place = Fixture::new();
    let mut command = daemon(&["serve", "--listen", "127.0.0.1:0", "--commands", "open"]);
    command
        .args(["--provider", "openai", "--base-url", &url, "--model", "toy"])
        .env("OPENAI_API_KEY", "sk-hunter2");
    let server = place.start(command);
    let odd = |c: char| rpc_core::text::is_control(c) && !"\t\r\n".contains(c);
    let (out, _) = outcome(server.client(&["run", "hello", "--yes"])).ends(0);
    assert!(out.starts_with("a\tb\r\n\tc"), "{out:?}");
    // Where nothing shows it, directions are text.
    let controls = |c: char| c.is_control() && !"\t\r\n".contains(c);
    assert!(
        !out.contains(controls) && out.contains('\u{202e}'),
        "{out:?}"
    );
    assert!(out.trim_end().ends_with(" 😀 \u{fffd}"), "{out:?}");
    let (_, out, _) = outcome(server.client(&["run", "hello", "--yes", "--json"]));
    assert!(!out.contains(odd), "{out:?}");
    let mut events = out
        .lines()
        .map(|it| serde_json::from_str::<Value>(it).unwrap());
    assert!(
        events.any(|it| it.to_string().contains('\u{202e}')),
        "{out:?}"
    );
    answers.join().unwrap();
}

#[test]
fn a_chat_server_reports_its_health_and_its_metrics() {
    let command = switchboard("bot", &["serve", "--open", "--listen", "127.0.0.1:0"]);
    let (_server, url) = Running::serve(command);
    let host = host(&url);
    let get = |path: &str| exchange(host, &format!("GET {path}"), "", "");
    assert!(get("/health").contains(r#"{"status":"ok"}"#));
    assert!(get("/metrics").starts_with("HTTP/1.1 200"));
    assert!(get("/").starts_with("HTTP/1.1 426"));
    outcome(line(&["health", &format!("http://{host}/health")])).ends(0);
}

#[cfg(unix)]
#[test]
fn a_limit_on_the_size_of_files_is_reported_like_a_full_disk() {
    let folder = Folder::new("file-limit");
    let out = std::fs::File::create(folder.0.join("out")).unwrap();
    let mut command = program("/bin/sh");
    let limited = "ulimit -f 0 && exec \"$0\" \"$@\"";
    command.args(["-c", limited, SWITCHBOARD, "completions", "bash"]);
    let output = command.stdout(out).output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    let told = "cannot write to standard output: File too large";
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(words.contains(told), "{words}");
}

#[test]
fn an_answer_with_a_frame_that_cannot_be_read_is_not_taken_for_whole() {
    let place = Fixture::new();
    let daemon = place.serve(&[]);
    let folder = Folder::new("unreadable");
    let mut gateway = line(&["gateway", "serve", "--port", "0"]);
    gateway.env("HOME", &folder.0);
    let (_gateway, url) = Running::serve(gateway);
    let gateway = url.replace("http://", "ws://") + "ws";
    for (to, rule, client) in [
        (
            gateway.as_str(),
            "s2c text truncate 30 #2",
            ["gateway", "chat", "count to 3"].as_slice(),
        ),
        (
            daemon.url.as_str(),
            "s2c chat.event truncate 30 #4",
            &["daemon", "run", "--yes", "!slow 3 1"],
        ),
    ] {
        let mut proxy = line(&["wire", "proxy", "--to", to, "--fault", rule]);
        proxy.args(["--listen", "127.0.0.1:0", "--seed", "1"]);
        let (_proxy, url) = Running::serve(proxy);
        let (code, out, err) = outcome(line(&[client, &["--url", &url]].concat()));
        assert!(err.contains("cannot be read"), "{client:?}: {err}");
        // The end of an agent's run has the whole answer.
        let is_whole = code == Some(0) && out.ends_with("\n\n1 2 3\n");
        let is_told = code == Some(1) && err.contains("a part of the answer may be missing");
        assert!(is_told || is_whole, "{client:?}: {code:?} {out} {err}");
    }
}
