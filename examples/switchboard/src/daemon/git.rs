//! Git's folders: those in a workspace, those that it needs outside of it, of a linked worktree, a submodule or a
//! repository above, and what of them Git executes by itself.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of a repository's folder, or of the file that names it.
pub(crate) const NAME: &str = ".git";
/// Most files and folders that are looked at.
const MAX_SEEN: usize = 500_000;
/// What of a repository's folder Git executes, or where it looks for that.
#[cfg(target_os = "linux")]
pub(super) const EXECUTED: [&str; 4] = ["commondir", "config", "config.worktree", "hooks"];
/// What leads to other repositories from one that is outside of the workspace.
#[cfg(target_os = "linux")]
const LEADING: [&str; 3] = ["gitdir", "modules", "worktrees"];

/// Returns whether some system takes a name for [`NAME`], whatever its case, and with characters that it ignores.
pub(crate) fn is_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let mut seen = name.trim_end_matches([' ', '.']).chars();
    let mut letters = NAME.chars();
    seen.by_ref()
        .filter(|c| !rpc_core::text::is_invisible(*c))
        .map(|c| c.to_ascii_lowercase())
        .eq(letters.by_ref())
}

/// Returns whether Git takes a folder for a repository, if it `has` files and folders of some names.
pub(crate) fn is_folder(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns the repositories in a folder, which Git reads when it is called there or below, and the files that
/// name others: their paths, those of outer ones first. Follows no link.
pub(crate) fn folders(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let names = fs::read_dir(&folder).into_iter().flatten();
        let names: Vec<_> = names.flatten().collect();
        seen += names.len();
        let has = |name: &str| names.iter().any(|it| it.file_name() == *name);
        let is_repository = is_folder(has);
        if is_repository {
            found.push(folder);
        }
        for entry in names.into_iter().filter(|_| seen < MAX_SEEN) {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            // There are others in a repository, but not among its objects.
            let may_have = !is_repository || name == *"modules" || name == *"worktrees";
            match kind.is_dir() && may_have {
                true => open.push(entry.path()),
                false if kind.is_file() && is_name(&name) => found.push(entry.path()),
                false => {}
            }
        }
    }
    found
}

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

/// Returns the repository's folder that a file in a workspace names.
pub fn named(workspace: &Path) -> Option<PathBuf> {
    let folder = path_in(&workspace.join(NAME), "gitdir: ")?;
    is_folder(|name| folder.join(name).exists()).then_some(folder)
}

/// Returns what is read-only in a writable folder of Git, or in the one of a writable repository.
#[cfg(target_os = "linux")]
pub(crate) fn kept(folder: &Path) -> impl Iterator<Item = PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_gits_on_any_system() {
        for name in [".git", ".GIT", ".Git.", ".git ", ".g\u{200c}it"] {
            assert!(is_name(OsStr::new(name)), "{name:?}");
        }
        for name in ["git", ".gitignore", ".github", ".gi", ""] {
            assert!(!is_name(OsStr::new(name)), "{name:?}");
        }
    }
}
