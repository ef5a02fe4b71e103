//! The agent's command line: a host and a terminal that talks to it, questions, leave, files, resuming,
//! the gate, mistakes.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::programs::{
    Ended as _, Folder, Outcome, Running, assert_in_order, model, outcome, outcome_of_lines,
    switchboard,
};

/// A home for keys, lists and files, which is removed with the value.
pub(crate) struct Home(pub(crate) Folder);

impl Home {
    pub(crate) fn new() -> Self {
        Self(Folder::new("agent-cli"))
    }

    pub(crate) fn agent(&self, args: &[&str]) -> Command {
        let mut command = switchboard("agent", args);
        command.env("AGENT_HOME", &*self.0);
        command
    }

    /// A host on a free port.
    pub(crate) fn host(&self, args: &[&str]) -> Host {
        let mut command = self.agent(&["host", "--listen", "127.0.0.1:0"]);
        command.args(args);
        Host::start(command)
    }

    /// Talks to a host, with these lines: exit code, standard output, standard error.
    pub(crate) fn chat(&self, host: &Host, args: &[&str], lines: &str) -> Outcome {
        let mut command = self.agent(&["chat", &host.url]);
        command.args(args);
        outcome_of_lines(command, lines)
    }

    /// The answer to one question.
    pub(crate) fn answer(&self, host: &Host, prompt: &str) -> String {
        let (out, _) = self.chat(host, &[prompt], "").ends(0);
        out.trim_end().to_owned()
    }

    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join("files").join(name)).ok()
    }
}

pub(crate) struct Host {
    pub(crate) running: Running,
    pub(crate) url: String,
    address: String,
}

impl Host {
    pub(crate) fn start(command: Command) -> Self {
        let running = Running::start(command);
        let line = running.line_with("listening on http://");
        let part = |before: &str, after: char| {
            let (_, rest) = line.split_once(before).unwrap();
            rest.split(after).next().unwrap().to_owned()
        };
        let (url, address) = (part("listening on ", ' '), part("address: ", ')'));
        Self {
            running,
            url,
            address,
        }
    }
}

#[test]
fn every_mistake_says_what_to_do() {
    let home = Home::new();
    let address = "0x".to_owned() + &"ab".repeat(32);
    for (args, expected) in [
        (&[][..], "Usage"),
        (&["host", "--trust", "some"], "careful"),
        (&["host", "--invite", ""], "AGENT_INVITE"),
        (&["host", "--allow", "0x12"], "--allow"),
        (&["host", "--allow-origin", "*"], "scheme://host"),
        (&["host", "--allow-host", "a/b"], "a/b"),
        (&["host", "--listen", "0.0.0.0:0"], "--public"),
        (&["host", "--listen", "[::]:0", "--signed"], "--public"),
        (&["host", "--listen", "0.0.0.0:0", "--public"], "--trust"),
        (&["host", "--unsigned"], "--public"),
        (&["host", "--provider", "openai"], "give --model"),
        (&["chat", "ftp://h", "x"], "ws, wss, http or https"),
        (&["chat", "http://127.0.0.1:1", " "], "nothing to say"),
        (&["chat", "http://127.0.0.1:1", "-"], "nothing to say"),
        (&["chat", "http://192.0.2.1:9/own/path", "x"], "--insecure"),
        (&["chat", &address, "x"], "--endpoint"),
        (
            &["chat", "http://127.0.0.1:1", "--endpoint", "ws://h", "x"],
            "address",
        ),
        (
            &["chat", "http://127.0.0.1:1", "--mode", "wild"],
            "accept_edits",
        ),
        (
            &["chat", "http://127.0.0.1:1", "--file", "/nowhere", "x"],
            "--file /nowhere",
        ),
        (
            &["chat", "http://127.0.0.1:1", "--image", "Cargo.toml", "x"],
            "png",
        ),
    ] {
        outcome(home.agent(args)).fails(2, &[expected]);
    }
    let mut homeless = switchboard("agent", &["host"]);
    homeless.env_remove("HOME");
    outcome(homeless).fails(2, &["--home"]);
}

#[test]
fn an_absent_agent_is_reported_at_once() {
    let home = Home::new();
    for url in ["http://127.0.0.1:1", "ws://127.0.0.1:1/own"] {
        outcome(home.agent(&["chat", url, "hello"])).fails(3, &["error: no ", "127.0.0.1:1"]);
    }
}

#[test]
fn one_question_has_its_answer_on_standard_output() {
    let home = Home::new();
    let host = home.host(&[]);
    let err = home
        .chat(&host, &["/call list_files {\"path\":\".\"}"], "")
        .prints("{\"found\":[]}\n");
    assert_in_order(&err, &["list_files ."]);
    home.chat(&host, &["!fail it hurts"], "")
        .fails(1, &["error: ", "it hurts"]);
    assert_eq!(home.answer(&host, "count to 2"), "I count: 1 2 - done");
}

#[test]
fn the_host_writes_the_console_lines_of_the_protocol() {
    let home = Home::new();
    let host = home.host(&[]);
    home.answer(&host, "count\u{1b}[2J to 2");
    assert_in_order(
        &host.running.line_with("ws+"),
        &["⚡ ws+ 127.0.0.1 (0 active)"],
    );
    let line = host.running.line_with("CONNECT");
    assert!(line.starts_with("✓ CONNECT identity=0x"), "{line}");
    assert_in_order(&line, &["... session=", "... status=new"]);
    let line = host.running.line_with("INPUT");
    assert_in_order(&line, &["✓ INPUT identity=0x", "prompt=count", "[2J to 2"]);
    assert!(!line.contains('\u{1b}'), "{line}");
    host.running.line_with("⚡ ws- (1 active)");
}

#[test]
fn questions_are_answered_by_the_lines_that_follow() {
    let home = Home::new();
    let host = home.host(&[]);
    let lines = " /call ask_user {\"question\":\"Which colour?\",\"options\":[\"red\",\"green\"]}\n2\n /call ask_user {\"question\":\"My name?\"}\nAnn\ncount to 2";
    let (out, err) = home.chat(&host, &[], lines).ends(0);
    assert_in_order(
        &err,
        &["? Which colour?", "1. red", "2. green", "? My name?"],
    );
    assert_in_order(&out, &["green\nAnn\n", "1 2 - done"]);
    home.chat(
        &host,
        &["/call ask_user {\"question\":\"Which colour?\",\"options\":[\"red\",\"green\"]}"],
        "blue\n",
    )
    .prints("blue\n");
}

#[test]
fn nothing_is_written_without_approval() {
    let home = Home::new();
    let host = home.host(&[]);
    let prompt = ["/call write_file {\"path\":\"a.txt\",\"text\":\"milk\"}"];
    for (lines, expected) in [
        ("n\n", Some(0)),
        ("\n", Some(0)),
        ("n another name, please\n", Some(0)),
        ("rather another name\n", Some(0)),
        ("", Some(1)),
    ] {
        let (code, _, err) = home.chat(&host, &prompt, lines);
        assert_eq!(code, expected, "{lines}: {err}");
        assert_in_order(
            &err,
            &["+milk", "? The agent wants to write ", "does not allow it"],
        );
        assert_eq!(home.file("a.txt"), None);
    }
    home.chat(&host, &prompt, "y\n")
        .prints("wrote 4 bytes to a.txt\n");
    assert_eq!(home.file("a.txt").as_deref(), Some("milk"));
    // Once for the session, or for all.
    let (_, err) = home.chat(&host, &[], " /call write_file {\"path\":\"b.txt\",\"text\":\"b\"}\ns\n /call write_file {\"path\":\"b.txt\",\"text\":\"c\"}\n").ends(0);
    assert_eq!(err.matches("The agent wants to write").count(), 1, "{err}");
    assert_eq!(home.file("b.txt").as_deref(), Some("c"));
    home.chat(
        &host,
        &[
            "--yes",
            "/call write_file {\"path\":\"d.txt\",\"text\":\"d\"}",
        ],
        "",
    )
    .prints("wrote 1 bytes to d.txt\n");
    home.chat(
        &host,
        &[
            "--mode",
            "accept_edits",
            "/call write_file {\"path\":\"e.txt\",\"text\":\"e\"}",
        ],
        "",
    )
    .prints("wrote 1 bytes to e.txt\n");
    let (_, out, err) = home.chat(
        &host,
        &[],
        "/mode plan\n /call write_file {\"path\":\"f.txt\",\"text\":\"f\"}\nlooks good\n",
    );
    let planned = ["mode: plan", "? The agent's plan:", "only a plan is made"];
    assert_in_order(&err, &planned);
    assert_in_order(&out, &["looks good"]);
    assert_eq!(home.file("f.txt"), None);
}

#[test]
fn an_agent_that_asks_nothing_ends_with_its_turns() {
    let home = Home::new();
    let host = home.host(&[]);
    let lines = "/mode ulw 2\n /call write_file {\"path\":\"a.txt\",\"text\":\"a\"}\n /call write_file {\"path\":\"b.txt\",\"text\":\"b\"}\n /call write_file {\"path\":\"c.txt\",\"text\":\"c\"}\n1\n\
        \u{20}/call write_file {\"path\":\"d.txt\",\"text\":\"d\"}\nsafe\nn\n";
    let (out, err) = home.chat(&host, &[], lines).ends(0);
    assert_in_order(
        &out,
        &[
            "wrote 1 bytes to a.txt",
            "wrote 1 bytes to b.txt",
            "wrote 1 bytes to c.txt",
        ],
    );
    assert_in_order(&err, &["? ", "? ", "? The agent wants to write "]);
    assert_eq!(home.file("d.txt"), None);
}

#[test]
fn the_agent_sees_only_its_own_folder() {
    let home = Home::new();
    let host = home.host(&[]);
    let answer = home.answer(&host, "/call read_file {\"path\":\"../host.key\"}");
    assert_in_order(&answer, &["leads out of the workspace"]);
}

#[test]
fn a_running_agent_reads_messages_at_its_next_step() {
    let home = Home::new();
    let host = home.host(&[]);
    let mut command = home.agent(&["chat", &host.url, "--json"]);
    let mut chat = Running::start_with(command.stdin(Stdio::piped()));
    let mut input = chat.input();
    let mut says = |line: &str| writeln!(input, "{line}").unwrap();
    says("!slow 10 50");
    chat.line_with("llm_call");
    says("/say count to 2");
    chat.line_with(r#""event":"queued""#);
    // Other lines wait until the agent is done.
    says("count to 3");
    chat.line_with("8 9 10");
    let read = chat.line_with("user_input");
    assert_in_order(&read, &["count to 2", r#""runtime_input":true"#]);
    chat.line_with(r#""result":"I count: 1 2 - done""#);
    chat.line_with(r#""result":"I count: 1 2 3 - done""#);
    says("!slow 1000 50");
    chat.line_with("llm_call");
    says("/interrupt");
    chat.line_with("What would you like me to do?");
    says("count to 4");
    chat.line_with(r#""result":"I count: 1 2 3 4 - done""#);
    drop(input);
    assert_eq!(chat.end(), Some(0));
}

#[test]
fn files_and_images_go_with_a_prompt() {
    let home = Home::new();
    let host = home.host(&[]);
    let (note, dot) = (home.0.join("note.txt"), home.0.join("dot.png"));
    fs::write(&note, "a note").unwrap();
    fs::write(&dot, "not really one").unwrap();
    let (note, dot) = (note.to_str().unwrap(), dot.to_str().unwrap());
    let (_, err) = home.chat(&host, &["--file", note, "here"], "").ends(0);
    assert_in_order(&err, &["the agent has got ", "note.txt"]);
    let (code, out, err) = home.chat(&host, &["--image", dot, "what is this?"], "");
    let seen = "I see an image of type image/png with 14 bytes\n";
    assert_eq!((code, out.as_str()), (Some(0), seen), "{err}");
    let lines = format!("/file {note}\nhere\n /call list_files\n/image {note}\n");
    let (out, err) = home.chat(&host, &[], &lines).ends(1);
    assert_in_order(&out, &["note.txt"]);
    let told = [
        "error: ",
        "an image is a png",
        "error: one error was printed above",
    ];
    assert_in_order(&err, &told);
}

#[test]
fn a_conversation_is_resumed_also_in_the_middle() {
    let home = Home::new();
    let store = home.0.join("kept.redb");
    let stored = ["--store", store.to_str().unwrap(), "--fsync", "1s"];
    let host = home.host(&stored);
    home.chat(&host, &["--resume", "hello"], "")
        .fails(1, &["run without --resume"]);
    let (code, _, err) = home.chat(&host, &["--resume=nope", "hello"], "");
    let new = "the agent knows no session nope: this is a new one";
    assert!(code == Some(0) && err.contains(new), "{err}");

    assert_eq!(home.answer(&host, "count to 2"), "I count: 1 2 - done");
    let (_, out, _) = home.chat(
        &host,
        &["--resume", "/call search {\"query\":\"count\"}"],
        "",
    );
    assert_in_order(&out, &["found", "count to 2"]);

    // No one answers: this program ends, and the agent waits.
    let mut command = home.agent(&[
        "chat",
        &host.url,
        "--resume",
        "/call write_file {\"path\":\"a.txt\",\"text\":\"milk\"}",
    ]);
    let mut left = Running::start_with(command.stdin(Stdio::piped()));
    let _input = left.input();
    left.line_with("? The agent wants to write ");
    drop(left);
    let (out, err) = home.chat(&host, &["--resume"], "y\ncount to 3\n").ends(0);
    assert_in_order(&err, &["? The agent wants to write "]);
    assert_in_order(&out, &["wrote 4 bytes to a.txt", "1 2 3 - done"]);

    // Another host with the same file knows it all.
    let url = host.url.clone();
    drop(host);
    let listen = url.trim_start_matches("http://").trim_end_matches('/');
    let mut again = home.agent(&["host", "--listen", listen]);
    again.args(stored);
    let host = Host::start(again);
    let (out, _) = home
        .chat(
            &host,
            &["--resume", "/call search {\"query\":\"count\"}"],
            "",
        )
        .ends(0);
    assert_in_order(&out, &["count to 2", "count to 3"]);
}

#[test]
fn another_conversation_begins_and_the_program_continues() {
    let home = Home::new();
    let host = home.host(&[]);
    let (code, out, err) = home.chat(&host, &[], "count to 2\n/new\ncount to 3\n");
    let answers = "I count: 1 2 - done\nI count: 1 2 3 - done\n";
    assert_eq!((code, &*out), (Some(0), answers), "{err}");
    assert!(!err.contains("closed"), "{err}");
}

#[test]
fn an_agent_is_known_by_its_address() {
    let home = Home::new();
    let host = home.host(&[]);
    let chat = |address: &str| {
        outcome(home.agent(&["chat", address, "--endpoint", &host.url, "count to 2"]))
    };
    chat(&host.address).prints("I count: 1 2 - done\n");
    chat(&("0x".to_owned() + &"ab".repeat(32)))
        .fails(3, &["another agent answers there", &host.address]);
}

#[test]
fn json_is_one_object_for_each_event() {
    let home = Home::new();
    let host = home.host(&[]);
    let (out, err) = home
        .chat(
            &host,
            &["--json"],
            " /call write_file {\"path\":\"a.txt\",\"text\":\"milk\"}\ny\n!fail\n",
        )
        .ends(1);
    assert_in_order(&err, &["error: one error was printed above"]);
    let events: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| {
            (
                event["event"].as_str().unwrap(),
                event["frame"]["type"].as_str(),
            )
        })
        .filter(|(name, kind)| *name != "step" || *kind == Some("tool_result"))
        .collect();
    let expected = [
        ("connected", None),
        ("question", Some("approval_needed")),
        ("step", Some("tool_result")),
        ("output", None),
        ("error", None),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn json_has_an_event_for_whatever_ends_it() {
    let (home, other, guest) = (Home::new(), Home::new(), Home::new());
    let host = home.host(&["--trust", "strict"]);
    let open = other.host(&[]);
    let nobody = "http://127.0.0.1:1".to_owned();
    for (url, words, expected) in [
        (&open.url, "it hurts", 1),
        (&host.url, "forbidden: Denied by fast rules", 3),
        (&nobody, "no connection to http://127.0.0.1:1", 3),
    ] {
        let command = guest.agent(&["chat", url, "--json", "!fail it hurts"]);
        let (out, err) = outcome(command).ends(expected);
        let last = out.lines().last().unwrap_or_default();
        let event: Value = serde_json::from_str(last).unwrap();
        assert_eq!(event["event"], "error", "{out}");
        let message = event["message"].as_str().unwrap();
        assert!(message.contains(words), "{out}");
        assert!(err.contains(words), "{err}");
        assert_eq!(out.matches(r#""event":"error""#).count(), 1, "{out}");
    }
    // From a pipe, too.
    let mut command = guest.agent(&["chat", &host.url, "--json"]);
    command.stdin(Stdio::piped());
    let (_, out, _) = outcome(command);
    assert_in_order(&out, &[r#""event":"error""#, "forbidden"]);
}

#[test]
fn the_end_of_the_terminal_lets_the_agent_finish() {
    let home = Home::new();
    let host = home.host(&[]);
    let mut command = home.agent(&["chat", &host.url, "!slow 10 50"]);
    let chat = Running::start_with(command.arg("--json"));
    chat.line_with("llm_call");
    #[cfg(unix)]
    {
        host.running.signal("-HUP");
        host.running.line_with("finishing the work in progress");
        // A shell sends it once more when its terminal closes.
        host.running.signal("-HUP");
        chat.line_with("9 10");
        let (code, lines) = host.running.end_with_lines();
        assert_eq!(code, Some(0), "{lines:#?}");
        assert!(
            lines.iter().any(|line| line.starts_with("ended: ")),
            "{lines:#?}"
        );
    }
    assert_eq!(chat.end(), Some(0));
}

#[test]
fn a_cut_answer_does_not_count_as_whole() {
    let home = Home::new();
    let (model_url, provider) = model(&[
        r#"{"choices":[{"delta":{"content":"as far as it"},"finish_reason":"length"}]}"#,
        r#"{"choices":[{"delta":{"content":"a whole one"},"finish_reason":"stop"}]}"#,
    ]);
    let mut command = home.agent(&["host", "--listen", "127.0.0.1:0", "--provider", "openai"]);
    command
        .args(["--base-url", &model_url, "--model", "toy"])
        .env("OPENAI_API_KEY", "sk-hunter2");
    let host = Host::start(command);
    let (out, err) = home.chat(&host, &[], "hello\nand now?\n").ends(1);
    assert_in_order(&out, &["as far as it", "a whole one"]);
    assert_in_order(&err, &["the answer is cut"]);
    let requests = provider.join().unwrap();
    // The model sees what it has said.
    assert_in_order(&requests[1], &["hello", "as far as it", "and now?"]);
}
