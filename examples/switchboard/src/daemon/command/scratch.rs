//! [`Scratch`]: the home and the temporary files of programs.

#[cfg(target_os = "linux")]
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

#[cfg(target_os = "linux")]
use super::reach::Reach;
#[cfg(target_os = "linux")]
use super::view::{self, Access, Mount};

/// The folder of the programs of one workspace in one session. It is removed with the value.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    /// Where programs see their home.
    pub(super) home: PathBuf,
    /// Where they see their folder for temporary files.
    pub(super) temporary: PathBuf,
    /// What confined programs see elsewhere, or can write.
    #[cfg(target_os = "linux")]
    pub(super) mounts: Vec<Mount>,
    /// Locked as long as this process lives.
    #[cfg(unix)]
    _lock: fs::File,
}

impl Scratch {
    pub(super) fn new() -> io::Result<Self> {
        let named = std::env::temp_dir();
        let why = |error| {
            let step = "set TMPDIR to one that can be written";
            io::Error::other(format!("temporary folder {named:?}: {error}; {step}"))
        };
        let temporary = named.canonicalize().map_err(why)?;
        let random = rpc_core::net::entropy();
        let path = temporary.join(format!("daemon-{}-{random:016x}", std::process::id()));
        make_private(&path).map_err(why)?;
        let scratch = Self {
            home: path.join("home"),
            temporary: path.join("tmp"),
            #[cfg(target_os = "linux")]
            mounts: Vec::new(),
            #[cfg(unix)]
            _lock: lock(&path)?,
            path,
        };
        make_private(&scratch.home)?;
        make_private(&scratch.temporary)?;
        // Below the settings of a repository, and of the variables that a commit is made with.
        let name = git_setting("user.name").unwrap_or_else(|| "Switchboard daemon".to_owned());
        let mail = git_setting("user.email").unwrap_or_else(|| "daemon@localhost".to_owned());
        let settings = format!("[user]\n\tname = {name:?}\n\temail = {mail:?}\n");
        fs::write(scratch.home.join(".gitconfig"), settings)?;
        Ok(scratch)
    }

    /// Prepares the folder for programs that can write and read this only. The workspace is the first that they write.
    #[cfg(target_os = "linux")]
    pub(super) fn confine(mut self, writable: &[PathBuf], reach: &Reach) -> io::Result<Self> {
        let usual = |place: Option<PathBuf>| place?.canonicalize().ok();
        let home = usual(std::env::home_dir()).filter(|home| home.parent().is_some());
        let temporary = usual(Some("/tmp".into()));
        let own = [
            (self.home.clone(), home),
            (self.temporary.clone(), temporary),
        ];
        ([self.home, self.temporary], self.mounts) = view::layout(writable, &reach.readable, own);
        view::prepare(&self.mounts, &self.path)?;
        for (access, paths) in [
            (Access::Readable, &reach.readable),
            (Access::Closed, &reach.closed),
        ] {
            let more = paths.iter().map(|path| Mount::here(access, path));
            self.mounts.extend(more);
        }
        let owner = writable.first().map(|it| view::owner(it)).transpose()?;
        if let Some((user, group)) = owner.flatten() {
            let (user, group) = (user.as_raw(), group.as_raw());
            give(&self.path, &|it| lchown(it, Some(user), Some(group)))?;
        }
        Ok(self)
    }
}

#[cfg(target_os = "linux")]
fn give(path: &Path, to: &dyn Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    to(path)?;
    if path.is_dir() {
        for entry in path.read_dir()? {
            give(&entry?.path(), to)?;
        }
    }
    Ok(())
}

/// Returns a setting of this user for Git, whose file commands do not see.
fn git_setting(name: &str) -> Option<String> {
    let mut git = std::process::Command::new("git");
    let asked = git.args(["config", "--global", "--includes", name]);
    let answered = asked.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = String::from_utf8(answered.ok()?.stdout).ok()?;
    let text = text.trim();
    let is_plain = !text.is_empty() && !text.contains(char::is_control);
    is_plain.then(|| text.to_owned())
}

/// Locks a folder; fails if another process has locked it.
#[cfg(unix)]
fn lock(folder: &Path) -> io::Result<fs::File> {
    use rustix::fs::{FlockOperation, flock};
    let file = fs::File::open(folder)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Removes the folders of processes that were killed, as far as they are this user's.
#[cfg(unix)]
pub(super) fn remove_abandoned(temporary: &Path) {
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = entry.file_name();
        let process = name.to_str().and_then(process_of);
        // One in another container may have locked it.
        if process.is_some_and(is_gone) && lock(&entry.path()).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns the process whose folder has this name.
#[cfg(unix)]
fn process_of(folder: &str) -> Option<rustix::process::Pid> {
    let (process, random) = folder.strip_prefix("daemon-")?.split_once('-')?;
    u64::from_str_radix(random, 16)
        .ok()
        .filter(|_| random.len() == 16)?;
    rustix::process::Pid::from_raw(process.parse().ok()?)
}

#[cfg(unix)]
fn is_gone(process: rustix::process::Pid) -> bool {
    rustix::process::test_kill_process(process) == Err(rustix::io::Errno::SRCH)
}

/// Creates a folder that only this user can read, where the system has such.
#[cfg(unix)]
fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It lies where the system clears up.
        let _ = fs::remove_dir_all(&self.path);
    }
}
