//! Changing files: replacing a text, or writing a whole file.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Metadata, OpenOptions, Permissions};
use serde::{Deserialize, Serialize};

use super::known::stale;
use super::line_ends::{Lines, plain};
use super::{Code, MAX_FILE, ToolError, Workspace, or_here, shown};
use crate::daemon::diff::Diff;

/// The mark at the beginning of a text that says how it is encoded.
const BOM: char = '\u{feff}';
/// Most lines of a hint, and of a text that one is looked for.
const MAX_HINT: usize = 12;

/// A change of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The file, seen from the folder.
    pub path: String,
    /// Its real path.
    pub file: PathBuf,
    /// Its text before; `None` if it is new.
    pub old: Option<String>,
    /// Its text afterwards.
    pub new: String,
    /// Whether it overwrites what a command of the conversation has made.
    #[serde(skip)]
    pub is_over_command: bool,
    /// The difference.
    #[serde(skip)]
    pub diff: Diff,
}

impl Change {
    /// Returns whether the file is there and stays as it is.
    pub fn is_nothing(&self) -> bool {
        self.old.as_ref() == Some(&self.new)
    }

    /// Returns whether the file is new.
    pub const fn is_new(&self) -> bool {
        self.old.is_none()
    }
}

impl Workspace {
    /// Replaces a text that must occur once in the file; with `all`, every occurrence. `\n` and `\r\n`
    /// are equal here: a file keeps its line ends.
    ///
    /// # Errors
    /// [`ToolError`], with nothing changed: there is no such file, the text does not occur or occurs
    /// more than once, the texts differ only in their line ends, or the file has just changed. Trying again is
    /// safe.
    pub fn edit(&self, name: &str, find: &str, put: &str, all: bool) -> Result<Change, ToolError> {
        let _one_at_a_time = self.edits.lock();
        let change = self.preview_edit(name, find, put, all)?;
        self.put(name, &change)?;
        self.known.changed(&change, false);
        Ok(change)
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
        if find.is_empty() {
            return Err(ToolError::call("the text to be replaced is empty"));
        }
        let (plain_find, plain_put) = (plain(find), plain(put));
        if plain_find == plain_put && find != put {
            let message = "an edit keeps a file's line ends: it cannot change them";
            return Err(ToolError::new(Code::Edit, message));
        }
        let find = &*plain_find;
        let path = self.target(name)?;
        let old = self.load(name, &path)?;
        let lines = Lines::new(&old);
        let new = match lines.count(find) {
            0 => {
                let hint = nearest(&old, find).unwrap_or_default();
                let message = format!("{name:?} does not hold the text to be replaced{hint}");
                return Err(ToolError::new(Code::Edit, message));
            }
            found if found == 1 || all => {
                // Known before it is made: a long text in many places may be more than any memory.
                let kept = old.len().saturating_sub(found.saturating_mul(find.len()));
                check_size(
                    name,
                    kept.saturating_add(found.saturating_mul(plain_put.len())),
                )?;
                lines.replace(find, put)
            }
            found => {
                let message = format!(
                    "{name:?} holds the text {found} times: say more of what stands around it"
                );
                return Err(ToolError::new(Code::Edit, message));
            }
        };
        self.writable(name, &path)?;
        Ok(self.change(&path, Some(old), new))
    }

    fn change(&self, path: &Path, old: Option<String>, new: String) -> Change {
        Change {
            path: shown(path),
            file: self.root.join(path),
            diff: Diff::new(old.as_deref().unwrap_or_default(), &new),
            is_over_command: false,
            old,
            new,
        }
    }

    /// Writes a whole file, and replaces one that is known. Creates its parent folders.
    ///
    /// # Errors
    /// [`ToolError`], with the file unchanged; folders may have been created. Trying again is safe.
    pub fn write(&self, name: &str, text: &str) -> Result<Change, ToolError> {
        let _one_at_a_time = self.edits.lock();
        let change = self.preview_write(name, text)?;
        if let Some(folder) = self.seen_from_here(&change.file).parent() {
            let made = self.dir.create_dir_all(or_here(folder.to_owned()));
            made.map_err(|error| ToolError::io(name, &error))?;
        }
        self.put(name, &change)?;
        self.known.changed(&change, true);
        Ok(change)
    }

    /// Returns the change that [`write`](Self::write) would make.
    ///
    /// # Errors
    /// As for [`write`](Self::write), as far as can be known before.
    pub fn preview_write(&self, name: &str, text: &str) -> Result<Change, ToolError> {
        let path = self.target(name)?;
        check_size(name, text.len())?;
        let Some(old) = self.there(name, &path)? else {
            return Ok(self.change(&path, None, text.to_owned()));
        };
        let before = self.writable(name, &path)?;
        let new = like(&old, text);
        let file = self.root.join(&path);
        let is_over_command = match old.is_empty() || old == new {
            true => false,
            false => {
                let modified = before
                    .modified()
                    .ok()
                    .map(cap_std::time::SystemTime::into_std);
                self.known.check(name, &file, &old, modified)?
            }
        };
        Ok(Change {
            is_over_command,
            ..self.change(&path, Some(old), new)
        })
    }

    /// Takes a change back that nobody has touched since, and returns what that changes.
    ///
    /// # Errors
    /// [`ToolError`], with nothing changed: the file is not what the change has made of it.
    pub fn undo(&self, change: &Change) -> Result<Change, ToolError> {
        let _one_at_a_time = self.edits.lock();
        let path = self.seen_from_here(&change.file);
        self.not_gits(&change.path, path)?;
        let new = change.old.clone().unwrap_or_default();
        let undone = self.change(path, Some(change.new.clone()), new);
        match change.old {
            Some(_) => self.put(&change.path, &undone)?,
            None if self.there(&change.path, path)?.as_ref() == Some(&change.new) => {
                let removed = self.dir.remove_file(path);
                removed.map_err(|error| ToolError::io(&change.path, &error))?;
            }
            None => return Err(stale(&change.path)),
        }
        self.known.changed(&undone, false);
        Ok(undone)
    }

    fn seen_from_here<'a>(&self, file: &'a Path) -> &'a Path {
        file.strip_prefix(&self.root).unwrap_or(file)
    }

    /// Returns the text of a file, if there is one.
    fn there(&self, name: &str, path: &Path) -> Result<Option<String>, ToolError> {
        match self.dir.symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => self.load(name, path).map(Some),
        }
    }

    /// Checks that a file may be replaced: it is not read-only, and has no other name.
    fn writable(&self, name: &str, path: &Path) -> Result<Metadata, ToolError> {
        let failed = |error: io::Error| ToolError::io(name, &error);
        let metadata = self.dir.metadata(path).map_err(failed)?;
        let why = match () {
            () if metadata.permissions().readonly() => "is read-only",
            #[cfg(unix)]
            () if cap_std::fs::MetadataExt::nlink(&metadata) > 1 => {
                "has several names (hard links), which an edit would part"
            }
            () => {
                let opened = self.dir.open_with(path, OpenOptions::new().write(true));
                return opened.map(|_| metadata).map_err(failed);
            }
        };
        Err(ToolError::new(
            Code::NotFile,
            format!("{name:?} {why}: it is not written"),
        ))
    }

    /// Writes through another file in the same folder, so that a crash leaves the old text or the
    /// new one. Looks just before whether the old one is still there.
    fn put(&self, name: &str, change: &Change) -> Result<(), ToolError> {
        check_size(name, change.new.len())?;
        let path = self.seen_from_here(&change.file);
        let before = self.dir.metadata(path).ok();
        let draft = draft(path);
        let failed = |error: io::Error| ToolError::io(name, &error);
        let drafted = self.draft(&draft, &change.new, before.as_ref());
        let written = match self.there(name, path) {
            Ok(there) if there == change.old => {
                let replaced = drafted.and_then(|()| self.dir.rename(&draft, &self.dir, path));
                let replaced = replaced.or_else(|error| match error.kind() {
                    // One that is mounted by itself, or in a folder of others, is written where it is.
                    io::ErrorKind::ResourceBusy | io::ErrorKind::PermissionDenied
                        if before.is_some() =>
                    {
                        self.dir.write(path, &change.new)
                    }
                    _ => Err(error),
                });
                replaced.map_err(failed)
            }
            Ok(_) => Err(stale(name)),
            Err(error) => Err(error),
        };
        // As a rule it is the file by now.
        let _ = self.dir.remove_file(&draft);
        written
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

/// Returns a new text with the line ends and the mark at the beginning of the old one.
fn like(old: &str, new: &str) -> String {
    let marked = match old.starts_with(BOM) && !new.starts_with(BOM) {
        true => format!("{BOM}{new}"),
        false => new.to_owned(),
    };
    match old.is_empty() {
        true => marked,
        false => Lines::new(old).replace(&plain(old), &marked),
    }
}

/// Returns the lines of a text that are most like another text, in words for a model.
fn nearest(text: &str, find: &str) -> Option<String> {
    let lines: Vec<_> = text.lines().collect();
    let trimmed: Vec<_> = lines.iter().map(|line| line.trim()).collect();
    let find: Vec<_> = find.lines().take(MAX_HINT).map(str::trim).collect();
    // By its longest line, which says most.
    let (at, longest) = find.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    let like = similar::get_close_matches(*longest, &trimmed, 1, 0.5);
    let found = trimmed.iter().position(|line| Some(line) == like.first())?;
    let first = found.saturating_sub(at);
    let near: Vec<_> = lines.iter().skip(first).take(find.len()).copied().collect();
    let last = first + near.len();
    Some(format!(
        "; the nearest lines are {} to {last}:\n{}",
        first + 1,
        near.join("\n")
    ))
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
