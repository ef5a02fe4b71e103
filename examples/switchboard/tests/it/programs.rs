//! Runs the programs: to their end, or in the background with their first lines read.

use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Nothing here takes that long, unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program, without what the environment may hold for it.
pub(crate) fn program(path: &str) -> Command {
    let mut command = Command::new(path);
    // Programs inherit an ignored SIGHUP, too.
    #[cfg(unix)]
    if switchboard::cli::ignores_hangup() {
        command = Command::new("env");
        command.args(["--default-signal=HUP", path]);
    }
    for (name, _) in std::env::vars_os() {
        let lossy = name.to_string_lossy();
        let known = [
            "ACOLYTE_",
            "AGENT_",
            "SMARTHOLE_",
            "SNEK_",
            "EXOCLAW_",
            "OPENAI_",
            "OTEL_",
            "METRICS_",
            "ANTHROPIC_",
            "OLLAMA_",
            "VLLM_",
        ];
        if known.iter().any(|start| lossy.starts_with(start)) {
            command.env_remove(name);
        }
    }
    command
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The path of the program of this package.
pub(crate) const SWITCHBOARD: &str = env!("CARGO_BIN_EXE_switchboard");

pub(crate) fn switchboard(command: &str, args: &[&str]) -> Command {
    let mut program = program(SWITCHBOARD);
    program.arg(command).args(args);
    program
}

/// The host and the port of an address.
pub(crate) fn host(url: &str) -> &str {
    let (_, host) = url.split_once("://").unwrap();
    host.split('/').next().unwrap()
}

/// A folder that is removed with the value.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The whole answer to a plain request, which begins with `request`: a method and a path. Headers end
/// with their line.
pub(crate) fn exchange(host: &str, request: &str, headers: &str, body: &str) -> String {
    let mut socket = TcpStream::connect(host).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(
        socket,
        "{request} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// A program that runs, and is killed with the value.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self::start_with(&mut command)
    }

    pub(crate) fn start_with(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        read_lines(child.stdout.take().unwrap(), sender.clone());
        read_lines(child.stderr.take().unwrap(), sender);
        Self { child, lines }
    }

    /// A program that listens, and its address.
    pub(crate) fn serve(command: Command) -> (Self, String) {
        let running = Self::start(command);
        let line = running.line_with("listening on ");
        let (_, rest) = line.split_once("listening on ").unwrap();
        let url = rest.split([' ', ',', ')']).next().unwrap().to_owned();
        (running, url)
    }

    /// What it reads, if the command says that this is a pipe. It ends with the value.
    pub(crate) fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line that holds `text`, of either output.
    pub(crate) fn line_with(&self, text: &str) -> String {
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => before.push(line),
                Err(error) => panic!("no line with {text:?} ({error}); before: {before:#?}"),
            }
        }
    }

    /// The next line of either output; none at its end.
    pub(crate) fn line(&self) -> Option<String> {
        self.lines.recv_timeout(PATIENCE).ok()
    }

    /// Asks it to end, as Ctrl-C does.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        self.signal("-INT");
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Reads on to the end and returns the exit code.
    pub(crate) fn end(self) -> Option<i32> {
        self.end_with_lines().0
    }

    /// Reads on to the end and returns the exit code and the lines that were not read before.
    pub(crate) fn end_with_lines(mut self) -> (Option<i32>, Vec<String>) {
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            lines.push(line);
        }
        (self.child.wait().unwrap().code(), lines)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(from: impl Read + Send + 'static, to: mpsc::Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = to.send(line);
        }
    });
}

/// What is left of a program that has ended: exit code, standard output, standard error.
pub(crate) type Outcome = (Option<i32>, String, String);

pub(crate) fn outcome(mut command: Command) -> Outcome {
    left(command.output().unwrap())
}

/// What becomes of these lines in a program that reads them.
pub(crate) fn outcome_of_lines(mut command: Command, lines: &str) -> Outcome {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    // One that does not read has ended.
    let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
    left(child.wait_with_output().unwrap())
}

fn left(output: Output) -> Outcome {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    (output.status.code(), out, err)
}

/// What is expected of an [`Outcome`].
pub(crate) trait Ended {
    /// This exit code. Returns both outputs.
    fn ends(self, code: i32) -> (String, String);

    /// Success, and this on standard output. Returns standard error.
    fn prints(self, text: &str) -> String;

    /// This exit code, nothing on standard output, and all of this on standard error, which is returned.
    fn fails(self, code: i32, parts: &[&str]) -> String;
}

impl Ended for Outcome {
    #[track_caller]
    fn ends(self, expected: i32) -> (String, String) {
        let (code, out, err) = self;
        assert_eq!(code, Some(expected), "{out}{err}");
        (out, err)
    }

    #[track_caller]
    fn prints(self, text: &str) -> String {
        let (out, err) = self.ends(0);
        assert_eq!(out, text, "{err}");
        err
    }

    #[track_caller]
    fn fails(self, code: i32, parts: &[&str]) -> String {
        let (out, err) = self.ends(code);
        assert_eq!(out, "", "{err}");
        assert_holds(&err, parts);
        err
    }
}

#[track_caller]
pub(crate) fn assert_holds(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

/// Asserts that a text has all of this, one after the other.
#[track_caller]
pub(crate) fn assert_in_order(text: &str, expected: &[&str]) {
    let mut rest = text;
    for expected in expected {
        let at = rest.find(expected);
        let at = at.unwrap_or_else(|| panic!("no {expected:?} where it belongs in\n{text}"));
        rest = &rest[at + expected.len()..];
    }
}

/// Answers requests as a model behind OpenAI's interface does, each with the next of these chunks. Returns its
/// address, and what hands out the requests.
pub(crate) fn model(chunks: &[&str]) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let chunks: Vec<_> = chunks.iter().map(|&chunk| chunk.to_owned()).collect();
    let answer = move |chunk: String| {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.windows(13).any(|part| part == b"\"stream\":true") {
            let mut part = [0; 4096];
            let length = socket.read(&mut part).unwrap();
            assert_ne!(length, 0, "{}", String::from_utf8_lossy(&request));
            request.extend_from_slice(&part[..length]);
        }
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        write!(socket, "{head}data: {chunk}\n\n").unwrap();
        String::from_utf8(request).unwrap()
    };
    let answers = move || chunks.into_iter().map(answer).collect();
    (url, thread::spawn(answers))
}
