//! Git's folders: what commands keep as it is in those of the workspace, and which of them are outside of it, of a linked
//! worktree, a submodule, or a repository above.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use super::view::{Access, Mount};
#[cfg(target_os = "linux")]
use crate::daemon::git::folders;

/// What of a repository's folder Git executes, or where it looks for that.
#[cfg(target_os = "linux")]
const EXECUTED: [&str; 4] = ["commondir", "config", "config.worktree", "hooks"];
/// What leads to other repositories from one that is outside of the workspace.
#[cfg(target_os = "linux")]
const LEADING: [&str; 3] = ["gitdir", "modules", "worktrees"];

/// What Git needs outside of a workspace that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// What it writes: Git's folder first, and then that of a worktree.
    pub writable: Vec<PathBuf>,
    /// The files of the repository that the workspace is a folder of.
    pub readable: Option<PathBuf>,
}

/// Finds Git's folder outside of a workspace, by its real path, if that points back to the workspace: a file in the
/// workspace may have come from anywhere.
pub fn outside(workspace: &Path) -> Option<Outside> {
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let is_personal = |folder: &Path| home.as_ref().is_some_and(|home| home.starts_with(folder));
    let mut found = None;
    for top in workspace.ancestors() {
        let git = top.join(".git");
        let Ok(kind) = git.symlink_metadata() else {
            continue;
        };
        if top != workspace && (is_personal(top) || !is_same_owner(&git, workspace)) {
            return None;
        }
        if kind.is_file() {
            found = linked(top, &git);
        } else if kind.is_dir() && top != workspace {
            found = Some(vec![git]);
        }
        let readable = (top != workspace).then(|| top.to_owned());
        return found.map(|writable| Outside { writable, readable });
    }
    None
}

/// Returns how commands see the repositories in a workspace, and the files that name others: none can be moved away, and
/// what Git executes stays as it is.
#[cfg(target_os = "linux")]
pub(super) fn guarded(workspace: &Path) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for found in folders(workspace) {
        if !found.is_dir() {
            mounts.push(Mount::kept(&found));
            continue;
        }
        if found != workspace {
            mounts.push(Mount::here(Access::Write, &found));
        }
        for path in EXECUTED.map(|name| found.join(name)) {
            let link = path.read_link().and_then(|_| path.canonicalize()).ok();
            let leads_to = link.filter(|to| to.starts_with(workspace));
            mounts.extend(leads_to.iter().chain([&path]).map(|path| Mount::kept(path)));
        }
    }
    mounts
}

/// Returns what is read-only in a writable folder of Git, or in the one of a writable repository.
#[cfg(target_os = "linux")]
pub(super) fn kept(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let folders = [folder.to_owned(), folder.join(".git")].into_iter();
    let folders = folders.filter(|folder| folder.join("HEAD").is_file());
    let names = || EXECUTED.into_iter().chain(LEADING);
    folders.flat_map(move |folder| names().map(move |name| folder.join(name)))
}

/// Returns what a worktree or a submodule writes, if that is what its file says.
fn linked(top: &Path, file: &Path) -> Option<Vec<PathBuf>> {
    let folder = path_in(file, "gitdir: ")?;
    if let Some(back) = path_in(&folder.join("gitdir"), "") {
        let common = path_in(&folder.join("commondir"), "")?;
        let is_one = folder.parent() == Some(&common.join("worktrees"));
        return (back == file && is_one).then(|| vec![common, folder]);
    }
    let mut above = folder.ancestors().skip(1);
    let superproject = above.find(|it| it.ends_with(".git"))?.parent()?;
    let mut git = Command::new("git");
    git.args(["config", "--no-includes", "--file"]);
    git.arg(folder.join("config")).arg("core.worktree");
    let answer = git.stdin(Stdio::null()).output().ok()?;
    let back = String::from_utf8(answer.stdout).ok()?;
    let back = folder.join(back.trim_end()).canonicalize().ok()?;
    let is_module = folder.starts_with(superproject.join(".git/modules"));
    (back == top && is_module && top.starts_with(superproject)).then(|| vec![folder])
}

/// Returns the real path that a file holds.
fn path_in(file: &Path, before: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let path = text.strip_prefix(before)?.trim_end_matches(['\r', '\n']);
    file.parent()?.join(path).canonicalize().ok()
}

#[cfg(unix)]
fn is_same_owner(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let owner = |path: &Path| path.symlink_metadata().map(|it| it.uid()).ok();
    owner(one) == owner(other)
}

#[cfg(not(unix))]
fn is_same_owner(_: &Path, _: &Path) -> bool {
    true
}
