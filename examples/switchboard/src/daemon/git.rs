//! [`is_folder`], [`folders`]: where Git keeps what it runs by itself, its settings and hooks.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The name of a repository's folder, or of the file that names it.
pub(crate) const NAME: &str = ".git";
/// Most files and folders that are looked at.
const MAX_SEEN: usize = 500_000;

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
