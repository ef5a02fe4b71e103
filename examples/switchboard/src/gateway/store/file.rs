//! The file of a gateway alone: opened, checked, and begun with the data of earlier versions.

use std::fs::DirBuilder;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::file::{Lock, LockError};
use rpc_core::store::{Fsync, Store, StoreError as Failed};

use super::import::{OLD_FILE_NAME, OldFile};
use super::{GatewayStore, GatewayStoreConfig, StoreError};
use crate::cli::{self, Failure};

/// The name of the file in the data folder.
pub const FILE_NAME: &str = "gateway.redb";

/// Opens the store in a folder. Creates the folder and the file if they are missing, readable by this user only.
async fn open_file(folder: &Path, fsync: Fsync) -> Result<Arc<dyn Store>, Failed> {
    make_folder(folder)?;
    let file = folder.join(FILE_NAME);
    let opened = crate::fsync::open(&file, fsync, Duration::ZERO).await;
    Ok(Arc::new(opened?))
}

/// Makes a folder that only this user can read, where the system has such, unless it is there.
///
/// # Errors
/// [`Failed`] with the path and the system's error.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failed> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let made = builder.create(folder);
    made.map_err(|error| failed(folder, &error))
}

fn failed(path: &Path, error: &io::Error) -> Failed {
    let message = format!("{}: {error}", path.display());
    Failed::Failed { message }
}

/// Opens the store in a folder for a gateway alone, and takes over what an earlier version has left there. Returns
/// it, and what was taken over in words. Blocks on the file system.
///
/// # Errors
/// [`StoreError`] if another process has it, or it cannot be read.
///
/// # Cancel safety
/// Dropping the future leaves nothing running; the next one goes on.
pub async fn open_folder(
    folder: &Path,
    fsync: Fsync,
    config: GatewayStoreConfig,
    clock: fn() -> u64,
) -> Result<(Arc<GatewayStore>, Option<String>), StoreError> {
    let store = GatewayStore::open(open_file(folder, fsync).await?, config, clock).await?;
    let taken = store.import(&folder.join(OLD_FILE_NAME), clock()).await;
    if taken.is_err() {
        // The file is free again.
        store.close().await;
    }
    Ok((store, taken?))
}

/// Returns a warning if there is an empty file, as after a full disk.
pub fn empty_file(folder: &Path) -> Option<String> {
    let files = [FILE_NAME, OLD_FILE_NAME].map(|name| folder.join(name));
    let file = files.into_iter().find(|it| it.is_file())?;
    let is_empty = file.metadata().is_ok_and(|it| it.len() == 0);
    let file = file.display();
    is_empty.then(|| format!("{file} is empty: nothing is remembered, and budgets start at 0"))
}

/// Checks whether a folder can have a store: opens an existing one, unless it is in use, or otherwise writes and
/// removes another file. Returns whether it is in use. Blocks on the file system.
///
/// # Errors
/// As for [`open_folder`].
///
/// # Cancel safety
/// Cancel-safe.
pub async fn probe(folder: &Path) -> Result<bool, StoreError> {
    let file = folder.join(FILE_NAME);
    if empty_file(folder).is_some() {
    } else if file.exists() {
        return match Lock::take(&file) {
            Err(LockError::InUse { .. }) => Ok(true),
            free => {
                drop(free);
                Ok(open_file(folder, Fsync::Always).await.map(|_| false)?)
            }
        };
    } else if folder.join(OLD_FILE_NAME).exists() {
        OldFile::open(&folder.join(OLD_FILE_NAME))?;
    }
    match cli::writable(&file) {
        Ok(()) => Ok(false),
        Err((path, error)) => Err(failed(&path, &error).into()),
    }
}

/// Returns what [`open_folder`] and [`probe`] have failed with, and what the user can do about it.
pub(crate) fn unopened(folder: &Path, error: &StoreError) -> Failure {
    let option = "[gateway] data_dir";
    match error {
        StoreError::Store(error) => cli::cannot_open(option, &folder.join(FILE_NAME), error),
        error => Failure::new(format_args!("{option}: {error}")),
    }
}
