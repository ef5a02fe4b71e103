//! [`NatsServer`]: a NATS server with JetStream that belongs to one test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The text before the address in the server's log.
const LISTENING: &str = "Listening for client connections on ";
const READY: &str = "Server is ready";

/// A running `nats-server -js` on a port of its own. It ends with this value, and its files with it.
#[derive(Debug)]
pub struct NatsServer {
    process: Option<Child>,
    folder: PathBuf,
    address: String,
    more: Vec<String>,
}

impl NatsServer {
    /// Starts a server on loopback.
    ///
    /// # Panics
    /// If there is no program `nats-server` on the path, or it does not start.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with("", &[])
    }

    /// Starts a server with these lines of configuration and these arguments.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[must_use]
    pub fn start_with(config: &str, more: &[&str]) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("switchboard-nats-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        if let Err(error) = fs::create_dir_all(&folder) {
            crate::fail(&format!("no folder for nats-server: {error}"));
        }
        let mut more: Vec<String> = more.iter().map(|&it| it.to_owned()).collect();
        if !config.is_empty() {
            let file = folder.join("nats.conf");
            if let Err(error) = fs::write(&file, config) {
                crate::fail(&format!("no configuration for nats-server: {error}"));
            }
            more.extend(["-c".to_owned(), file.display().to_string()]);
        }
        let mut server = Self {
            process: None,
            folder,
            address: "127.0.0.1:-1".to_owned(),
            more,
        };
        server.restart();
        server
    }

    /// Returns the URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Returns the address, host and port.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the folder for the server's files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Kills the server with SIGKILL. What it has acknowledged stays.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Kills the server, and starts it again on the same port with what it had stored.
    ///
    /// # Panics
    /// If it does not start.
    pub fn restart(&mut self) {
        self.kill();
        let port = self.address.rsplit(':').next().unwrap_or_default();
        let started = Command::new("nats-server")
            .args(["-js", "-a", "127.0.0.1", "-p", port, "-sd"])
            .arg(&self.folder)
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) => crate::fail(&format!(
                "cannot start nats-server: {error}. On Debian: apt-get install nats-server"
            )),
        };
        let Some(log) = process.stderr.take() else {
            crate::fail("the log of nats-server is not piped");
        };
        let mut lines = BufReader::new(log).lines().map_while(Result::ok);
        let mut seen = String::new();
        let ready = lines.by_ref().any(|line| {
            if let Some((_, address)) = line.split_once(LISTENING) {
                self.address = address.trim().to_owned();
            }
            seen.push_str(&line);
            seen.push('\n');
            line.contains(READY)
        });
        self.process = Some(process);
        if !ready {
            crate::fail(&format!("nats-server did not start:\n{seen}"));
        }
        // A full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
    }

    /// Kills the server, and starts it again on the same port without what it had stored.
    ///
    /// # Panics
    /// If its files cannot be removed, or it does not start.
    pub fn restart_empty(&mut self) {
        self.kill();
        if let Err(error) = fs::remove_dir_all(self.folder.join("jetstream")) {
            crate::fail(&format!("the data of nats-server stay: {error}"));
        }
        self.restart();
    }

    /// Deletes a stream, as its administrator does. Returns when that has begun.
    ///
    /// # Panics
    /// If the server does not answer.
    pub fn delete_stream(&self, name: &str) {
        let deleting = || {
            let mut tcp = TcpStream::connect(&self.address)?;
            write!(
                tcp,
                "CONNECT {{\"verbose\":false}}\r\nPUB $JS.API.STREAM.DELETE.{name} _ 0\r\n\r\nPING\r\n"
            )?;
            let mut lines = BufReader::new(tcp).lines().map_while(Result::ok);
            Ok::<_, std::io::Error>(lines.any(|line| line == "PONG"))
        };
        if !deleting().is_ok_and(|is_done| is_done) {
            crate::fail("nats-server deletes no stream");
        }
    }

    /// Stops the process where it is, as a machine does that hangs. Connections stay open. Returns when all
    /// of its threads stand still.
    pub fn pause(&self) {
        self.signal("-STOP");
        while !self.stands_still() {
            std::thread::yield_now();
        }
    }

    /// Whether all threads are stopped; where the system does not say, they are taken for it.
    fn stands_still(&self) -> bool {
        let id = self.process.as_ref().map_or(0, Child::id);
        let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else {
            return true;
        };
        let is_stopped = |thread: fs::DirEntry| {
            let said = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // After the name in parentheses.
            let state = said.rsplit(')').next().unwrap_or_default().trim_start();
            state.is_empty() || state.starts_with('T')
        };
        threads.flatten().all(is_stopped)
    }

    /// Lets a [paused](Self::pause) server go on.
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let Some(process) = &self.process else { return };
        let sent = Command::new("kill")
            .args([signal, &process.id().to_string()])
            .status();
        if !sent.is_ok_and(|status| status.success()) {
            crate::fail("cannot signal nats-server");
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
