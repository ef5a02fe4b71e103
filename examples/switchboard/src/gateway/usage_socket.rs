//! Access to the usage log of a running gateway, for `gateway usage`: only one process can have the
//! file open, so the other one asks over a UNIX socket in the data folder.
//!
//! The question is a number and a line feed; the answer is the number of entries, then each entry
//! as a line of JSON, newest first.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixListener;
use tokio::time::{sleep, timeout};

use super::engine::Engine;
use super::usage::UsageEntry;

/// The name of the socket in the data folder.
pub const SOCKET_NAME: &str = "exoclaw.sock";
/// How long one question and its answer may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long accepting pauses after the system refused it.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest question, in bytes.
const MAX_QUESTION: u64 = 32;

/// The socket of a running gateway. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct UsageSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl UsageSocket {
    /// Binds the socket, and replaces one left behind by another gateway: the caller has locked the
    /// data.
    pub(super) fn bind(folder: &Path) -> io::Result<Self> {
        let path = folder.join(SOCKET_NAME);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path })
    }

    /// Answers this user, one question after the other.
    pub(super) async fn serve(&self, engine: &Engine) -> std::convert::Infallible {
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            // It could be asked before it had its permissions.
            let ours = rustix::process::geteuid().as_raw();
            let asks = stream.peer_cred().map(|peer| peer.uid());
            if !asks.is_ok_and(|asks| asks == ours || asks == 0) {
                continue;
            }
            let answer = async {
                let mut question = String::new();
                let (from, mut to) = stream.split();
                BufReader::new(from.take(MAX_QUESTION))
                    .read_line(&mut question)
                    .await?;
                let max = question.trim().parse().map_err(io::Error::other)?;
                let entries = engine.usage(max).await.map_err(io::Error::other)?;
                let mut text = format!("{}\n", entries.len()).into_bytes();
                for entry in &entries {
                    serde_json::to_writer(&mut text, entry)?;
                    text.push(b'\n');
                }
                to.write_all(&text).await
            };
            match timeout(DEADLINE, answer).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "usage was requested and not delivered"),
                Err(_) => tracing::debug!("the caller that asked for usage did not take it"),
            }
        }
    }
}

impl Drop for UsageSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Asks the gateway that uses this data folder for the last entries of its usage log, newest first.
/// Blocks, at most 10 s for each step.
///
/// # Errors
/// No gateway is running, or it does not answer.
pub fn ask_usage(folder: &Path, max: usize) -> io::Result<Vec<UsageEntry>> {
    let mut stream = UnixStream::connect(folder.join(SOCKET_NAME))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    stream.write_all(format!("{max}\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let mut lines = text.lines();
    let count = lines.next().and_then(|count| count.parse().ok());
    let entries: Result<Vec<_>, _> = lines.map(serde_json::from_str).collect();
    match entries {
        Ok(entries) if Some(entries.len()) == count => Ok(entries),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
