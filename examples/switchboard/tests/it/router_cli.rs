//! The router's command line: lines from a pipe, requests, the client with its file, mistakes.

use std::fs;
use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};

use serde_json::{Value, json};

use crate::programs::{self, Ended as _, Running, assert_holds, exchange, outcome, switchboard};

/// A folder that is removed with the value; clients keep their notes in it.
struct Folder(programs::Folder);

impl Folder {
    fn new() -> Self {
        Self(programs::Folder::new("router-cli"))
    }

    fn router(&self, args: &[&str]) -> Command {
        let mut command = switchboard("router", args);
        command.current_dir(&*self.0);
        command
    }

    /// A router on a free port, and what it is called.
    fn start(&self, args: &[&str]) -> Router {
        let mut command = self.router(&["--listen", "127.0.0.1:0"]);
        command.args(args);
        Router::start(command)
    }

    /// A client that is registered.
    fn client(&self, router: &Router, name: &str, args: &[&str]) -> Running {
        let mut command = self.router(&["client", "--url", &router.url, "--name", name]);
        command.args(args);
        let running = Running::start(command);
        running.line_with(&format!("registered as {name}"));
        running
    }

    fn notes(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

struct Router {
    running: Running,
    url: String,
    host: String,
}

impl Router {
    fn start(command: Command) -> Self {
        Self::listening(Running::start(command))
    }

    /// A router whose standard input is written to.
    fn piped(mut command: Command) -> (ChildStdin, Self) {
        let mut running = Running::start_with(command.stdin(Stdio::piped()));
        (running.input(), Self::listening(running))
    }

    fn listening(running: Running) -> Self {
        let line = running.line_with("ws://127.0.0.1:");
        let (_, rest) = line.split_once("ws://").unwrap();
        let end = rest.find([' ', '"']).unwrap();
        let url = format!("ws://{}", &rest[..end]);
        let host = url.trim_start_matches("ws://").to_owned();
        Self { running, url, host }
    }

    /// The status and the body of the answer to a request.
    fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let answer = exchange(&self.host, request, headers, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask(&format!("GET {path}"), "", "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Posts a text, waits until it is settled, and returns its outcome.
    fn settled(&self, text: &str) -> Value {
        let plain = "content-type: text/plain\r\n";
        let (status, body) = self.ask("POST /input?wait=1", plain, text);
        assert_eq!(status, 200, "{text}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

#[test]
fn a_wrong_call_is_refused_with_the_reason() {
    let folder = Folder::new();
    let long = "x".repeat(1025);
    for (args, expected) in [
        (
            &["--listen", "0.0.0.0:0"][..],
            &["this machine only", "127.0.0.1"][..],
        ),
        (&["--listen", "9473"], &["--listen"]),
        (&["--allow-origin", "x/y"], &["x/y"]),
        (&["--provider", "openai"], &["give --model"]),
        (&["--model", "m"], &["--model needs --provider"]),
        (&["--provider", "abacus"], &["scripted, openai"]),
        (&["--response-timeout", "1h"], &["--response-timeout", "30"]),
        (&["client", "--name", "my notes"], &["--name: ", "letter"]),
        (
            &["client", "--description", " "],
            &["--description: ", "empty"],
        ),
        (
            &["client", "--description", &long],
            &["--description: ", "1024"],
        ),
        (
            &["client", "--url", "ftp://h"],
            &["bad URL", "scheme", "wss"],
        ),
        (&["--fast"], &["--fast"]),
    ] {
        outcome(folder.router(args)).fails(2, expected);
    }
}

#[test]
fn a_message_is_kept_in_the_file_before_it_is_taken() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    let client = folder.client(&router, "notes", &["--file", "mine.txt"]);
    let settled = router.settled("NOTES: buy milk\nand bread");
    assert_eq!(settled["taken"], true);
    assert_eq!(
        settled["outcomes"],
        json!([{ "client": "notes", "outcome": "acked" }])
    );
    let kept = folder.notes("mine.txt");
    let (time, text) = kept.split_once(' ').unwrap();
    assert!(smarthole_proto::timestamp::parse(time).is_some(), "{kept}");
    assert_eq!(text, "buy milk\n    and bread\n");
    router
        .running
        .line_with(r#"#1 "buy milk\nand bread" to notes: you named it"#);
    router.running.line_with("#1 notes has taken it");
    router.running.line_with("#1 notes says: Note saved");

    router.settled("list");
    router.running.line_with(r#"#2 "list": choosing"#);
    router.running.line_with("#2 notes says: 1 note");
    router.running.line_with("1. buy milk");
    client.line_with(r#"gets "list""#);
    assert_eq!(folder.notes("mine.txt"), kept);
}

#[test]
fn a_rejected_message_goes_to_another_client() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    let broken = [
        "--description",
        "Switches lamps.",
        "--reject",
        "Broken.\u{1b}[2J",
    ];
    let _lamps = folder.client(&router, "lamps", &broken);
    let torch = [
        "--description",
        "Light in place of lamps.",
        "--capability",
        "light",
    ];
    let _torch = folder.client(&router, "torch", &torch);
    let settled = router.settled("switch the lamps on");
    assert_eq!(
        settled["outcomes"],
        json!([
            { "client": "lamps", "outcome": "rejected", "reason": "Broken.\u{1b}[2J" },
            { "client": "torch", "outcome": "acked" },
        ])
    );
    router.running.line_with("is here");
    router.running.line_with("to lamps: ");
    // A client cannot control the terminal.
    router
        .running
        .line_with(r"lamps rejects it: Broken.\u{1b}[2J");
    router.running.line_with("#1 choosing again");
    router.running.line_with("to torch: ");

    let settled = router.settled("lamps: on");
    assert_eq!(settled["taken"], false);
    assert_eq!(settled["unroutable"]["code"], "REJECTED");
    router.running.line_with(r#"no client takes "lamps: on""#);

    let clients = router.get("/clients");
    assert_eq!(clients[0]["name"], "lamps");
    assert_eq!(clients[1]["capabilities"], json!(["light"]));
    let history = router.get("/history");
    let ended: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["client"])
        .collect();
    assert_eq!(ended, ["lamps", "torch", "lamps"]);
}

#[test]
fn a_client_that_does_not_answer_in_time_loses_the_message() {
    let folder = Folder::new();
    let router = folder.start(&["--response-timeout", "200ms"]);
    let slow = ["--description", "Thinks.", "--delay", "30s"];
    let _slow = folder.client(&router, "slow", &slow);
    let settled = router.settled("slow: hello");
    assert_eq!(
        settled["outcomes"],
        json!([{ "client": "slow", "outcome": "timedOut" }])
    );
    router.running.line_with("slow did not answer in time");
}

#[test]
fn requests_get_a_status_that_says_what_is_wrong() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    let plain = "content-type: text/plain\r\n";
    let (status, body) = router.ask("POST /input", plain, "hello");
    assert_eq!(
        (status, body.as_str()),
        (503, "{\"error\":\"no client is connected\"}\n")
    );
    let _notes = folder.client(&router, "notes", &[]);
    let json = "content-type: application/json\r\n";
    let voice = r#"{"text":"notes: milk","inputMethod":"voice","confidence":0.5}"#;
    let foreign = "content-type: text/plain\r\norigin: http://evil.example\r\n";
    let large = "x".repeat(1024 * 1024);
    for (request, headers, body, expected) in [
        ("POST /input", plain, "notes: milk", 202),
        ("POST /input", json, voice, 202),
        (
            "POST /input",
            json,
            r#"{"text":"notes: milk","wait":true}"#,
            200,
        ),
        ("POST /input", plain, " \n", 400),
        ("POST /input", json, "{\"text\":", 400),
        ("POST /input", foreign, "notes: milk", 403),
        ("GET /nothing", "", "", 404),
        ("GET /input", "", "", 405),
        ("DELETE /clients", "", "", 405),
        ("POST /input", plain, &large, 413),
        ("POST /input", "", "notes: milk", 415),
        ("GET /", "", "", 426),
    ] {
        let (status, answer) = router.ask(request, headers, body);
        assert_eq!(status, expected, "{request} {headers}: {answer}");
        if status == 202 {
            let answer: Value = serde_json::from_str(&answer).unwrap();
            assert!(
                answer["id"].as_str().unwrap().starts_with("msg-"),
                "{answer}"
            );
        }
    }
}

#[test]
fn a_pipe_is_read_to_its_end_and_everything_settled() {
    let folder = Folder::new();
    let args = ["--listen", "127.0.0.1:0", "--clients", "1", "--once"];
    let (mut input, router) = Router::piped(folder.router(&args));
    let lines = "/clients\n\nnotes: one\nnotes: two\n/history\n/nope";
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let client = folder.client(&router, "notes", &["--file", "notes.txt"]);
    let (code, lines) = router.running.end_with_lines();
    let all = lines.join("\n");
    assert_holds(
        &all,
        &[
            "notes: Keeps notes and shopping lists",
            "#1 notes has taken it",
            "#2 notes has taken it",
            "there is no command /nope",
            "one error was printed above",
        ],
    );
    assert_eq!(code, Some(1), "{all}");
    client.line_with("1001");
    let texts = folder.notes("notes.txt");
    assert_eq!(texts.lines().count(), 2, "{texts}");
}

#[test]
fn programs_read_one_object_for_each_event() {
    let folder = Folder::new();
    let args = [
        "--listen",
        "127.0.0.1:0",
        "--clients",
        "1",
        "--once",
        "--json",
    ];
    let (mut input, router) = Router::piped(folder.router(&args));
    input.write_all(b"notes: milk\n").unwrap();
    drop(input);
    let _client = folder.client(&router, "notes", &[]);
    let (code, lines) = router.running.end_with_lines();
    assert_eq!(code, Some(0), "{lines:#?}");
    let events: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect();
    let event = |name: &str| {
        let mut found = events.iter().filter(|event| event["event"] == name);
        found
            .next()
            .unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
    };
    assert_eq!(event("registered")["client"], "notes");
    let delivered = event("delivered");
    assert_eq!(
        (&delivered["text"], &delivered["direct"]),
        (&json!("milk"), &json!(true))
    );
    assert_eq!(event("acked")["id"], delivered["id"]);
    assert_eq!(event("settled")["outcomes"][0]["outcome"], "acked");
    event("left");
}

#[cfg(unix)]
#[test]
fn a_router_without_input_serves_until_it_is_interrupted() {
    let folder = Folder::new();
    // Its standard input is empty, as that of a service is.
    let router = folder.start(&[]);
    let client = folder.client(&router, "notes", &[]);
    router.settled("notes: still here");
    router.running.interrupt();
    let (code, lines) = router.running.end_with_lines();
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_holds(&lines.join("\n"), &["notes has left"]);
    client.line_with("1001: Server shutting down");
}

#[cfg(unix)]
#[test]
fn a_client_ends_when_it_is_interrupted() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    let client = folder.client(&router, "notes", &[]);
    client.interrupt();
    assert_eq!(client.end(), Some(0));
    router.running.line_with("notes has left");
}

#[test]
fn a_name_that_is_taken_is_refused_at_once() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    let _first = folder.client(&router, "notes", &[]);
    outcome(folder.router(&["client", "--url", &router.url]))
        .fails(3, &["DUPLICATE_NAME", "choose another one with --name"]);
}

#[test]
fn a_client_without_a_router_gives_up() {
    let folder = Folder::new();
    for (attempts, told) in [
        ("0", &["no connection to ws://127.0.0.1:1"][..]),
        (
            "1",
            &[
                "Reconnecting in 1000ms (attempt 1/1)...",
                "Max reconnection attempts reached",
                "start a router with 'switchboard router'",
            ],
        ),
    ] {
        let args = [
            "client",
            "--url",
            "ws://127.0.0.1:1",
            "--attempts",
            attempts,
        ];
        outcome(folder.router(&args)).fails(3, told);
    }
}

#[test]
fn a_client_writes_no_file_by_default() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    let client = folder.client(&router, "notes", &[]);
    for text in ["notes: milk", "notes: list"] {
        let settled = router.settled(text);
        assert_eq!(settled["outcomes"][0]["outcome"], "acked", "{settled}");
    }
    router.running.line_with("1. milk");
    drop(client);
    assert_eq!(fs::read_dir(&*folder.0).unwrap().count(), 0);
}

#[test]
fn a_file_that_cannot_be_used_ends_a_client_before_it_connects_and_later_rejects() {
    let folder = Folder::new();
    fs::write(folder.0.join("odd"), b"\xff").unwrap();
    fs::File::create(folder.0.join("large"))
        .unwrap()
        .set_len(1 << 25)
        .unwrap();
    for (file, why) in [
        (
            ".",
            "--file .: Is a directory (os error 21); a file is needed there: choose another with --file",
        ),
        ("odd", "--file odd: it is not UTF-8 text"),
        (
            "large",
            "--file large: it is larger than 16777216 bytes; shorten it, or choose another with --file",
        ),
        ("odd/below", "--file odd/below: "),
    ] {
        let args = ["client", "--url", "ws://127.0.0.1:1", "--file", file];
        let (_, err) = outcome(folder.router(&args)).ends(1);
        assert!(err.starts_with(&format!("error: {why}")), "{err}");
    }
    let router = folder.start(&[]);
    let client = folder.client(&router, "notes", &["--file", "new"]);
    fs::create_dir(folder.0.join("new")).unwrap();
    let settled = router.settled("notes: milk");
    assert_eq!(settled["outcomes"][0]["outcome"], "rejected", "{settled}");
    client.line_with("client: new: ");
}

#[test]
fn a_model_chooses_if_it_is_asked_to() {
    let folder = Folder::new();
    let router = folder.start(&["--provider", "scripted"]);
    let _a = folder.client(&router, "a-b", &[]);
    let _b = folder.client(&router, "a_b", &["--file", "a_b.txt"]);
    let settled =
        router.settled("/call route_to_a_b_2 {\"message\": \"milk\", \"reason\": \"a wish\"}");
    assert_eq!(
        settled["outcomes"],
        json!([{ "client": "a_b", "outcome": "acked" }])
    );
    assert!(folder.notes("a_b.txt").ends_with(" milk\n"));
    router.running.line_with(r#""milk" to a_b: a wish"#);
    let settled = router.settled("!fail out of order");
    assert_eq!(settled["unroutable"]["code"], "ROUTER_FAILED");
    assert_holds(
        settled["unroutable"]["message"].as_str().unwrap(),
        &["out of order"],
    );
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = Folder::new();
    let router = folder.start(&[]);
    outcome(folder.router(&["--listen", &router.host])).fails(
        1,
        &[&format!("cannot listen on {}", router.host), "--listen"],
    );
}
