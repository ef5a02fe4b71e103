//! [`Disk`]: the file under the database, and when it is synced.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::{Fault, Fsync};

/// What is left free on a disk.
const SPARE: u64 = 1024 * 1024;

/// A file. A clone is the same one.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    file: Arc<Synced>,
    fsync: Fsync,
}

/// A file that is synced when it is closed.
#[derive(Debug)]
struct Synced {
    file: Box<dyn StorageBackend>,
    /// Whether something is written that is not synced.
    is_dirty: AtomicBool,
}

impl Synced {
    fn sync(&self) {
        if self.is_dirty.swap(false, Ordering::AcqRel)
            && let Err(error) = self.file.sync_data(false)
        {
            tracing::warn!(%error, "a store is not written to its disk");
        }
    }
}

impl Drop for Synced {
    fn drop(&mut self) {
        self.sync();
    }
}

impl Disk {
    pub(super) fn open(path: &Path, fsync: Fsync) -> Result<Self, Fault> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        if file.metadata()?.len() == 0 {
            // Not every system can.
            let _ = crate::file::sync_folder(path);
        }
        Ok(Self::new(FileBackend::new(file)?, fsync)?)
    }

    pub(super) fn new(file: impl StorageBackend, fsync: Fsync) -> io::Result<Self> {
        let file = Arc::new(Synced {
            file: Box::new(file),
            is_dirty: AtomicBool::new(false),
        });
        if let Fsync::Every(time) = fsync {
            let file = Arc::downgrade(&file);
            let sync = move || {
                while let Some(file) = file.upgrade() {
                    file.sync();
                    drop(file);
                    thread::sleep(time);
                }
            };
            let thread = thread::Builder::new().name("store-sync".to_owned());
            thread.spawn(sync)?;
        }
        Ok(Self { file, fsync })
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.file.file.len()
    }

    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        // The database believes what a damaged file says, and so much memory may not be there.
        if offset.saturating_add(len as u64) > self.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.file.file.read(offset, len)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.file.set_len(len)
    }

    fn sync_data(&self, is_eventual: bool) -> io::Result<()> {
        match self.fsync {
            Fsync::Always => self.file.file.sync_data(is_eventual),
            Fsync::Every(_) | Fsync::Never => Ok(()),
        }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let is_dirty = matches!(self.fsync, Fsync::Every(_));
        self.file.is_dirty.store(is_dirty, Ordering::Release);
        self.file.file.write(offset, bytes)
    }
}

/// Whether this many bytes can be written, as far as the system says: the database has to repair the file after a
/// write that fails.
pub(super) fn has_room(path: &Path, bytes: usize) -> bool {
    #[cfg(unix)]
    if let Ok(disk) = rustix::fs::statvfs(path) {
        return disk.f_bavail.saturating_mul(disk.f_frsize) > SPARE + bytes as u64;
    }
    let _ = (path, bytes, SPARE);
    true
}
