//! [`Child`]: one end in a process of its own, led line by line. Linux only.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use crate::process::resident;

pub(super) struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts one end, with as many open files as the system lets us have.
    pub(super) fn start(words: &[&str]) -> Self {
        let mut process = Command::new("sh")
            .args(["-c", r#"ulimit -n "$(ulimit -H -n)"; exec "$0" net "$@""#])
            .arg(std::env::current_exe().unwrap())
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

    /// Nanoseconds that all its threads have run.
    pub(super) fn cpu(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let spent = tasks.map(|task| {
            let text = fs::read_to_string(task.unwrap().path().join("schedstat"));
            let text = text.unwrap_or_default();
            let first = text.split_whitespace().next();
            first.map_or(0, |nanoseconds| nanoseconds.parse().unwrap_or(0))
        });
        spent.sum()
    }

    pub(super) fn resident(&self) -> u64 {
        resident(self.process.id())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
