//! [`Peer`]: the other side of a script: a server behind an address ([`Dial`]), the program of a client ([`Command`]),
//! or clients that come by themselves ([`Listening`]).

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use rpc_core::net::DialError;
use rpc_core::net::server::{Guards, Listener};
use rpc_core::net::ws::WsDialer;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::conn::BoxStream;
use super::variables::Variables;

/// The other side of a script.
#[derive(Clone)]
pub(crate) enum Peer {
    /// A server: how it is reached, and its URL.
    Server(Arc<dyn Dial>, String),
    /// A client.
    Client(Arc<dyn Client>),
}

/// How a server is reached.
#[async_trait]
pub(crate) trait Dial: Send + Sync {
    /// Opens a byte stream to the server: TCP, with TLS where the URL says so.
    ///
    /// # Errors
    /// The server cannot be reached.
    ///
    /// # Cancel safety
    /// Dropping the future closes the stream.
    async fn dial(&self) -> Result<BoxStream, DialError>;
}

#[async_trait]
impl Dial for WsDialer {
    async fn dial(&self) -> Result<BoxStream, DialError> {
        Ok(Box::new(self.open().await?.0))
    }
}

/// A client that can be started for each script.
#[async_trait]
pub(crate) trait Client: Send + Sync {
    /// Starts the client with the address of a server of its own.
    ///
    /// # Errors
    /// It cannot be started.
    ///
    /// # Cancel safety
    /// Dropping the future starts nothing, or ends what was started.
    async fn start(&self, path: &str, variables: &Variables) -> io::Result<Started>;
}

/// A client that was started. Dropping it ends the client.
pub(crate) struct Started {
    /// The connections that it opens.
    pub connections: mpsc::Receiver<BoxStream>,
    /// How it ends.
    pub ended: Pin<Box<dyn Future<Output = Ended> + Send>>,
    /// Which requests are answered, if not all are.
    pub guards: Option<Guards>,
}

/// How a client has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub output: String,
    /// What it wrote to standard error.
    pub errors: String,
}

impl Ended {
    /// Says how the client has ended, with the last lines of what it wrote.
    pub(super) fn words(&self) -> String {
        let code = self
            .code
            .map_or_else(|| "by a signal".to_owned(), |code| format!("with {code}"));
        let said = [&self.output, &self.errors].into_iter().flat_map(|text| {
            let lines = text.trim_end().lines().rev().take(MAX_LINES);
            lines.collect::<Vec<_>>().into_iter().rev()
        });
        let said: Vec<_> = said.collect();
        match said.is_empty() {
            true => format!("the client has ended {code}, and wrote nothing"),
            false => format!("the client has ended {code}: {}", said.join("\n")),
        }
    }
}

/// The most lines of a client's output that are shown.
const MAX_LINES: usize = 10;
/// The most that is kept of what a client writes.
const MAX_OUTPUT: u64 = 1024 * 1024;
/// Connections that wait for the script.
const BACKLOG: usize = 16;

/// A program that is started for each row, with the address of a server for it alone. It ends with its row,
/// with everything that it has started.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The program and its arguments, in which `{url}` is replaced by the address, and `{NAME}` by
    /// variables.
    pub line: Vec<String>,
}

#[async_trait]
impl Client for Command {
    async fn start(&self, path: &str, variables: &Variables) -> io::Result<Started> {
        let listener = Listener::bind("127.0.0.1:0").await?;
        let url = format!("ws://{}{path}", listener.local_addr()?);
        let mut all = variables.clone();
        all.set("url", url.as_str());
        let words: Vec<String> = self.line.iter().map(|word| fill(word, &all)).collect();
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .env("SWITCHBOARD_URL", &url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::spawn(command)?;
        let output = collect(group.child.stdout.take());
        let errors = collect(group.child.stderr.take());
        let (connections, tasks) = accept(listener);
        // Holds the tasks and the program: they end with this future.
        let ended = Box::pin(async move {
            let _tasks = tasks;
            let status = group.child.wait().await;
            // What the program has started might keep its output open.
            group.kill();
            Ended {
                code: status.ok().and_then(|status| status.code()),
                output: output.await.unwrap_or_default(),
                errors: errors.await.unwrap_or_default(),
            }
        });
        Ok(Started {
            connections,
            ended,
            guards: None,
        })
    }
}

/// Clients that come by themselves.
pub(crate) struct Listening(pub(crate) Mutex<Option<Listener>>);

#[async_trait]
impl Client for Listening {
    async fn start(&self, _: &str, _: &Variables) -> io::Result<Started> {
        let listener = self.0.lock().ok().and_then(|mut it| it.take());
        let listener = listener.ok_or(io::ErrorKind::AddrInUse)?;
        let local = listener.local_addr()?;
        let (connections, tasks) = accept(listener);
        Ok(Started {
            connections,
            ended: Box::pin(async move {
                let _tasks = tasks;
                std::future::pending().await
            }),
            guards: Some(Guards::default().for_bind(local)),
        })
    }
}

/// Accepts connections, for as long as the tasks are kept.
fn accept(listener: Listener) -> (mpsc::Receiver<BoxStream>, JoinSet<()>) {
    let (sender, connections) = mpsc::channel(BACKLOG);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            // Some systems cannot: what is sent waits a little then.
            let _slow = tcp.set_nodelay(true);
            if sender.send(Box::new(tcp) as BoxStream).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    });
    (connections, tasks)
}

/// Collects what a program writes. It ends with the pipe.
fn collect(pipe: Option<impl AsyncRead + Unpin + Send + 'static>) -> JoinHandle<String> {
    tokio::spawn(async move {
        let mut output = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = (&mut pipe).take(MAX_OUTPUT).read_to_end(&mut output).await;
            // A program that has more to say must not wait for ever.
            let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
        }
        String::from_utf8_lossy(&output).into_owned()
    })
}

/// A program and everything that it starts in its process group, killed when the value is dropped.
struct Group {
    child: Child,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

impl Group {
    fn spawn(mut command: tokio::process::Command) -> io::Result<Self> {
        #[cfg(unix)]
        command.process_group(0);
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Self {
            #[cfg(unix)]
            id: child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(rustix::process::Pid::from_raw),
            child,
        })
    }

    /// Kills the remaining processes, once: the id may be that of others later.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(id) = self.id.take() {
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Replaces `{NAME}` by variables.
fn fill(word: &str, variables: &Variables) -> String {
    let mut parts = word.split('{');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let filled = part
            .split_once('}')
            .and_then(|(name, after)| Some([variables.text(name)?, after].concat()));
        out += &filled.unwrap_or_else(|| format!("{{{part}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_address() {
        let mut variables = Variables::default();
        variables.set("url", "ws://x");
        assert_eq!(fill("--url={url}", &variables), "--url=ws://x");
        assert_eq!(fill("{\"a\":1} {other}", &variables), "{\"a\":1} {other}");
    }
}
