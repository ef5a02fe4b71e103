//! Changing files: replacing a text, or writing a whole file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Metadata, OpenOptions, Permissions};

use super::line_ends::{Lines, plain};
use super::{Code, MAX_FILE, ToolError, Workspace, or_here, shown, without_here};
use crate::daemon::diff::Diff;

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The file, seen from the folder.
    pub path: String,
    /// Whether it is new.
    pub is_new: bool,
    /// The difference.
    pub diff: Diff,
}

impl Change {
    fn new(path: &Path, old: Option<&str>, new: &str) -> Self {
        Self {
            path: shown(path),
            is_new: old.is_none(),
            diff: Diff::new(old.unwrap_or_default(), new),
        }
    }

    /// Returns whether the file is there and stays as it is.
    pub const fn is_nothing(&self) -> bool {
        !self.is_new && self.diff.added == 0 && self.diff.removed == 0
    }
}

impl Workspace {
    /// Replaces a text that must occur once in the file; with `all`, every occurrence. `\n` and `\r\n`
    /// are equal here: a file keeps its line ends.
    ///
    /// # Errors
    /// [`ToolError`], with nothing changed: there is no such file, the text does not occur or occurs
    /// more than once, or the texts differ only in their line ends. Trying again is safe.
    pub fn edit(&self, name: &str, find: &str, put: &str, all: bool) -> Result<Change, ToolError> {
        let _one_at_a_time = self.edits.lock();
        let (path, old, new) = self.edited(name, find, put, all)?;
        self.put(name, &path, &new)?;
        Ok(Change::new(&path, Some(&old), &new))
    }

    /// Returns the change that [`edit`](Self::edit) would make.
    ///
    /// # Errors
    /// As for [`edit`](Self::edit).
    pub fn preview_edit(
        &self,
        name: &str,
        find: &str,
        put: &str,
        all: bool,
    ) -> Result<Change, ToolError> {
        let (path, old, new) = self.edited(name, find, put, all)?;
        Ok(Change::new(&path, Some(&old), &new))
    }

    /// Returns the path of a file, its text, and the text after an edit.
    fn edited(
        &self,
        name: &str,
        find: &str,
        put: &str,
        all: bool,
    ) -> Result<(PathBuf, String, String), ToolError> {
        if find.is_empty() {
            return Err(ToolError::call("the text to be replaced is empty"));
        }
        let end = if put.contains("\r\n") { "\r\n" } else { "\n" };
        let (plain_find, plain_put) = (plain(find), plain(put));
        if plain_find == plain_put && find != put {
            let message = "an edit keeps a file's line ends: it cannot change them";
            return Err(ToolError::new(Code::Edit, message));
        }
        let (find, put) = (&*plain_find, &*plain_put);
        let path = self.real(name)?;
        let old = self.load(name, &path)?;
        let lines = Lines::new(&old);
        let new = match lines.count(find) {
            0 => {
                let message = format!("{name:?} does not hold the text to be replaced");
                return Err(ToolError::new(Code::Edit, message));
            }
            found if found == 1 || all => {
                // Known before it is made: a long text in many places may be more than any memory.
                let kept = old.len().saturating_sub(found.saturating_mul(find.len()));
                check_size(name, kept.saturating_add(found.saturating_mul(put.len())))?;
                lines.replace(find, put, end)
            }
            found => {
                let message = format!(
                    "{name:?} holds the text {found} times: say more of what stands around it"
                );
                return Err(ToolError::new(Code::Edit, message));
            }
        };
        Ok((path, old, new))
    }

    /// Writes a whole file, and replaces an existing one. Creates its parent folders.
    ///
    /// # Errors
    /// [`ToolError`], with the file unchanged; folders may have been created. Trying again is safe.
    pub fn write(&self, name: &str, text: &str) -> Result<Change, ToolError> {
        let told = |error: io::Error| ToolError::io(name, &error);
        let _one_at_a_time = self.edits.lock();
        let (path, old) = self.existing(name)?;
        let path = match (&old, path.parent(), path.file_name()) {
            (Some(_), ..) => path,
            (None, Some(folder), Some(file)) => {
                let folder = or_here(folder.to_owned());
                self.dir.create_dir_all(&folder).map_err(told)?;
                let folder = self.dir.canonicalize(&folder).map_err(told)?;
                without_here(&folder.join(file))
            }
            _ => {
                return Err(ToolError::call(format!(
                    "{name:?} is not the name of a file"
                )));
            }
        };
        self.put(name, &path, text)?;
        Ok(Change::new(&path, old.as_deref(), text))
    }

    /// Returns the change that [`write`](Self::write) would make.
    ///
    /// # Errors
    /// As for [`write`](Self::write), as far as can be known before.
    pub fn preview_write(&self, name: &str, text: &str) -> Result<Change, ToolError> {
        let (path, old) = self.existing(name)?;
        Ok(Change::new(&path, old.as_deref(), text))
    }

    /// Returns the path of a file and its text, if there is one.
    fn existing(&self, name: &str) -> Result<(PathBuf, Option<String>), ToolError> {
        let inside = self.inside(name)?;
        match self.dir.canonicalize(&inside) {
            Ok(path) => {
                let old = self.load(name, &path)?;
                Ok((path, Some(old)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A link that leads nowhere is none to write through.
                if self.dir.symlink_metadata(&inside).is_ok() {
                    return Err(ToolError::outside(name));
                }
                Ok((inside, None))
            }
            Err(error) => Err(ToolError::io(name, &error)),
        }
    }

    /// Writes through another file in the same folder, so that a crash leaves the old text or the
    /// new one.
    fn put(&self, name: &str, path: &Path, text: &str) -> Result<(), ToolError> {
        check_size(name, text.len())?;
        let before = self.dir.metadata(path).ok();
        let draft = draft(path);
        let written = self
            .draft(&draft, text, before.as_ref())
            .and_then(|()| self.dir.rename(&draft, &self.dir, path));
        if written.is_err() {
            let _ = self.dir.remove_file(&draft);
        }
        written.map_err(|error| ToolError::io(name, &error))
    }

    fn draft(&self, path: &Path, text: &str, before: Option<&Metadata>) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = self.dir.open_with(path, &options)?;
        if let Some(before) = before {
            // A file stays its owner's, if this program runs as root.
            #[cfg(unix)]
            let _ = std::os::unix::fs::fchown(
                &file,
                Some(cap_std::fs::MetadataExt::uid(before)),
                Some(cap_std::fs::MetadataExt::gid(before)),
            );
            // A script stays one.
            file.set_permissions(without_set_id(&before.permissions()))?;
        }
        file.write_all(text.as_bytes())
    }
}

/// Setuid and setgid stay away: the text is not that of the user who has set them.
#[cfg(unix)]
fn without_set_id(permissions: &Permissions) -> Permissions {
    use cap_std::fs::PermissionsExt as _;
    Permissions::from_mode(permissions.mode() & 0o1777)
}

#[cfg(not(unix))]
fn without_set_id(permissions: &Permissions) -> Permissions {
    permissions.clone()
}

fn check_size(name: &str, bytes: usize) -> Result<(), ToolError> {
    if bytes as u64 > MAX_FILE {
        let message = format!("{name:?} would be larger than {MAX_FILE} bytes");
        return Err(ToolError::new(Code::TooLarge, message));
    }
    Ok(())
}

/// Returns an unused name in the same folder.
fn draft(path: &Path) -> PathBuf {
    let number = rpc_core::net::entropy();
    path.with_file_name(format!(".daemon-draft-{number:016x}"))
}
