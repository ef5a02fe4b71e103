//! [`Guard`]: Git's settings and hooks in the workspace, which commands can read only.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat2, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{move_mount, open_tree};

use super::isolate::{BY_HANDLE, COPY};
use crate::daemon::git;

/// What Git runs by itself, and what leads it to other settings.
const KEPT: [&str; 4] = ["config", "config.worktree", "commondir", "hooks"];
/// Those that most repositories do not have: a command that makes one has made it in vain.
const MADE: [&str; 2] = ["config.worktree", "commondir"];

/// What is mounted over the workspace.
#[derive(Debug)]
pub(super) struct Guard {
    folder: OwnedFd,
    /// Paths in it: whole repositories, and mounts of their parts.
    parts: Vec<(PathBuf, Option<OwnedFd>)>,
}

/// Repositories, and the names in them that no command may make.
#[derive(Debug, Default)]
pub(super) struct Guarded(Vec<(OwnedFd, Vec<&'static str>)>);

impl Guard {
    /// Looks for repositories in a folder, which is still writable, and sees to it that they have folders for
    /// hooks.
    pub(super) fn new(folder: OwnedFd, path: &Path) -> Self {
        let mut parts = Vec::new();
        for found in git::folders(path) {
            let found = found.strip_prefix(path).unwrap_or(&found).to_owned();
            if let Ok(repository) = open_in(&folder, &found)
                && is_folder(&repository)
                && statat(&repository, "objects", AtFlags::SYMLINK_NOFOLLOW).is_ok()
            {
                // It may be there, and what cannot be made cannot be made by a command either.
                let _ = mkdirat(&repository, "hooks", Mode::from_raw_mode(0o755));
            }
            parts.push((found.clone(), None));
            parts.extend(KEPT.map(|name| (found.join(name), None)));
        }
        Self { folder, parts }
    }

    /// Copies the mounts of the parts, when they are read-only.
    pub(super) fn copy(&mut self) -> rustix::io::Result<()> {
        for (path, copy) in &mut self.parts {
            // It may not be there, or be a link by now, which leads nowhere else.
            if let Ok(part) = open_in(&self.folder, path) {
                *copy = Some(open_tree(&part, "", COPY)?);
            }
        }
        Ok(())
    }

    /// Mounts the parts over a writable folder. A repository becomes a mount of its own, so that it cannot be moved
    /// away.
    pub(super) fn apply(self, folder: &OwnedFd) -> rustix::io::Result<Guarded> {
        let mut guarded = Vec::new();
        for (path, mut copy) in self.parts {
            let is_repository = copy.as_ref().is_some_and(is_folder) && !path.ends_with("hooks");
            if is_repository && path.as_os_str().is_empty() {
                continue;
            }
            let (Some(part), Ok(place)) = (copy.take(), open_in(folder, &path)) else {
                continue;
            };
            let part = if is_repository {
                open_tree(&place, "", COPY)?
            } else {
                part
            };
            move_mount(&part, "", &place, "", BY_HANDLE)?;
            if is_repository {
                let is_missing = |name: &&str| {
                    statat(&part, *name, AtFlags::SYMLINK_NOFOLLOW).err() == Some(Errno::NOENT)
                };
                let missing = MADE.into_iter().filter(is_missing).collect();
                guarded.push((part, missing));
            }
        }
        Ok(Guarded(guarded))
    }
}

impl Guarded {
    /// Removes what a command has made in vain.
    pub(super) fn restore(&self) {
        for (repository, missing) in &self.0 {
            for name in missing {
                // Most commands make none.
                let _ = unlinkat(repository, *name, AtFlags::empty());
            }
        }
    }
}

fn is_folder(file: &OwnedFd) -> bool {
    fstat(file).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}

/// Opens a path in a folder without following links.
fn open_in(folder: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(
        folder,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        how,
    )
}
