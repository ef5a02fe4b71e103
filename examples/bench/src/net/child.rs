//! [`Child`]: one end in a process of its own, led line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use crate::process;

pub(super) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub(super) fn start(words: &[&str]) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("net")
            .args(words)
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
        let mut server = Self::start(&["serve", kind]);
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

    pub(super) fn cpu(&self) -> u64 {
        process::cpu(self.process.id())
    }

    pub(super) fn resident(&self) -> u64 {
        process::resident(self.process.id())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
