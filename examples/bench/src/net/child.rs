//! [`Child`]: one end in a process of its own, led line by line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use super::foreign;
use crate::process;

pub(super) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts one end. `kind` says whose program it is.
    pub(super) fn start(kind: &str, words: &[&str]) -> Self {
        if let Some((program, script)) = foreign::program(kind) {
            return Self::spawn(program.as_os_str(), script.as_os_str(), words);
        }
        let own = std::env::current_exe().unwrap();
        Self::spawn(own.as_os_str(), OsStr::new("net"), words)
    }

    /// As many files as the system lets us have: one for each connection.
    fn spawn(program: &OsStr, first: &OsStr, words: &[&str]) -> Self {
        let mut process = Command::new("sh")
            .args(["-c", r#"ulimit -n "$(ulimit -H -n)"; exec "$0" "$@""#])
            .arg(program)
            .arg(first)
            .args(words)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
        }
    }

    /// A server and its address.
    pub(super) fn server(kind: &str) -> (Self, String) {
        let mut server = Self::start(kind, &["serve", kind]);
        let address = server.line();
        (server, address)
    }

    /// What it says next.
    pub(super) fn line(&mut self) -> String {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        assert!(length > 0, "the child has ended");
        line.trim().to_owned()
    }

    /// Lets it go on.
    pub(super) fn go(&mut self) {
        writeln!(self.input).unwrap();
    }

    #[cfg(feature = "nats")]
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn cpu(&self) -> u64 {
        process::cpu(self.process.id())
    }

    pub(super) fn resident(&self) -> u64 {
        process::resident(self.process.id())
    }

    pub(super) fn peak(&self) -> u64 {
        process::peak(self.process.id())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
