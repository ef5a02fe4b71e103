//! [`Reach`]: what confined commands may read beside their folders: by rules, not by names.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the system is. What is readable for everyone there, at each level, is readable for commands.
pub(super) const SYSTEM: [&str; 8] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/opt", "/etc",
];
/// Readable with all below: no one keeps a secret there.
const OPEN: [&str; 3] = ["/nix/store", "/sys/devices/system/cpu", "/sys/fs/cgroup"];
/// What package managers and version managers keep below the home: the variable that moves it, its usual place, and
/// the parts that are readable. The others may hold credentials.
/// They have no common mark, and credentials stand beside them, so they are listed: another one goes into the test
/// `a_home_shows_installations_and_caches_without_credentials`, with what stays closed beside it.
const KEPT: [(&str, &str, &[&str]); 8] = [
    ("CARGO_HOME", ".cargo", &["registry", "git"]),
    ("RUSTUP_HOME", ".rustup", &[""]),
    ("GOMODCACHE", "go/pkg/mod", &[""]),
    ("npm_config_cache", ".npm", &["_cacache"]),
    ("PIP_CACHE_DIR", ".cache/pip", &[""]),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", &[""]),
    ("M2_REPO", ".m2/repository", &[""]),
    ("GRADLE_USER_HOME", ".gradle", &["caches", "wrapper"]),
];

/// What an installation has beside its folder of programs.
const LIBRARIES: [&str; 3] = ["lib", "lib64", "libexec"];

/// What of the system is readable, looked at once: there are many files.
static SYSTEM_READ: OnceLock<Reach> = OnceLock::new();

/// What confined commands may read.
#[derive(Clone, Debug)]
pub(super) struct Reach {
    /// Real paths, each with all below.
    pub(super) readable: Vec<PathBuf>,
    /// Folders of the system that are not for everyone.
    pub(super) closed: Vec<PathBuf>,
}

impl Reach {
    /// Looks at the system, at `PATH`, and at the caches of packages, for this workspace. Blocks.
    pub(super) fn new(further: &[PathBuf], workspace: &Path) -> Self {
        let mut reach = SYSTEM_READ.get_or_init(Self::of_system).clone();
        let resolver = real(["/etc/resolv.conf"]);
        reach
            .readable
            .extend(resolver.filter(|path| !is_system(path)));
        reach.readable.extend_from_slice(further);
        let path = std::env::var_os("PATH").unwrap_or_default();
        for folder in real(std::env::split_paths(&path).filter(|it| it.is_absolute())) {
            programs(&folder, workspace, &mut reach.readable);
        }
        for (base, parts) in kept() {
            reach
                .readable
                .extend(real(parts.iter().map(|part| base.1.join(part))));
        }
        reach.readable.sort();
        reach
            .readable
            .dedup_by(|later, before| later.starts_with(before));
        reach
    }

    fn of_system() -> Self {
        let mut reach = Self {
            readable: OPEN.map(PathBuf::from).into(),
            closed: Vec::new(),
        };
        for root in real(SYSTEM) {
            let is_whole = root.symlink_metadata();
            if is_whole.is_ok_and(|it| is_public(&root, &it, &mut reach)) {
                reach.readable.push(root);
            }
        }
        reach
    }
}

/// Returns what stands for the usual places below the home, as variables and their values, and the readable parts.
pub(super) fn kept() -> impl Iterator<Item = ((&'static str, PathBuf), &'static [&'static str])> {
    KEPT.into_iter().filter_map(|(variable, usual, parts)| {
        let given = std::env::var_os(variable).map(PathBuf::from);
        let base = given.or_else(|| Some(std::env::home_dir()?.join(usual)))?;
        base.is_dir().then_some(((variable, base), parts))
    })
}

/// Returns the real paths of those that exist.
fn real<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> impl Iterator<Item = PathBuf> {
    let paths = paths.into_iter();
    paths.filter_map(|path| path.as_ref().canonicalize().ok())
}

fn is_system(path: &Path) -> bool {
    SYSTEM.iter().any(|root| path.starts_with(root))
}

/// Returns whether everyone can read this and all below. If not, what everyone can read below is added.
fn is_public(path: &Path, it: &Metadata, reach: &mut Reach) -> bool {
    if !it.is_dir() {
        return it.is_symlink() || (it.is_file() && it.mode() & 0o4 != 0);
    }
    let (lists, enters) = (it.mode() & 0o4 != 0, it.mode() & 0o1 != 0);
    if !lists {
        reach.closed.push(path.to_owned());
    }
    let Some(entries) = path.read_dir().ok().filter(|_| enters) else {
        return false;
    };
    let (before, mut is_whole) = (reach.readable.len(), lists);
    for entry in entries.flatten() {
        let path = entry.path();
        let is_public = entry
            .metadata()
            .is_ok_and(|it| is_public(&path, &it, reach));
        if is_public {
            reach.readable.push(path);
        }
        is_whole &= is_public;
    }
    if is_whole {
        reach.readable.truncate(before);
    }
    is_whole
}

/// Adds a folder of programs with the installation that it belongs to, and those that its links lead to.
fn programs(folder: &Path, workspace: &Path, readable: &mut Vec<PathBuf>) {
    readable.push(folder.to_owned());
    readable.extend(installation(folder));
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|it| it.is_symlink()));
    for target in real(links.map(|link| link.path())) {
        if !is_system(&target) && !readable.iter().any(|it| target.starts_with(it)) {
            readable.extend(target.parent().and_then(installation));
            // Links in the workspace may come from anywhere.
            if !folder.starts_with(workspace) {
                readable.push(target);
            }
        }
    }
}

/// Returns what a folder of programs needs: that above it, if it is an installation with libraries or of versions. What
/// holds the home, or what its programs keep for the user, is not one.
fn installation(programs: &Path) -> Option<PathBuf> {
    let (name, above) = (programs.file_name()?, programs.parent()?);
    let library = || {
        let mut entries = above.read_dir().ok()?.flatten();
        let library = entries.find(|it| LIBRARIES.iter().any(|name| it.file_name() == *name));
        Some(library?.path())
    };
    let home = std::env::home_dir()?.canonicalize().ok()?;
    if home.starts_with(above) {
        None
    } else if above == home.join(".local") {
        library()
    } else if name == "shims" || (name == "bin" && library().is_some()) {
        Some(above.to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_what_everyone_can_read_at_each_level_is_readable() {
        let top = std::env::temp_dir().join(format!("daemon-reach-{}", std::process::id()));
        for (path, mode) in [
            ("open/all/a", 0o644),
            ("open/all/b", 0o444),
            ("open/some/public", 0o644),
            ("open/some/secret", 0o640),
            ("open/entered/known", 0o644),
            ("closed/public", 0o644),
        ] {
            let path = top.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        for (folder, mode) in [("open/entered", 0o711), ("closed", 0o750)] {
            fs::set_permissions(top.join(folder), Permissions::from_mode(mode)).unwrap();
        }
        let mut reach = Reach {
            readable: Vec::new(),
            closed: Vec::new(),
        };
        let it = top.symlink_metadata().unwrap();
        assert!(!is_public(&top, &it, &mut reach));
        reach.readable.sort();
        reach.closed.sort();
        let below = |names: &[&str]| names.iter().map(|it| top.join(it)).collect::<Vec<_>>();
        let readable = ["open/all", "open/entered/known", "open/some/public"];
        assert_eq!(reach.readable, below(&readable));
        assert_eq!(reach.closed, below(&["closed", "open/entered"]));
        fs::remove_dir_all(top).unwrap();
    }
}
