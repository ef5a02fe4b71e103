//! The commands of our texts, each run as a reader runs it: in headers of `examples/*.rs`, in `examples/README.md`, and
//! in the examples of every `--help`.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::Path;
use std::process::{ChildStdin, Stdio};

use crate::programs::{Folder, Running, SWITCHBOARD, outcome, program};
use crate::tree::{list, read, root};

/// What is served: the command, its protocol, its address, the variable that leads clients to another one, and a
/// server of it for everybody, with the scripted model.
const SERVED: [[&str; 5]; 5] = [
    [
        "agent",
        "connectonion",
        "127.0.0.1:8000",
        "AGENT_URL",
        "switchboard agent host",
    ],
    [
        "bot",
        "snek",
        "127.0.0.1:8080",
        "SNEK_URL",
        "switchboard bot serve --open; SNEK_PASSWORD=secret switchboard bot --username mybot",
    ],
    [
        "daemon",
        "acolyte",
        "127.0.0.1:6767",
        "ACOLYTE_URL",
        "switchboard daemon serve --commands open",
    ],
    [
        "gateway",
        "exoclaw",
        "127.0.0.1:7200",
        "EXOCLAW_URL",
        "switchboard gateway",
    ],
    [
        "router",
        "smarthole",
        "127.0.0.1:9473",
        "SMARTHOLE_URL",
        "switchboard router",
    ],
];
/// What a test cannot have: a part of a command, and what it stands for. These commands are not run.
const MISSING: [(&str, &str); 3] = [
    ("nats", "a NATS server"),
    ("| source", "the shell fish"),
    ("Invoke-Expression", "PowerShell"),
];
/// What programs say that go on until they are stopped.
const READY: [&str; 9] = [
    "the page is",
    "listening on",
    "bot is here",
    "gateway at",
    "router at",
    "agent 0x",
    "daemon at",
    "logged in",
    "registered as",
];
/// What a command says that has not done what its text promises, whatever its exit code.
const FAILED: [&str; 6] = [
    "no client fits",
    "no one could",
    "not passed on",
    "\nerror: ",
    "\nError: ",
    "panicked",
];

/// A line of a text.
#[derive(Debug)]
enum Line {
    Command(String),
    /// What a reader writes to the programs above it.
    Typed(String),
}

/// Whether a line runs a program, after variables, pipes and brackets of the shell.
fn is_command(line: &str) -> bool {
    let mut words = line.split([' ', '(']);
    let begins = ["cargo ", "nats-server "]
        .iter()
        .any(|name| line.starts_with(name));
    let runs = begins || words.any(|word| ["curl", "switchboard"].contains(&word));
    runs && !line.ends_with(':')
}

/// The commands in backticks, and in blocks of the shell.
fn of_markdown(text: &str) -> Vec<Line> {
    let spans = text.split('`').skip(1).step_by(2);
    let spans = spans.map(|span| span.strip_prefix("sh\n").unwrap_or(span).trim());
    let commands =
        spans.filter(|span| span.starts_with("cargo ") || span.starts_with("switchboard "));
    commands
        .map(|span| Line::Command(span.to_owned()))
        .collect()
}

/// The commands of the examples of a help text, and what is written to them.
fn of_help(help: &str) -> Vec<Line> {
    let Some((_, block)) = help.split_once("\nExamples") else {
        return Vec::new();
    };
    let block = block.split("\n\n").next().unwrap_or_default();
    let joined = block
        .replace("\\\n", " ")
        .replace("; do\n", "; do ")
        .replace("&\n    done", "& done");
    let mut found = Vec::new();
    for line in joined.lines().skip(1) {
        let text = line.trim();
        if is_command(text) {
            found.push(Line::Command(text.to_owned()));
        } else if line.starts_with("    ") {
            let typed = text
                .split("   ")
                .map(str::trim)
                .filter(|typed| !typed.is_empty());
            found.extend(typed.map(|typed| Line::Typed(typed.to_owned())));
        }
    }
    found
}

fn help(path: &str) -> String {
    let mut command = program(SWITCHBOARD);
    command.args(path.split_whitespace()).arg("--help");
    let (code, help, _) = outcome(command);
    assert_eq!(code, Some(0), "{path} --help");
    help
}

/// The help of a command and of those below it.
fn helps(path: &str, found: &mut Vec<(String, String)>) {
    let text = help(path);
    let (_, below) = text.split_once("\nCommands:\n").unwrap_or_default();
    let below = below.split("\n\n").next().unwrap_or_default();
    let names = below
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    for name in names.filter_map(|line| line.split_whitespace().next()) {
        if name != "help" {
            helps(format!("{path} {name}").trim(), found);
        }
    }
    found.push((path.to_owned(), text));
}

/// A command that runs.
struct Started {
    line: String,
    /// Until it was ready.
    said: String,
    running: Running,
    input: Option<ChildStdin>,
    /// What it serves, as an index in [`SERVED`].
    serves: Option<usize>,
}

/// A reader at work on one text, in a folder with all files that the texts name.
struct Reader<'a> {
    helps: &'a [(String, String)],
    folder: Folder,
    /// A free address in place of each of [`SERVED`].
    addresses: Vec<String>,
    running: Vec<Started>,
    faults: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(name: &str, helps: &'a [(String, String)]) -> Self {
        let folder = Folder::new(&format!("text-{}", name.replace([' ', '/'], "-")));
        let write = |file: &str, text: &[u8]| fs::write(folder.0.join(file), text).unwrap();
        let config = fs::read(root().join("examples/switchboard/gateway.toml")).unwrap();
        write("gateway.toml", &config);
        fs::create_dir(folder.0.join(".exoclaw")).unwrap();
        write(".exoclaw/config.toml", b"[gateway]\nextensions = true\n");
        write("users.txt", b"alice:wonderland\n");
        write("Makefile", b"make test:\n\t@echo done\n");
        for file in ["README.md", "VERSION", "report.txt"] {
            write(file, b"name: 0.1.0\n");
        }
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        write("cert.pem", key.cert.pem().as_bytes());
        write("key.pem", key.signing_key.serialize_pem().as_bytes());
        // All at once, so that they differ; soon taken again.
        let free = SERVED.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = free.map(|free| free.local_addr().unwrap().to_string());
        Self {
            helps,
            folder,
            addresses: addresses.to_vec(),
            running: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The longest command of the program that begins like this, and its help.
    fn help_of(&self, line: &str) -> Option<&(String, String)> {
        let (_, line) = line.split_once("switchboard ")?;
        let begins = |path: &str| {
            line.strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let found = self
            .helps
            .iter()
            .filter(|(path, _)| !path.is_empty() && begins(path));
        found.max_by_key(|(path, _)| path.len())
    }

    /// The option that tells the command where to listen, if it serves.
    fn listens(&self, line: &str) -> Option<&'static str> {
        if let Some((_, example)) = line.split_once("cargo run -p examples --bin ") {
            return Some(if example.contains(" -- ") {
                "--bind"
            } else {
                "-- --bind"
            });
        }
        let (_, help) = self.help_of(line)?;
        let options = [
            ("--listen <ADDRESS>", "--listen"),
            ("--port <PORT>", "--port"),
        ];
        let found = options.iter().find(|(option, _)| help.contains(option));
        found
            .map(|(_, option)| *option)
            .filter(|_| !line.contains("--as client"))
    }

    /// Talks to what was started last as to a gateway, so that there is something to record or to play.
    fn talk(&mut self) {
        let proxy = self.running.last().unwrap().said.clone();
        let url = proxy
            .split([' ', ',', '\n'])
            .find(|word| word.starts_with("ws://"));
        let mut chat = program(SWITCHBOARD);
        chat.args(["gateway", "chat", "--history", "--url", url.unwrap()]);
        let (code, _, said) = outcome(chat);
        assert_eq!(code, Some(0), "{said}");
    }

    /// Runs a command to its end, or until it is ready.
    fn run(&mut self, written: &str, typed: &[&str]) {
        let is_recording = |word: &&str| word.contains(".jsonl") && !written.contains("--record");
        if let Some(file) = written.split(' ').find(is_recording) {
            if !self.folder.0.join(file).exists() {
                let proxy = "switchboard wire proxy --to ws://127.0.0.1:7200 --record";
                self.run(&format!("{proxy} {file}"), &[]);
            }
            // A recording is whole when its proxy has ended.
            self.end(|serves| serves.is_none());
        }
        let listens = self.listens(written);
        let owns = listens.is_some() && !written.contains("switchboard wire");
        let serves = |[name, protocol, address, ..]: &[&str; 5]| {
            let names = [
                format!("switchboard {name}"),
                format!("--bin {name}"),
                format!("--protocol {protocol}"),
            ];
            names.iter().any(|name| written.contains(name)) || written.contains(address)
        };
        let served = SERVED.iter().position(serves);
        let chats = written.contains(" chat") && !written.contains('|');
        let typed = if typed.is_empty() {
            &["hello @mybot and @bot"]
        } else {
            typed
        };
        let mut line = written.to_owned();
        if let Some(index) = served {
            let [_, _, address, _, server] = SERVED[index];
            if owns {
                self.end(|other| other == Some(index));
            } else if !self.running.iter().any(|other| other.serves == Some(index)) {
                for command in server.split("; ") {
                    self.run(command, &[]);
                }
            }
            let ours = self.addresses[index].clone();
            let (_, port) = ours.split_once(':').unwrap();
            let (_, known) = address.split_once(':').unwrap();
            line = line.replace(&format!(".1:{known}"), &format!(".1:{port}"));
            line = line.replace(&format!(".0:{known}"), &format!(".0:{port}"));
            match listens {
                Some("--port") => line.push_str(&format!(" --port {port}")),
                Some(option) if owns && line == written => {
                    line.push_str(&format!(" {option} {ours}"));
                }
                _ => {}
            }
            // Servers of other people.
            while let Some((before, rest)) = line.split_once("wss://").filter(|_| listens.is_none())
            {
                let after = rest.find([' ', '/']).map_or("", |end| &rest[end..]);
                line = format!("{before}ws://{ours}{after}");
            }
        }
        if listens.is_some() && !owns {
            line = line.replace(" --listen 127.0.0.1:7100", "") + " --listen 127.0.0.1:0";
        }
        if line.contains("wire load") {
            line += " --duration 300ms";
        }
        // Who chats in this text allows what is asked.
        if chats
            && self
                .help_of(&line)
                .is_some_and(|(_, help)| help.contains("--yes"))
        {
            line += " --yes";
        }
        let known = self
            .running
            .iter()
            .flat_map(|it| it.said.split([' ', ')', '\n']));
        let known = known.rev().find(|word| word.starts_with("0x"));
        let line = line
            .replace("0x3d40..", known.unwrap_or_default())
            .replace("=.. ", "=secret ")
            .replace(" --duration 10s", "")
            .replace("cargo run -p switchboard --", "switchboard")
            .replace("cargo run -p examples --bin ", "./");
        let line = match line.strip_prefix("./") {
            Some(example) => example.replace(" -- ", " "),
            None => line.replace("cargo run -p examples", "tour"),
        };
        let programs = Path::new(SWITCHBOARD).parent().unwrap();
        assert!(
            programs.join("tour").exists(),
            "add `-p examples` to `cargo test`"
        );
        let path = std::env::var("PATH").unwrap();
        let mut shell = program("bash");
        shell
            .args(["-c", &line])
            .current_dir(&self.folder.0)
            .stdin(Stdio::piped());
        shell.env("PATH", format!("{}:{path}", programs.display()));
        shell.env("HOME", &self.folder.0);
        for ([_, _, _, name, _], address) in SERVED.iter().zip(&self.addresses) {
            shell.env(name, format!("http://{address}"));
        }
        shell.env("SNEK_URL", format!("ws://{}", self.addresses[1]));
        let mut running = Running::start(shell);
        let mut input = running.input();
        // A chat reads its lines at once, a server once its clients are there.
        let input = match listens {
            Some(_) => Some(input),
            None if !chats => {
                drop(input);
                None
            }
            None => {
                let _ = input.write_all(typed.join("\n").as_bytes());
                drop(input);
                None
            }
        };
        let mut said = String::new();
        while let Some(next) = running.line() {
            said = format!("{said}{next}\n");
            if READY.iter().any(|ready| next.contains(ready)) && !line.contains('|') {
                self.running.push(Started {
                    line,
                    said,
                    running,
                    input,
                    serves: served.filter(|_| owns),
                });
                if !owns && listens.is_some() && next.contains("ws://") {
                    self.talk();
                }
                return;
            }
        }
        let (code, rest) = running.end_with_lines();
        self.faults
            .extend(fault(&line, code, &(said + &rest.join("\n"))));
    }

    /// Writes to the server that reads lines, and waits for what becomes of it.
    fn types(&mut self, typed: &str) {
        let server = self
            .running
            .iter_mut()
            .find(|it| it.input.is_some())
            .unwrap();
        writeln!(server.input.as_mut().unwrap(), "{typed}").unwrap();
        loop {
            let line = server.running.line().unwrap();
            self.faults.extend(fault(typed, Some(0), &line));
            if line.contains("taken it") || line.contains("no client") {
                return;
            }
        }
    }

    fn finish(&mut self, it: Started) {
        it.running.interrupt();
        let (code, said) = it.running.end_with_lines();
        self.faults.extend(fault(&it.line, code, &said.join("\n")));
    }

    /// Ends programs that run, as Ctrl-C does.
    fn end(&mut self, which: impl Fn(Option<usize>) -> bool) {
        let started: Vec<_> = self.running.drain(..).collect();
        for it in started {
            if which(it.serves) {
                self.finish(it);
            } else {
                self.running.push(it);
            }
        }
    }
}

/// Says what is wrong with a command that has ended, or reached its end.
fn fault(line: &str, code: Option<i32>, said: &str) -> Option<String> {
    let said = format!("\n{said}");
    let is_well = code == Some(0) && !FAILED.iter().any(|failed| said.contains(failed));
    (!is_well).then(|| format!("{line} (exit code {code:?})\n{said}"))
}

/// Every text with commands.
fn texts(helps: &[(String, String)]) -> Vec<(String, Vec<Line>)> {
    let mut found: Vec<_> = helps
        .iter()
        .map(|(path, help)| (format!("{path} --help"), of_help(help)))
        .collect();
    for path in list(&root().join("examples")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".rs") {
            let text = read(&path);
            let header = text.lines().map_while(|line| line.strip_prefix("//!"));
            found.push((name, of_markdown(&header.collect::<String>())));
        } else if name == "README.md" {
            found.push((name, of_markdown(&read(&path))));
        }
    }
    found
}

#[test]
fn every_command_of_a_text_does_what_it_says() {
    let mut found = Vec::new();
    helps("", &mut found);
    let (mut run, mut skipped, mut faults) = (0, Vec::new(), Vec::new());
    for (name, lines) in texts(&found) {
        let typed = lines.iter().filter_map(|line| match line {
            Line::Typed(text) => Some(text.as_str()),
            Line::Command(_) => None,
        });
        let typed: Vec<_> = typed.collect();
        let is_chat = |line: &Line| matches!(line, Line::Command(text) if text.contains(" chat"));
        let has_chat = lines.iter().any(is_chat);
        let mut reader = Reader::new(&name, &found);
        for line in &lines {
            match line {
                Line::Typed(_) if has_chat => {}
                Line::Typed(text) => reader.types(text),
                Line::Command(text) => match MISSING.iter().find(|(part, _)| text.contains(part)) {
                    Some((_, why)) => skipped.push(format!("{name}: {text} (needs {why})")),
                    None => {
                        println!("{name}: {text}");
                        run += 1;
                        reader.run(text, &typed);
                    }
                },
            }
        }
        reader.end(|_| true);
        faults.extend(reader.faults.iter().map(|fault| format!("{name}: {fault}")));
    }
    println!("{run} commands are run; not run: {skipped:#?}");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(run > 90 && skipped.len() == 8, "{run}, {skipped:#?}");
}
