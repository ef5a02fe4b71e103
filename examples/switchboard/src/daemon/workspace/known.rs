//! [`Known`]: what a conversation knows of files, so that it overwrites nothing that it has not seen.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rpc_core::sync::Mutex;
use sha2::{Digest as _, Sha256};

use super::{Change, Code, ToolError};

/// How much older than the clock a file's time may be.
const COARSE: Duration = Duration::from_millis(20);

/// The digest of a file's bytes.
pub(super) type Digest = [u8; 32];

pub(super) fn digest(bytes: impl AsRef<[u8]>) -> Digest {
    Sha256::digest(bytes).into()
}

/// What a conversation knows of files: those that it has read or written, and when its commands ran.
#[derive(Debug, Default)]
pub struct Known(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Files as they were; `None` if somebody else has changed one since.
    files: HashMap<PathBuf, Option<Digest>>,
    commands: Vec<(SystemTime, SystemTime)>,
}

impl Known {
    pub(super) fn read(&self, file: PathBuf, digest: Digest) {
        self.0.lock().files.insert(file, Some(digest));
    }

    /// Takes in a change; a whole file is known afterwards.
    pub(super) fn changed(&self, change: &Change, is_whole: bool) {
        let mut state = self.0.lock();
        let was = state.files.get(&change.file).copied().flatten();
        if is_whole || was.is_some() && was == change.old.as_ref().map(digest) {
            let new = Some(digest(&change.new));
            state.files.insert(change.file.clone(), new);
        }
    }

    /// Checks that the text of a file is known, and returns whether a command has made it.
    pub(super) fn check(
        &self,
        name: &str,
        file: &Path,
        text: &str,
        modified: Option<SystemTime>,
    ) -> Result<bool, ToolError> {
        let state = self.0.lock();
        let seen = state.files.get(file);
        if seen == Some(&Some(digest(text))) {
            return Ok(false);
        }
        let mut commands = state.commands.iter();
        let is_ours =
            modified.is_some_and(|at| commands.any(|(from, to)| (*from..=*to).contains(&at)));
        match seen {
            Some(Some(_)) | None if is_ours => Ok(true),
            None => Err(ToolError::new(
                Code::Stale,
                format!("{name:?} is there, and this chat has not read it: read it first"),
            )),
            Some(_) => Err(stale(name)),
        }
    }

    /// Notes that a command begins: what others have changed before is not its work. `now` returns the digest of
    /// a file.
    pub(super) fn before_command(&self, now: impl Fn(&Path) -> Option<Digest>) -> SystemTime {
        for (file, seen) in &mut self.0.lock().files {
            *seen = seen.filter(|seen| now(file) == Some(*seen));
        }
        SystemTime::now() - COARSE
    }

    /// Notes that a command has run since then.
    pub(super) fn after_command(&self, since: SystemTime) {
        self.0.lock().commands.push((since, SystemTime::now()));
    }
}

pub(super) fn stale(name: &str) -> ToolError {
    let message = format!("{name:?} has changed since this chat read it: read it again");
    ToolError::new(Code::Stale, message)
}
