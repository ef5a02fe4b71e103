//! [`NatsServer`]: a NATS server of its own, and what it says about itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::folder::Folder;

/// A running `nats-server -js`. It ends with this value, and its files with it.
pub(super) struct NatsServer {
    process: Child,
    address: String,
    monitor: String,
    _folder: Folder,
}

/// Whether there is a program `nats-server` on the path.
pub(super) fn is_installed() -> bool {
    let version = Command::new("nats-server").arg("-v").output();
    version.is_ok_and(|output| output.status.success())
}

impl NatsServer {
    pub(super) fn start() -> Self {
        let folder = Folder::new("nats");
        let mut process = Command::new("nats-server")
            .args(["-js", "-a", "127.0.0.1", "-p", "-1", "-m", "-1", "-sd"])
            .arg(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(process.stderr.take().unwrap());
        let mut lines = log.lines().map_while(Result::ok);
        let (mut address, mut monitor) = (String::new(), String::new());
        for line in lines.by_ref() {
            let after = |text: &str| {
                line.split_once(text)
                    .map(|(_, rest)| rest.trim().to_owned())
            };
            if let Some(found) = after("Listening for client connections on ") {
                address = found;
            }
            if let Some(found) = after("Starting http monitor on ") {
                monitor = found;
            }
            if line.contains("Server is ready") {
                break;
            }
        }
        // A full pipe would stop it.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            process,
            address,
            monitor,
            _folder: folder,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    /// How many messages it has received and sent.
    pub(super) fn messages(&self) -> [u64; 2] {
        let mut tcp = TcpStream::connect(&self.monitor).unwrap();
        tcp.write_all(b"GET /varz HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let said: serde_json::Value = serde_json::from_str(body).unwrap();
        ["in_msgs", "out_msgs"].map(|name| said[name].as_u64().unwrap())
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
