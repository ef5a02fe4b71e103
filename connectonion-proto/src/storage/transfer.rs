//! Between a store and the file of ConnectOnion's own hosts: [`import`] and [`export`].

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use rpc_core::store::{Bucket, BucketConfig, Session, SessionEntry, SessionLog, Store, StoreError};
use rpc_core::text::hex;
use sha2::{Digest as _, Sha256};
use tokio::task::spawn_blocking;

use super::entry::line_of;
use super::file::ResultsFile;
use super::record::Record;
use crate::auth::unix_seconds;
use crate::net::sessions::{State, found, head_of, log_config};

/// The bucket that remembers what was imported.
const IMPORTS: &str = "onion_imports";
/// How many sessions are written at once.
const AT_ONCE: usize = 16;

/// The outcome of [`import`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// How many sessions were taken.
    pub sessions: u64,
    /// How many lines of the file are not records.
    pub skipped_lines: u64,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} sessions are taken", self.sessions)?;
        match self.skipped_lines {
            0 => Ok(()),
            lines => write!(f, ", {lines} lines cannot be read"),
        }
    }
}

/// Takes the sessions of a file such as `.co/session_results.jsonl` into a store, which remembers how long
/// the file was and its hash: the next call takes what a host has added. The file is only read. A session
/// that the store has a newer record of stays. `None` if there is nothing new, or no file.
///
/// Call it before a host serves from the store.
///
/// # Errors
/// The system's and the store's; some sessions may be taken, and retrying is safe.
///
/// # Cancel safety
/// As after an error.
pub async fn import(store: &Arc<dyn Store>, path: &Path) -> io::Result<Option<Imported>> {
    let imports = Bucket::open(store, IMPORTS, BucketConfig::default()).await;
    let imports = imports.map_err(io::Error::other)?;
    let path = std::path::absolute(path)?;
    let key = hex(&Sha256::digest(path.as_os_str().as_encoded_bytes()));
    let known = imports.get(&key).await.map_err(io::Error::other)?;
    let known = known.map(|known| String::from_utf8_lossy(&known.value).into_owned());
    let reading = spawn_blocking(move || look(&path, &known.unwrap_or_default()));
    let Some((file, after, mark)) = reading.await?? else {
        return Ok(None);
    };
    let log = SessionLog::open(&**store, log_config()).await;
    let (log, now) = (
        log.map_err(io::Error::other)?,
        unix_seconds(SystemTime::now()),
    );
    let (log, file) = (&log, &Arc::new(file));
    let ids: Vec<_> = file.sessions(after).map(ToOwned::to_owned).collect();
    let taking = ids.into_iter().map(|id| async move {
        let file = Arc::clone(file);
        let record = spawn_blocking(move || file.record(&id)).await??;
        let record = record.filter(|record| !record.is_expired(now));
        let Some(record) = record else {
            return Ok(0);
        };
        let taken = take(log, record).await;
        taken.map(u64::from).map_err(io::Error::other)
    });
    let taking = stream::iter(taking).buffer_unordered(AT_ONCE);
    let sessions = taking.try_fold(0, |sum, one| async move { io::Result::Ok(sum + one) });
    let imported = Imported {
        sessions: sessions.await?,
        skipped_lines: file.skipped_lines(),
    };
    let kept = imports.put(&key, mark.into()).await;
    kept.map_err(io::Error::other)?;
    Ok(Some(imported))
}

/// Writes the sessions of a store as a file that ConnectOnion's own hosts read, and returns how many there
/// are. A host that serves from the store may write meanwhile.
///
/// # Errors
/// Those of the writer and of the store; retrying writes all again.
///
/// # Cancel safety
/// If the future is dropped, some sessions are written.
pub async fn export(store: &dyn Store, mut out: impl Write) -> io::Result<u64> {
    let log = SessionLog::open(store, log_config()).await;
    let log = log.map_err(io::Error::other)?;
    let mut count = 0;
    for head in log.heads().await.map_err(io::Error::other)? {
        let Some(id) = head.id else { continue };
        let mut session = Session::default();
        let read = log.read(&id, &mut session).await;
        read.map_err(io::Error::other)?;
        if let Some(record) = found(&session) {
            writeln!(out, "{}", record.to_line())?;
            count += 1;
        }
    }
    out.flush()?;
    Ok(count)
}

/// Takes one record, unless there is a newer one.
async fn take(log: &SessionLog, mut record: Record) -> Result<bool, StoreError> {
    let (id, mut session) = (record.session_id.clone(), Session::default());
    log.read(&id, &mut session).await?;
    let before = found(&session);
    let is_newer = |it: &Record| it.created > record.created;
    if before.as_ref().is_some_and(is_newer) {
        return Ok(false);
    }
    record.inherit(before.as_ref());
    let (line, is_whole) = line_of(&record, None, true);
    let entry = SessionEntry {
        head: head_of(&record),
        body: line.into(),
        is_whole,
    };
    let next = State::of(Some(record));
    log.append(&id, &mut session, entry, next, || true).await?;
    Ok(true)
}

/// Returns how long the beginning of a file is, of at most `max` bytes, and its hash.
fn mark(path: &Path, max: u64) -> io::Result<String> {
    let mut file = BufReader::new(File::open(path)?.take(max));
    let (mut hash, mut len) = (Sha256::new(), 0);
    loop {
        let bytes = file.fill_buf()?;
        let count = bytes.len();
        if count == 0 {
            return Ok(format!("{len} {}", hex(&hash.finalize())));
        }
        hash.update(bytes);
        file.consume(count);
        len += count;
    }
}

/// Finds what of a file is new, from where on, and its mark. `None` if nothing is.
fn look(path: &Path, known: &str) -> io::Result<Option<(ResultsFile, u64, String)>> {
    let now = match mark(path, u64::MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        now => now?,
    };
    if now == known {
        return Ok(None);
    }
    let before = known.split(' ').next().and_then(|len| len.parse().ok());
    let before = before.unwrap_or_default();
    let is_longer = mark(path, before)? == known;
    let after = if is_longer { before } else { 0 };
    Ok(Some((ResultsFile::open(path)?, after, now)))
}
