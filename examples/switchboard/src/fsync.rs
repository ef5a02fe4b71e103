//! [`FsyncArgs`]: when a server's file is on the disk, as an option and in configuration files; [`open`] opens it.

use std::path::Path;
use std::time::Duration;

use rpc_core::store::{FileConfig, FileStore, Fsync, StoreError};
use tokio::time::{Instant, sleep};

use crate::cli;

/// How long a file may be in use by what is about to end, and how often to look.
const ENDING: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(50);

/// When what a server stores in its file is on the disk.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct FsyncArgs {
    /// When what is stored is on the disk: always (before it is acknowledged), after a time such as 1s, or never
    /// (when the system likes). A loss of power takes what is not; the end of the process takes nothing.
    /// Default: always.
    #[arg(long, value_name = "WHEN", value_parser = fsync, help_heading = "Storage")]
    pub(crate) fsync: Option<Fsync>,
}

/// Opens a store in a file, as soon as what has it, and is about to end, has ended: a program, or a read of this one
/// that nobody waits for any more. Waits for a moment, or for as long as this. Blocks on the file system.
///
/// # Errors
/// As for [`FileStore::open`].
///
/// # Cancel safety
/// Cancel-safe.
pub(crate) async fn open(
    path: &Path,
    fsync: Fsync,
    wait: Duration,
) -> Result<FileStore, StoreError> {
    let config = FileConfig {
        fsync,
        ..FileConfig::default()
    };
    let until = Instant::now() + wait.max(ENDING);
    loop {
        match FileStore::open(path, config) {
            Err(StoreError::Config { .. }) if Instant::now() < until => sleep(LOOK).await,
            opened => return opened,
        }
    }
}

/// Parses `always`, `never`, or a time like `1s` or `250ms`.
///
/// # Errors
/// A description of the mistake.
pub(crate) fn fsync(text: &str) -> Result<Fsync, String> {
    match text {
        "always" => Ok(Fsync::Always),
        "never" => Ok(Fsync::Never),
        time => match cli::timeout(time) {
            Ok(time) => Ok(Fsync::Every(time)),
            Err(_) => Err("write always, never, or a time like 1s or 250ms".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parses_words_and_times_above_0() {
        assert_eq!(fsync("always"), Ok(Fsync::Always));
        assert_eq!(fsync("never"), Ok(Fsync::Never));
        assert_eq!(fsync("250ms"), Ok(Fsync::Every(Duration::from_millis(250))));
        for text in ["", "0", "-1s", "sometimes", "Always"] {
            assert!(fsync(text).is_err(), "{text}");
        }
    }
}
