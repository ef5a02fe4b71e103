//! The router at a terminal: what is typed is edited and remembered, events come above it, and the
//! terminal is left as it was.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::programs::{PATIENCE, Running, program};

/// A terminal with a program in it.
struct Screen {
    child: Child,
    keys: File,
    shown: mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl Screen {
    fn start(mut command: Command) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 200,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&keys, size).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let open = || {
            let path = name.to_str().unwrap();
            File::options().read(true).write(true).open(path).unwrap()
        };
        command
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .stdin(open())
            .stdout(open())
            .stderr(open());
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(keys);
        let (sender, shown) = mpsc::channel();
        let mut read = keys.try_clone().unwrap();
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = read.read(&mut part) {
                // What a terminal says when it is asked for its cursor.
                if part[..length].windows(4).any(|asked| asked == b"\x1b[6n") {
                    let _ = read.write_all(b"\x1b[1;1R");
                }
                if sender.send(part[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            shown,
            text: String::new(),
        }
    }

    fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, and forgets what was shown before it.
    fn shows(&mut self, expected: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.text.find(expected) {
                let rest = self.text.split_off(at + expected.len());
                return std::mem::replace(&mut self.text, rest);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(part) = self.shown.recv_timeout(left) else {
                panic!("no {expected:?} in {:?}", self.text);
            };
            self.text.push_str(&String::from_utf8_lossy(&part));
        }
    }

    fn ends_with(mut self, code: i32) {
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(code));
        let modes = tcgetattr(&self.keys).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ECHO | LocalModes::ICANON));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn router(args: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_router"));
    command.args(["--listen", "127.0.0.1:0"]).args(args);
    command.current_dir(std::env::temp_dir());
    command
}

/// A router at a terminal, with a client that takes nothing.
fn started() -> (Screen, Running) {
    let mut screen = Screen::start(router(&[]));
    screen.shows("listening on ");
    let url = screen.shows(" (input: ");
    let url = url.trim_end_matches(" (input: ").to_owned();
    let mut client = program(env!("CARGO_BIN_EXE_router"));
    client.args(["client", "--url", &url, "--reject", "not today"]);
    let client = Running::start(client);
    screen.shows("is here");
    (screen, client)
}

#[test]
fn a_line_is_edited_sent_and_called_back() {
    let (mut screen, _client) = started();
    // Typed faster than it is read, with a mistake that is taken back.
    screen.types("notes: milj\x7fk\r");
    screen.shows(r#""milk" to "#);
    screen.shows("rejects it: not today");
    screen.types("\x1b[A and bread\r");
    screen.shows(r#""milk and bread" to "#);
    screen.types("/help\r");
    screen.shows("/clients");
    screen.types("/quit\r");
    screen.shows("has left");
    screen.ends_with(0);
}

#[test]
fn events_come_above_the_line_that_is_being_typed() {
    let (mut screen, client) = started();
    screen.types("half a li");
    screen.shows("half a li");
    drop(client);
    screen.shows("has left");
    // It is there again below the event, and goes on.
    screen.shows("half a li");
    screen.types("ne\r");
    screen.shows("half a line");
    screen.shows("no client is connected");
    screen.types("\x04");
    screen.ends_with(0);
}

#[test]
fn a_signal_in_the_middle_of_a_line_leaves_the_terminal_as_it_was() {
    let (mut screen, _client) = started();
    screen.types("half a li");
    screen.shows("half a li");
    let pid = screen.child.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(sent.success());
    screen.shows("has left");
    screen.ends_with(0);
}
