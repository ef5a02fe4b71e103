//! [`Workspace`]: the files of one folder, and no others.

mod edit;
mod glob;
mod line_ends;
mod read;
mod search;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rpc_core::sync::Mutex;

use super::{Code, ToolError};
use crate::text::printable;

pub use edit::Change;
pub use read::{Excerpt, Range};
pub use search::{Found, Match, Query};

/// The largest file to read or write, in bytes.
pub const MAX_FILE: u64 = 2 * 1024 * 1024;

/// A folder that no name can leave: neither `..` nor an absolute path nor a link.
///
/// The system resolves every name beneath a handle of the folder (`openat2` on Linux, step by step
/// elsewhere), so no link can be created between a check and its use. Files are replaced through
/// another file, so that a crash leaves the old text or the new one. All methods block.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: Arc<Path>,
    dir: Arc<Dir>,
    /// Prevents concurrent edits, which could lose one of them. Shared with the folders within.
    edits: Arc<Mutex<()>>,
}

impl Workspace {
    /// Opens an existing folder.
    ///
    /// # Errors
    /// The system's error. Trying again is safe.
    pub fn open(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
        Ok(Self {
            root: root.into(),
            dir: Arc::new(dir),
            edits: Arc::default(),
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Opens a folder within, by its absolute path or relative to this one.
    ///
    /// # Errors
    /// [`ToolError`] if it does not exist, or is outside.
    pub fn within(&self, path: &str) -> Result<Self, ToolError> {
        let told = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                ToolError::new(Code::NotFound, format!("there is no folder {path:?}"))
            }
            _ => ToolError::io(path, &error),
        };
        let inside = match self.inside(path) {
            Ok(inside) => inside,
            // A whole path may lead here by a link that was followed when this one was opened. The error
            // does not reveal whether anything else is there.
            Err(why) => {
                let whole = Path::new(path);
                let real = whole.is_absolute().then(|| whole.canonicalize().ok());
                let inside = real.flatten().and_then(|real| {
                    let inside = real.strip_prefix(&self.root).ok()?;
                    Some(or_here(inside.to_owned()))
                });
                inside.ok_or(why)?
            }
        };
        let inside = self.dir.canonicalize(&inside).map_err(told)?;
        let dir = self.dir.open_dir(or_here(inside.clone())).map_err(told)?;
        Ok(Self {
            root: self.root.join(inside).into(),
            dir: Arc::new(dir),
            edits: Arc::clone(&self.edits),
        })
    }

    /// Returns the path of a name, relative to the folder. An absolute path into it is a name too.
    fn inside(&self, name: &str) -> Result<PathBuf, ToolError> {
        let path = Path::new(name.trim());
        // A line break could forge what a person is asked about the file.
        if path.as_os_str().is_empty() || name.trim().contains(char::is_control) {
            return Err(ToolError::call(format!(
                "{name:?} is not the name of a file"
            )));
        }
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        // The handle refuses these too; here they are distinguished from what the system refuses.
        let mut depth = 0_usize;
        for part in path.components() {
            depth = match part {
                Component::Normal(_) => depth + 1,
                Component::CurDir => depth,
                Component::ParentDir => {
                    let above = depth.checked_sub(1);
                    above.ok_or_else(|| ToolError::outside(name))?
                }
                Component::RootDir | Component::Prefix(_) => return Err(ToolError::outside(name)),
            };
        }
        Ok(or_here(without_here(path)))
    }

    /// Returns the real path of a file, after following links.
    fn real(&self, name: &str) -> Result<PathBuf, ToolError> {
        let path = self.inside(name)?;
        let real = self.dir.canonicalize(path);
        real.map_err(|error| ToolError::io(name, &error))
    }
}

/// A flag that stops blocking work. All clones share it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Sets the flag.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn check(&self) -> Result<(), ToolError> {
        match self.is_stopped() {
            true => Err(ToolError::new(Code::Aborted, "aborted")),
            false => Ok(()),
        }
    }
}

/// Returns the path; an empty one means the folder itself.
fn or_here(path: PathBuf) -> PathBuf {
    if path.as_os_str().is_empty() {
        return PathBuf::from(".");
    }
    path
}

/// Removes redundant parts of a path, to show it.
fn without_here(path: &Path) -> PathBuf {
    let parts = path.components();
    parts.filter(|part| *part != Component::CurDir).collect()
}

/// Formats a path in one line, with `/` on every system.
fn shown(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = match cfg!(windows) {
        true => path.replace('\\', "/").into(),
        false => path,
    };
    printable(&path).into_owned()
}

/// Returns the contents as text. Fails for binary files: they contain zeros, or are not UTF-8.
fn text(name: &str, bytes: Vec<u8>) -> Result<String, ToolError> {
    let is_binary = bytes.contains(&0);
    let text = String::from_utf8(bytes).ok().filter(|_| !is_binary);
    text.ok_or_else(|| ToolError::new(Code::Other, format!("{name:?} is not text")))
}
