//! [`Workspace`]: the files of one folder, and no others.

mod edit;
mod glob;
mod known;
mod line_ends;
mod read;
mod search;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use icu_normalizer::ComposingNormalizerBorrowed;
use rpc_core::sync::Mutex;
use sha2::{Digest as _, Sha256};

use super::{Code, ToolError, git};
use crate::text::printable;

pub use edit::Change;
pub use known::Known;
pub use read::{Excerpt, Range};
pub use search::{Found, Match, Query};

/// The largest file to write, and most that is read of one, in bytes.
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
    known: Arc<Known>,
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
            known: Arc::default(),
        })
    }

    /// Returns the folder that is now at its path, where commands run: it may have been made anew.
    ///
    /// # Errors
    /// The system's error: there is none any more, or a link in its place.
    pub fn now(&self) -> io::Result<Self> {
        match self.root.canonicalize()? == *self.root {
            true => Ok(Self {
                dir: Arc::new(Dir::open_ambient_dir(&self.root, ambient_authority())?),
                ..self.clone()
            }),
            false => Err(io::Error::other("it is a link by now")),
        }
    }

    /// Sets what the conversation knows of files. Default: what this value and its clones have read.
    #[must_use]
    pub fn with_known(mut self, known: Arc<Known>) -> Self {
        self.known = known;
        self
    }

    /// Notes that a command begins; pass the result to [`Known::after_command`].
    pub(super) fn before_command(&self) -> SystemTime {
        self.known.before_command(|file| {
            let file = file.strip_prefix(&self.root).ok()?;
            let mut digest = Sha256::new();
            let read = self.each_line("", file, &Stop::default(), |line| {
                digest.update(line);
                Ok(true)
            });
            read.ok().map(|()| digest.finalize().into())
        })
    }

    /// Notes that a command has run since then.
    pub(super) fn after_command(&self, since: SystemTime) {
        self.known.after_command(since);
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
        let failed = |error: io::Error| match error.kind() {
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
        let inside = self.dir.canonicalize(&inside).map_err(failed)?;
        let dir = self.dir.open_dir(or_here(inside.clone())).map_err(failed)?;
        Ok(Self {
            root: without_here(&self.root.join(inside)).into(),
            dir: Arc::new(dir),
            edits: Arc::clone(&self.edits),
            known: Arc::clone(&self.known),
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
        let path = self.spelled(&without_here(path));
        // As a shell would read it: else a folder of that name would be made.
        let is_variable = |name: &str| {
            name.trim_end_matches('}')
                .chars()
                .all(|c| c.is_ascii_uppercase() || c == '_')
        };
        if let Some(Component::Normal(first)) = path.components().next()
            && let Some(text) = first.to_str()
            && (text.starts_with('~')
                || text
                    .strip_prefix('$')
                    .is_some_and(|it| is_variable(it.trim_start_matches('{'))))
            && self.dir.symlink_metadata(first).is_err()
        {
            let message = format!(
                "{name:?}: {text} stands for nothing here; write a path as seen from the workspace"
            );
            return Err(ToolError::call(message));
        }
        Ok(or_here(path))
    }

    /// Returns a path as its names are written in the folders: composed characters and their parts are alike, if
    /// only one name fits.
    fn spelled(&self, path: &Path) -> PathBuf {
        let mut spelled = PathBuf::new();
        for part in path.components() {
            let exact = spelled.join(part);
            if part.as_os_str().is_ascii() || self.dir.symlink_metadata(&exact).is_ok() {
                spelled = exact;
                continue;
            }
            let entries = self.dir.read_dir(or_here(spelled.clone()));
            let entries = entries.into_iter().flatten().flatten();
            let names = entries.map(|entry| entry.file_name());
            let wanted = part.as_os_str().to_string_lossy();
            let mut like =
                names.filter(|name| composed(&name.to_string_lossy()) == composed(&wanted));
            spelled = match (like.next(), like.next()) {
                (Some(name), None) => spelled.join(name),
                _ => exact,
            };
        }
        spelled
    }

    /// Returns the real path of a file, after following links.
    fn real(&self, name: &str) -> Result<PathBuf, ToolError> {
        let path = self.inside(name)?;
        let real = self.dir.canonicalize(path);
        real.map_err(|error| ToolError::io(name, &error))
    }

    /// Returns the real path of a file to write, which may be new, and so may its folders.
    fn target(&self, name: &str) -> Result<PathBuf, ToolError> {
        let path = self.inside(name)?;
        for folder in path.ancestors() {
            match self.dir.canonicalize(or_here(folder.to_owned())) {
                Ok(real) => {
                    let new = path.strip_prefix(folder).unwrap_or(&path);
                    if new.components().any(|part| part == Component::ParentDir) {
                        break;
                    }
                    let real = without_here(&real.join(new));
                    return self.not_gits(name, &real).map(|()| real);
                }
                // A link that leads nowhere is none to write through.
                Err(_) if self.dir.symlink_metadata(folder).is_ok() => break,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ToolError::io(name, &error)),
            }
        }
        Err(ToolError::outside(name))
    }

    /// Refuses what Git runs by itself: its folders, and what would make one.
    fn not_gits(&self, name: &str, path: &Path) -> Result<(), ToolError> {
        let whole = self.root.join(path);
        let mut is_gits = whole.iter().any(git::is_name);
        let mut folder = PathBuf::new();
        for part in path.components() {
            let has = |name: &str| {
                part.as_os_str() == name || self.dir.symlink_metadata(folder.join(name)).is_ok()
            };
            is_gits |= git::is_folder(has);
            folder.push(part);
        }
        match is_gits {
            true => Err(ToolError::new(
                Code::Git,
                format!(
                    "{name:?} is in a repository's own folder, which holds what Git runs: use git in a command for that"
                ),
            )),
            false => Ok(()),
        }
    }
}

/// Returns a name with all characters composed.
fn composed(name: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(name)
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

    /// Fails if the flag is set.
    pub(super) fn check(&self) -> Result<(), ToolError> {
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
