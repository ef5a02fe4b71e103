//! [`Screen`]: a terminal with a program in it, and someone who types and looks.
#![cfg(unix)]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use crate::programs::PATIENCE;

/// Its width.
pub(crate) const COLUMNS: u16 = 200;

/// A terminal with a program in it.
pub(crate) struct Screen {
    child: Child,
    keys: File,
    shown: mpsc::Receiver<Vec<u8>>,
    text: String,
    emulator: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    pub(crate) fn start(command: Command) -> Self {
        Self::with_rows(command, 24)
    }

    pub(crate) fn with_rows(command: Command, rows: u16) -> Self {
        Self::with_size(command, rows, COLUMNS)
    }

    pub(crate) fn with_size(command: Command, rows: u16, columns: u16) -> Self {
        Self::of_kind("xterm", command, rows, columns)
    }

    /// A terminal whose cursor cannot be moved.
    pub(crate) fn dumb(kind: &str, command: Command) -> Self {
        Self::of_kind(kind, command, 24, COLUMNS)
    }

    fn of_kind(kind: &str, mut command: Command, rows: u16, columns: u16) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        tcsetwinsize(&keys, winsize(rows, columns)).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let open = || {
            let path = name.to_str().unwrap();
            // Not the terminal of this process, should it lead a session: that would end with the first screen.
            let mode = OFlags::RDWR | OFlags::NOCTTY;
            File::from(rustix::fs::open(path, mode, Mode::empty()).unwrap())
        };
        command
            .env("TERM", kind)
            .env_remove("NO_COLOR")
            .env_remove("CI")
            .stdin(open())
            .stdout(open())
            .stderr(open());
        let child = command.spawn().unwrap();
        drop(command);
        let keys = File::from(keys);
        let (sender, shown) = mpsc::channel();
        let mut read = keys.try_clone().unwrap();
        let [rows, columns] = [rows, columns].map(|size| NonZeroU16::new(size).unwrap());
        let emulator = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 10_000)));
        let screen = Arc::clone(&emulator);
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(length @ 1..) = read.read(&mut part) {
                let part = &part[..length];
                let mut screen = screen.lock().unwrap();
                screen.process(part);
                // What a terminal says when it is asked for its cursor.
                if part.windows(4).any(|asked| asked == b"\x1b[6n") {
                    let (row, column) = screen.screen().cursor_position();
                    let _ = write!(read, "\x1b[{};{}R", row + 1, column + 1);
                }
                if sender.send(part.to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keys,
            shown,
            text: String::new(),
            emulator,
        }
    }

    /// Waits until the last row of what is on the screen is this, and no answer goes on above it.
    pub(crate) fn ends_in(&self, row: &str) {
        self.waits(row, |rows| {
            let is_answering = rows.iter().any(|row| row.ends_with("Esc stops"));
            !is_answering && rows.last().is_some_and(|last| last == row)
        });
    }

    /// Waits until the last row is this, while an answer goes on.
    pub(crate) fn has_last(&self, row: &str) {
        self.waits(row, |rows| rows.last().is_some_and(|last| last == row));
    }

    /// Waits until this is on the screen, however it came there.
    pub(crate) fn has(&self, part: &str) {
        self.waits(part, |rows| rows.iter().any(|row| row.contains(part)));
    }

    /// Waits until this is on the screen no more.
    pub(crate) fn waits_for_no(&self, part: &str) {
        self.waits(part, |rows| !rows.iter().any(|row| row.contains(part)));
    }

    /// Waits until numbers are being counted in answer to the first message, above a status line and a prompt.
    pub(crate) fn is_answering(&self) {
        self.waits("an answer that goes on", |rows| {
            let [_, _, counted, .., status, prompt] = rows else {
                return false;
            };
            let is_status = status.starts_with("answering ") && status.ends_with(" · Esc stops");
            counted.starts_with("1 2 3") && is_status && prompt == ">"
        });
    }

    /// Waits until the answer to `show markdown` is complete. Checks that it is rendered once and to the end, at
    /// whatever width.
    pub(crate) fn has_sample(&self) {
        self.waits("a rendered answer", |rows| {
            rows.ends_with(&["}", "", ">"].map(str::to_owned))
        });
        let rows = self.rows();
        let count = |part: &str| rows.iter().filter(|row| row.contains(part)).count();
        for (part, times) in [
            ("> show markdown", 1),
            ("A sample", 1),
            ("   [x] done", 1),
            ("│  1989 │", 1),
            ("fn greet(name: &str) -> String {", 1),
            ("Esc stops", 0),
            ("```", 0),
        ] {
            assert_eq!(count(part), times, "{part}: {rows:#?}");
        }
        // Rows end with words.
        let text = rows.join(" ");
        assert!(text.contains("emphasised, struck out or code"), "{rows:#?}");
    }

    fn waits(&self, what: &str, fits: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rows = self.rows();
            if fits(&rows) {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if self.shown.recv_timeout(left).is_err() {
                panic!("waited for {what:?}: {rows:#?}");
            }
        }
    }

    /// The rows on the screen down to the last one that is not empty.
    pub(crate) fn rows(&self) -> Vec<String> {
        let emulator = self.emulator.lock().unwrap();
        let (_, columns) = emulator.screen().size();
        let rows = emulator.screen().rows(0, columns.get());
        let mut rows: Vec<_> = rows.map(|row| row.trim_end().to_owned()).collect();
        while rows.pop_if(|row| row.is_empty()).is_some() {}
        rows
    }

    /// How many rows have left the screen at its top.
    pub(crate) fn rows_gone(&self) -> usize {
        self.emulator.lock().unwrap().screen().scrollback_len()
    }

    /// The cursor's row and column, from 0.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.emulator.lock().unwrap().screen().cursor_position()
    }

    /// Aborts the answer of a program that counts. Returns the rows: what came of it, and no status line.
    pub(crate) fn abort_count(&self) -> Vec<String> {
        self.has("Ctrl-C stops");
        self.has("1 2 3");
        self.terminate();
        self.ends_in("error: aborted");
        let rows = self.rows();
        assert!(rows[0].starts_with("1 2 3"), "{rows:#?}");
        assert!(!rows.concat().contains("stops"), "{rows:#?}");
        rows
    }

    /// Asks the program to end.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Makes the terminal larger or smaller.
    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        let [r, c] = [rows, columns].map(|size| NonZeroU16::new(size).unwrap());
        self.emulator.lock().unwrap().set_size(r, c);
        tcsetwinsize(&self.keys, winsize(rows, columns)).unwrap();
        // The system reports only to a session, which this is not.
        self.signal("-WINCH");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until the program has stopped.
    pub(crate) fn stops(&self) {
        let (sender, stopped) = mpsc::channel();
        let pid = self.pid();
        thread::spawn(move || sender.send(waitpid(Some(pid), WaitOptions::UNTRACED)));
        let status = stopped.recv_timeout(PATIENCE).expect("it goes on");
        let status = status.unwrap().unwrap().1;
        if !status.stopped() {
            let rest: Vec<u8> = self.shown.iter().flatten().collect();
            let rest = String::from_utf8_lossy(&rest);
            panic!("it has ended with {status:?}: {}{rest}", self.text);
        }
    }

    /// Continues the program, and waits until it reads keys again.
    pub(crate) fn goes_on(&mut self) {
        self.text.clear();
        while self.shown.try_recv().is_ok() {}
        kill_process(self.pid(), Signal::CONT).unwrap();
        self.shows("\x1b[?2004h");
    }

    /// Makes the terminal what a shell makes it.
    pub(crate) fn cook(&self) {
        let mut modes = tcgetattr(&self.keys).unwrap();
        modes.local_modes |= LocalModes::ECHO | LocalModes::ICANON;
        tcsetattr(&self.keys, OptionalActions::Now, &modes).unwrap();
    }

    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.keys).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, and forgets what was shown before it.
    pub(crate) fn shows(&mut self, expected: &str) -> String {
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

    /// Waits for the end with this code, and for the terminal as it was.
    pub(crate) fn ends_with(mut self, code: i32) {
        let deadline = Instant::now() + PATIENCE;
        // Nothing is shown any more once no one has the terminal open.
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it goes on: {:#?}", self.rows()),
            }
        }
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(code));
        assert!(self.is_cooked());
    }
}

const fn winsize(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
