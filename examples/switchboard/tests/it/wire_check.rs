//! `switchboard wire check` against real servers and clients, with all its reports.

use std::fs;
use std::process::{Command, Output};

use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions};
use serde_json::Value;

use crate::programs::{Folder, Running, SWITCHBOARD, switchboard};

fn check(words: &[&str]) -> Command {
    switchboard("wire", &[&["check"], words].concat())
}

async fn output(mut command: Command) -> Output {
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    run.await.unwrap()
}

async fn gateway() -> String {
    let backend = MemoryBackend::new().with_plugin("echo");
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default());
    let server = server.await.unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    url
}

#[tokio::test]
async fn a_server_is_checked_and_every_report_says_the_same() {
    let (url, folder) = (gateway().await, Folder::new("wire-check"));
    let (junit, html) = (folder.0.join("report.xml"), folder.0.join("report.html"));
    let mut command = check(&["server", &url, "--protocol", "exoclaw", "--json"]);
    command.args(["--only", "status.", "--only", "hello.", "--only", "auth."]);
    command.arg("--junit").arg(&junit).arg("--html").arg(&html);
    let output = output(command).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    assert_eq!(report["counts"]["fail-must"], 0);
    let rows = report["rows"].as_array().unwrap();
    let ping = rows
        .iter()
        .find(|row| row["id"] == "exoclaw.server.status.version")
        .unwrap();
    assert_eq!(
        (&ping["verdict"], &ping["level"]),
        (&"pass".into(), &"MUST".into())
    );
    let evidence = ping["evidence"].as_array().unwrap();
    assert!(
        evidence
            .iter()
            .any(|frame| frame["text"].as_str().unwrap().contains("status"))
    );
    let (junit, html) = (
        fs::read_to_string(junit).unwrap(),
        fs::read_to_string(html).unwrap(),
    );
    for row in rows {
        let id = row["id"].as_str().unwrap();
        assert!(junit.contains(id) && html.contains(id), "{id}");
    }
}

#[tokio::test]
async fn a_server_that_breaks_a_rule_fails_with_the_frames() {
    let program = ["serve", "--open", "--listen", "127.0.0.1:0"];
    let (_running, url) = serve("bot", &program);
    let mut command = check(&["server", &url, "--only", "login.unknown"]);
    // Everyone may log in there.
    command.args(["--set", "username=ann", "--set", "password=secret"]);
    let output = output(command).await;
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in [
        "FAIL MUST   snek.server.login.unknown",
        r#"-> {"method":"login""#,
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn fails_if_nothing_listens_at_the_address() {
    let command = check(&[
        "server",
        "ws://127.0.0.1:1/ws",
        "--protocol",
        "exoclaw",
        "--only",
        "hello.",
    ]);
    let code = output(command).await.status.code();
    assert!(matches!(code, Some(1 | 3)), "{code:?}");
}

#[tokio::test]
async fn our_own_program_is_checked_as_a_client() {
    let mut command = check(&[
        "client",
        "--protocol",
        "exoclaw",
        "--only",
        "reply.",
        "--only",
        "request.",
    ]);
    command.args(["--timeout", "30", "--", SWITCHBOARD, "gateway", "chat"]);
    command.args(["--url", "{url}", "hello"]);
    let output = output(command).await;
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("pass MUST   exoclaw.client.reply.text"),
        "{text}"
    );
}

#[tokio::test]
async fn a_client_that_asks_over_http_first_is_answered() {
    let folder = Folder::new("wire-check-http");
    let home = folder.0.to_str().unwrap();
    let daemon = ["daemon", "run", "--yes", "--api-key", "k", "--url"];
    let clients: [(&str, &[&str], &str, &[&str]); 2] = [
        (
            "acolyte",
            &daemon,
            "/v1/status",
            &["auth.", "request.model", "reply.", "lost."],
        ),
        (
            "connectonion",
            &["agent", "chat", "--home", home],
            "/info",
            &["connect.", "output.", "resume.o"],
        ),
    ];
    for (protocol, program, path, rows) in clients {
        let mut command = check(&["client", "--protocol", protocol, "--json"]);
        command.args(["--timeout", "30", "--set", "token=k"]);
        command.args(rows.iter().flat_map(|row| ["--only", row]));
        command.arg("--").arg(SWITCHBOARD).args(program);
        command.args(["{url}", "hello"]);
        let output = output(command).await;
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{report:#}");
        let checked = report["rows"].as_array().unwrap();
        assert_eq!(report["counts"]["pass"], checked.len(), "{report:#}");
        for row in checked {
            let asked = &row["evidence"][0]["text"];
            assert_eq!(*asked, format!("GET {path}"), "{row:#}");
        }
    }
}

/// Starts a server of ours, and returns it with the URL that it tells.
fn serve(command: &str, words: &[&str]) -> (Running, String) {
    let mut program = switchboard(command, words);
    program.env("SNEK_PASSWORD_ANN", "secret");
    let running = Running::start(program);
    let line = running.line_with("listening on");
    let mut urls = line.split([' ', '(', ')', ',']);
    // The gateway names its page first.
    let url = urls.rfind(|word| word.starts_with("ws://") || word.starts_with("http://"));
    let url = url
        .unwrap()
        .trim_end_matches('/')
        .replace("http://", "ws://");
    (running, url)
}

#[tokio::test]
async fn our_own_servers_keep_to_their_protocols() {
    let folder = Folder::new("wire-check-own");
    let config = folder.0.join("gateway.toml");
    fs::write(&config, "").unwrap();
    let (config, place) = (config.to_str().unwrap(), folder.0.to_str().unwrap());
    let any = ["--listen", "127.0.0.1:0"];
    let servers: [(&str, &str, Vec<&str>, &[&str]); 5] = [
        (
            "snek",
            "bot",
            [&["serve", "--user", "ann"], &any[..]].concat(),
            &["login.", "request."],
        ),
        (
            "exoclaw",
            "gateway",
            vec!["--config", config, "--port", "0"],
            &["chat.serialized", "upgrade.", "status."],
        ),
        (
            "smarthole",
            "router",
            any.to_vec(),
            &["registration.", "response."],
        ),
        (
            "connectonion",
            "agent",
            [&["host", "--home", place], &any[..]].concat(),
            &["connect.", "input."],
        ),
        (
            "acolyte",
            "daemon",
            [&["serve", "--workspace", place], &any[..]].concat(),
            &["chat.", "status."],
        ),
    ];
    for (protocol, command, words, rows) in servers {
        let (_running, url) = serve(command, &words);
        let mut command = check(&["server", &url, "--protocol", protocol, "--timeout", "30"]);
        for set in ["username=ann", "password=secret", "model=scripted"] {
            command.args(["--set", set]);
        }
        command.args(rows.iter().flat_map(|row| ["--only", row]));
        let output = output(command).await;
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{protocol}: {text}");
        assert!(!text.contains("FAIL"), "{protocol}: {text}");
    }
}

#[cfg(unix)]
#[test]
fn a_check_ends_the_processes_of_its_client() {
    use std::io::Read as _;

    let folder = Folder::new("wire-check-group");
    let pipe = folder.0.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let mut command = check(&["client", "--protocol", "exoclaw", "--only", "client.path"]);
    let script = format!("sleep 1000 > '{}' & wait", pipe.display());
    command.args(["--timeout", "600", "--", "sh", "-c", &script]);
    let running = Running::start(command);
    // Opens when the grandchild has begun to write, and ends when it has ended.
    let mut pipe = fs::File::open(&pipe).unwrap();
    running.interrupt();
    let mut text = String::new();
    assert_eq!(pipe.read_to_string(&mut text).unwrap(), 0);
    assert_eq!(running.end(), Some(130));
}
