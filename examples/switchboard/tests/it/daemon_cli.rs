//! The daemon's command line: a server on a folder, what is done there over both transports, aborts, and exit
//! codes for scripts.

mod killed;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::programs::{
    Ended as _, Folder, Outcome, Running, assert_in_order, outcome, outcome_of_lines, switchboard,
};

/// A folder that is removed with the value, with a secret beside it.
pub(crate) struct Fixture(Folder);

impl Fixture {
    pub(crate) fn new() -> Self {
        let path = Folder::new("daemon-cli");
        fs::create_dir_all(path.join("work")).unwrap();
        fs::write(path.join("secret.txt"), "secret").unwrap();
        fs::write(path.join("work/a.txt"), "one\ntwo\n").unwrap();
        Self(path)
    }

    /// A server on a free port. Its commands go anywhere, so that the tests mean the same everywhere.
    pub(crate) fn serve(&self, args: &[&str]) -> Server {
        let mut command = daemon(&["serve", "--listen", "127.0.0.1:0"]);
        if !args.contains(&"--commands") {
            command.args(["--commands", "open"]);
        }
        command.args(args);
        self.start(command)
    }

    /// A server on this folder. What it leaves behind when it is killed goes with the folder.
    pub(crate) fn start(&self, mut command: Command) -> Server {
        let work = self.0.join("work");
        command.arg("--workspace").arg(work).env("TMPDIR", &*self.0);
        command.env("XDG_STATE_HOME", &*self.0);
        Server::start(command)
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join("work").join(name)).ok()
    }
}

pub(crate) fn daemon(args: &[&str]) -> Command {
    switchboard("daemon", args)
}

pub(crate) struct Server {
    running: Running,
    pub(crate) url: String,
}

impl Server {
    fn start(command: Command) -> Self {
        let (running, url) = Running::serve(command);
        Self { running, url }
    }

    pub(crate) fn client(&self, args: &[&str]) -> Command {
        let mut command = daemon(args);
        command.args(["--url", &self.url]);
        command
    }

    /// Exit code, standard output, standard error.
    fn run(&self, prompt: &str, args: &[&str]) -> Outcome {
        let mut command = self.client(&["run", prompt, "--yes"]);
        command.args(args);
        outcome(command)
    }

    /// The updates of one chat, for programs.
    fn updates(&self, prompt: &str, args: &[&str]) -> Vec<Value> {
        let mut command = self.client(&["run", prompt, "--json", "--yes"]);
        command.args(args);
        let (_, out, _) = outcome(command);
        let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    fn chat(&self, args: &[&str], lines: &str) -> Outcome {
        let mut command = self.client(&["chat", "--yes"]);
        command.args(args);
        outcome_of_lines(command, lines)
    }
}

#[test]
fn a_server_and_its_clients_agree_on_port_6767() {
    for (command, default) in [
        ("serve", "127.0.0.1:6767]"),
        ("run", "http://127.0.0.1:6767]"),
        ("chat", "http://127.0.0.1:6767]"),
        ("status", "http://127.0.0.1:6767]"),
    ] {
        let (out, _) = outcome(daemon(&[command, "--help"])).ends(0);
        assert!(out.contains(default), "no {default:?} in\n{out}");
    }
}

#[test]
fn every_mistake_says_what_to_do() {
    for (args, expected) in [
        (&[][..], "Usage"),
        (&["serve", "--workspace", "/none/at/all"], "--workspace"),
        (&["serve", "--commands", "some"], "workspace"),
        (&["serve", "--allow-origin", "*"], "scheme://host"),
        (&["serve", "--listen", "0.0.0.0:0"], "ACOLYTE_API_KEY"),
        (&["serve", "--provider", "openai"], "give --model"),
        (&["run"], "<PROMPT>"),
        (&["run", ""], "nothing to say"),
        (&["run", "x", "--url", "ftp://h"], "ws, wss, http or https"),
        (&["run", "x", "--quiet", "--verbose"], "--verbose"),
        (&["run", "x", "--resource", "me"], "--resource"),
        (&["run", "x", "--session", "proj_a"], "--session"),
        (&["run", "x", "--skill", "name"], "NAME=@FILE"),
        (&["run", "x", "--skill", "name="], "instructions"),
        (
            &["run", "x", "--url", "http://192.0.2.1:9", "--api-key", "k"],
            "--insecure",
        ),
        (&["status", "task-1"], "task"),
    ] {
        outcome(daemon(args)).fails(2, &[expected]);
    }
}

#[test]
fn only_the_daemons_own_page_and_listed_pages_may_connect() {
    let place = Fixture::new();
    for (args, pages) in [
        (&[][..], "its own"),
        (
            &["--allow-origin", "http://localhost:5173"],
            "its own; http://localhost:5173",
        ),
    ] {
        let server = place.serve(args);
        let line = server.running.line_with("web pages");
        assert_eq!(line, format!("web pages that may connect: {pages}"));
        for (origin, status) in [
            (&*server.url, "200"),
            (
                "http://localhost:5173",
                if args.is_empty() { "403" } else { "200" },
            ),
            ("http://localhost:3000", "403"),
        ] {
            let head = head(&server.url, "/v1/status", origin);
            let expected = format!("HTTP/1.1 {status}");
            assert!(head.starts_with(&expected), "{origin}: {head}");
        }
    }
}

/// The head of an answer to a page of this origin.
fn head(url: &str, path: &str, origin: &str) -> String {
    let host = url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(host).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\norigin: {origin}\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut head = [0; 12];
    socket.read_exact(&mut head).unwrap();
    String::from_utf8_lossy(&head).into_owned()
}

#[test]
fn skills_reach_the_server() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let facts = place.0.join("facts.md");
    fs::write(&facts, "tea is hot\n").unwrap();
    let file = format!("facts=@{}", facts.display());
    for (skill, expected) in [(&*file, "tea is hot"), ("facts=ice is cold", "ice is cold")] {
        let updates = server.updates("hello", &["--skill", skill]);
        let is_told = |it: &Value| it.to_string().contains(expected);
        assert!(updates.iter().any(is_told), "{updates:?}");
    }
}

#[test]
fn json_has_an_event_for_an_absent_server() {
    for args in [&["run", "x"][..], &["chat"]] {
        let mut command = daemon(args);
        command.args(["--json", "--url", "http://127.0.0.1:1"]);
        let (out, _) = outcome(command).ends(3);
        let event: Value = serde_json::from_str(out.trim_end()).unwrap();
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("127.0.0.1:1"), "{out}");
    }
}

#[test]
fn nothing_is_changed_without_a_yes() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let file = || fs::read_to_string(place.0.join("work/a.txt")).unwrap();
    let asked = |lines: &str| {
        let command = server.client(&["run", "/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}\n/call shell-run {\"command\":\"echo $((6*7))\"}"]);
        outcome_of_lines(command, lines)
    };
    let err = asked("").fails(1, &[]);
    assert!(
        err.contains("\n-two\n+2\n") && err.contains("--yes"),
        "{err}"
    );
    assert_eq!(file(), "one\ntwo\n");
    let (out, err) = asked("no\n\n").ends(0);
    assert!(
        err.contains("```sh\necho $((6*7))\n```") && !out.contains("42"),
        "{err}{out}"
    );
    assert_eq!(file(), "one\ntwo\n");
    let (out, err) = asked("y\nalways\n").ends(0);
    assert_eq!(err.matches("Allow? y/N/always").count(), 2, "{err}");
    assert!(out.contains("42"), "{out}");
    assert_eq!(file(), "one\n2\n");
    // What a program says is shown before it ends.
    let line = "/call shell-run {\"command\":\"echo early; sleep 60\"}";
    let running = Running::start(server.client(&["run", line, "--yes"]));
    running.line_with("    early");
}

#[test]
fn a_change_is_undone_after_a_restart_of_the_server() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let edit = "/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}";
    let (code, _, err) = server.run(edit, &[]);
    assert_eq!(
        (code, place.file("a.txt").as_deref()),
        (Some(0), Some("one\n2\n")),
        "{err}"
    );
    drop(server);
    let server = place.serve(&[]);
    let undo = |args: &[&str]| outcome(server.client(args));
    undo(&["undo", "--session", "sess_other"]).prints("nothing to undo: no file was changed\n");
    undo(&["undo"]).prints("put back a.txt (+1 -1)\n");
    assert_eq!(place.file("a.txt").as_deref(), Some("one\ntwo\n"));
}

#[test]
fn a_server_without_approvals_is_not_used_from_a_pipe() {
    let status = r#"{"ok":true,"protocol_version":"1","model":"m","capabilities":"stream.sse"}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let length = status.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            write!(socket, "{head}content-length: {length}\r\n\r\n{status}").unwrap();
        }
    });
    for args in [&["run", "x"][..], &["chat"]] {
        let mut command = daemon(args);
        command.args(["--sse", "--url", &url]);
        outcome(command).fails(2, &["give --yes"]);
    }
}

#[test]
fn the_answer_goes_to_one_place_and_the_progress_to_another() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let prompt = "/call file-read {\"path\":\"a.txt\"}\n/call file-edit {\"path\":\"a.txt\",\"find\":\"two\",\"replace\":\"2\"}\n/call shell-run {\"command\":\"cat a.txt\"}";
    for (args, name) in [(&[][..], "a WebSocket"), (&["--sse"], "HTTP")] {
        fs::write(place.0.join("work/a.txt"), "one\ntwo\n").unwrap();
        let (out, err) = server.run(prompt, args).ends(0);
        let answer = "one\ntwo; changed a.txt (+1 -1); one\n2\n";
        assert_eq!(out, answer, "over {name}");
        let expected = [
            "file-read a.txt",
            "a.txt +1 -1",
            "-   2  two",
            "+   2  2",
            "shell-run cat a.txt",
            "    one",
            "    2",
        ];
        assert_in_order(&err, &expected);
        assert!(!err.contains('\x1b'), "no colours in a pipe");
        assert_eq!(place.file("a.txt").unwrap(), "one\n2\n");
    }
    server
        .run("/call shell-run {\"command\":\"true\"}", &[])
        .prints("(it said nothing)\n");
    let (code, out, err) = server.run("hello", &["--quiet"]);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "hello\n", ""));
    let (_, out, err) = server.run("hello", &[]);
    assert!(out == "hello\n" && err.contains("--provider"), "{out}{err}");
}

#[test]
fn both_transports_give_programs_the_same_events() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let events = |args| {
        let updates = server.updates(
            "/call file-search {\"query\":\"two\"}\n/call file-read {\"path\":\"none\"}",
            args,
        );
        let events: Vec<_> = updates
            .iter()
            .filter(|update| update["event"] == "step")
            .map(|update| update["frame"].clone())
            .collect();
        (events, updates)
    };
    let (socket, updates) = events(&[]);
    let (http, _) = events(&["--sse"]);
    assert_eq!(socket, http);
    assert_eq!(socket[0]["type"], "status");
    assert_eq!(updates[0]["event"], "accepted");
    assert_eq!(updates[1]["event"], "started");
    let end = updates.last().unwrap();
    assert_eq!(
        (&end["event"], &end["outcome"]),
        (&"ended".into(), &"done".into())
    );
    let task = end["taskId"].as_str().unwrap();
    let (code, out, _) = outcome(server.client(&["status", task]));
    assert_eq!((code, out), (Some(0), format!("{task}: completed\n")));
    let failed = socket
        .iter()
        .find(|event| event["isError"] == true)
        .unwrap();
    assert_eq!(failed["errorCode"], "E_FILE_NOT_FOUND");
}

#[test]
fn nothing_leads_out_of_the_workspace() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let secret = place.0.join("secret.txt").display().to_string();
    for prompt in [
        "/call file-read {\"path\":\"../secret.txt\"}",
        &format!("/call file-read {}", json!({ "path": secret })),
    ] {
        let (out, err) = server.run(prompt, &[]).ends(0);
        assert!(out.contains("leads out of the workspace"), "{out}");
        assert!(err.contains("would not stay within the workspace"), "{err}");
    }
    let outside = place.0.display().to_string();
    server
        .run("/call file-find", &["--workspace", &outside])
        .fails(1, &["E_SANDBOX_VIOLATION"]);
}

#[cfg(unix)]
#[test]
fn commands_stay_in_the_workspace_unless_configured_otherwise() {
    let place = Fixture::new();
    let confined = place.start(daemon(&["serve", "--listen", "127.0.0.1:0"]));
    let (_, out, err) = confined.run(
        "/call shell-run {\"command\":\"cat ../secret.txt; cat a.txt\"}",
        &[],
    );
    assert!(!out.contains("secret\n"), "{out}");
    let is_confined = err.contains("    one");
    let is_refused = err.contains("would not stay within the workspace");
    assert!(is_confined || is_refused, "{err}");
    let open = place.serve(&[]);
    let (_, out, _) = open.run("/call shell-run {\"command\":\"cat ../secret.txt\"}", &[]);
    assert!(out.starts_with("secret"), "{out}");
    let off = place.serve(&["--commands", "off"]);
    let (_, out, _) = off.run(r#"/call run {"command":"cat a.txt"}"#, &[]);
    assert!(out.contains("no tool"), "{out}");
}

#[test]
fn a_start_says_that_gits_folder_does_not_know_the_workspace() {
    let place = Fixture::new();
    let git = place.0.join("git");
    fs::create_dir_all(git.join("objects")).unwrap();
    fs::create_dir_all(git.join("refs")).unwrap();
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    let named = format!("gitdir: {}\n", git.display());
    fs::write(place.0.join("work/.git"), named).unwrap();
    let server = place.start(daemon(&["serve", "--listen", "127.0.0.1:0"]));
    let line = server.running.line_with("does not name this workspace");
    let option = format!(
        "'--writable {}' opens it",
        git.canonicalize().unwrap().display()
    );
    assert!(line.contains(&option), "{line}");
}

#[test]
fn a_folder_for_temporary_files_that_cannot_be_written_is_named() {
    let place = Fixture::new();
    let file = place.0.join("secret.txt");
    let mut serve = daemon(&["serve", "--listen", "127.0.0.1:0", "--commands", "open"]);
    serve
        .arg("--workspace")
        .arg(place.0.join("work"))
        .env("TMPDIR", &file);
    let line = Running::start(serve).line_with("set TMPDIR");
    assert!(line.contains(file.to_str().unwrap()), "{line}");
}

#[test]
fn exit_codes_tell_scripts_what_happened() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    server
        .run("!fail it hurts", &[])
        .fails(1, &["error: it hurts"]);
    let nobody = ["run", "x", "--url", "http://127.0.0.1:1"];
    outcome(daemon(&nobody)).fails(
        3,
        &["start an Acolyte server with 'switchboard daemon serve'"],
    );
    let updates = server.updates("!break", &[]);
    assert_eq!(updates.last().unwrap()["outcome"], "failed");
}

#[test]
fn a_key_is_required_and_never_shown() {
    let place = Fixture::new();
    let mut command = daemon(&["serve", "--listen", "127.0.0.1:0", "-vv"]);
    command.env("ACOLYTE_API_KEY", "pad/ded==");
    let server = place.start(command);
    for args in [&[][..], &["--sse"]] {
        server.run("hello", args).fails(3, &["ACOLYTE_API_KEY"]);
        let mut command = server.client(&["run", "hello", "-vv"]);
        command.args(args).env("ACOLYTE_API_KEY", "pad/ded==");
        let err = outcome(command).prints("hello\n");
        assert!(!err.contains("pad/ded"), "{err}");
    }
    #[cfg(unix)]
    {
        server.running.interrupt();
        let (code, lines) = server.running.end_with_lines();
        assert_eq!(code, Some(0));
        assert!(!lines.join("\n").contains("pad/ded"));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_aborts_and_says_so() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let prompt = "/call shell-run {\"command\":\"touch started; echo begun; sleep 60\"}\n/call file-create {\"path\":\"late.txt\",\"content\":\"x\\n\"}";
    for args in [&[][..], &["--sse"]] {
        let mut command = server.client(&["run", prompt, "--yes"]);
        command.args(args);
        let running = Running::start(command);
        running.line_with("    begun");
        running.interrupt();
        let (code, lines) = running.end_with_lines();
        assert_eq!(code, Some(130), "{lines:?}");
        assert_in_order(&lines.join("\n"), &["aborting", "error: aborted"]);
        assert!(place.file("started").is_some());
        // The next one does not wait for the command.
        server.run("hello", args).prints("hello\n");
        assert!(place.file("late.txt").is_none());
    }
}

#[test]
fn lines_from_a_pipe_are_done_one_after_the_other() {
    let place = Fixture::new();
    let server = place.serve(&[]);
    let lines = " /call file-create {\"path\":\"b.txt\",\"content\":\"hi\\n\"}\n /call file-read {\"path\":\"b.txt\"}\n/status\n/nope\n";
    for args in [&[][..], &["--sse"]] {
        let (out, err) = server.chat(args, lines).ends(1);
        assert_in_order(&out, &["hi", "model: scripted"]);
        let told = [
            " b.txt +",
            "file-read b.txt",
            "no command /nope",
            "one error was printed above",
        ];
        assert_in_order(&err, &told);
        fs::remove_file(place.0.join("work/b.txt")).unwrap();
    }
    let (out, _) = server.chat(&["--json"], "hello\nagain\n").ends(0);
    let ends = out
        .lines()
        .filter(|line| line.contains("\"ended\""))
        .count();
    assert_eq!(ends, 2, "{out}");
}

#[cfg(unix)]
#[test]
fn a_server_lets_a_chat_finish_when_it_ends() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let place = Fixture::new();
        let server = place.serve(&[]);
        let args = [
            "run",
            "/call shell-run {\"command\":\"sleep 0.3; echo finished\"}",
            "--yes",
        ];
        let running = Running::start(server.client(&args));
        running.line_with("shell-run");
        server.running.signal(signal);
        let (code, lines) = running.end_with_lines();
        assert_eq!(code, Some(0), "{signal}: {lines:?}");
        assert!(lines.join("\n").contains("finished"), "{lines:?}");
        let (code, lines) = server.running.end_with_lines();
        assert_eq!(code, Some(0), "{signal}");
        let said = ["finishing the work in progress", "ended: "];
        assert_in_order(&lines.join("\n"), &said);
    }
}
