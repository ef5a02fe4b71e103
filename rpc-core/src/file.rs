//! Files that keep what programs must not lose: one program at a time, whole records, whole files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The pause between two attempts to lock.
const PAUSE: Duration = Duration::from_millis(50);

/// The exclusive use of a file or folder, until this is dropped or the process ends, by a kill too.
///
/// What is locked is a file beside it, with `.lock` after the name, because the file itself may be
/// replaced. It stays there, and names the program that has the lock.
///
/// ```
/// use rpc_core::file::{Lock, LockError};
///
/// # let path = std::env::temp_dir().join(format!("lock-doc-{}", std::process::id()));
/// let lock = Lock::take(&path)?;
/// assert!(matches!(Lock::take(&path), Err(LockError::InUse { .. })));
/// drop(lock);
/// assert!(Lock::take(&path).is_ok());
/// # std::fs::remove_file(path.with_extension("lock")).ok();
/// # Ok::<(), LockError>(())
/// ```
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "dropping it unlocks")] Locked);

/// Unlocks at once: a process that is being started has the file too, until it runs its program.
#[derive(Debug)]
struct Locked(#[allow(dead_code, reason = "only unix reads it")] File);

#[cfg(unix)]
impl Drop for Locked {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

#[cfg(unix)]
fn unlock(file: &File) {
    let _ = rustix::fs::flock(file, rustix::fs::FlockOperation::Unlock);
}

/// Why a file was not locked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another program has it. Retry after that has ended.
    #[error("in use by {holder}")]
    InUse {
        /// The program and its number, for people.
        holder: String,
    },
    /// The system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Lock {
    /// Locks a file, which need not exist; its folder must.
    ///
    /// # Errors
    /// [`LockError`]; nothing has changed.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let place = beside(path, ".lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A link that someone put there is not followed.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            private(&mut options),
            rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
        );
        // Others may read who has it, and that is the lock.
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 1);
        let mut file = match options.open(&place) {
            Err(error) if cfg!(windows) && error.raw_os_error() == Some(32) => {
                return Err(in_use(&place));
            }
            file => file?,
        };
        #[cfg(unix)]
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(in_use(&place)),
            locked => locked.map_err(io::Error::from)?,
        }
        let program = std::env::args_os().next().map(PathBuf::from);
        let program = program.as_deref().and_then(Path::file_name);
        let name = program.unwrap_or_default();
        // It is locked, whether others can read by whom or not.
        let _ = file
            .set_len(0)
            .and_then(|()| writeln!(file, "{} {}", std::process::id(), name.display()));
        Ok(Self(Locked(file)))
    }

    /// Like [`take`](Self::take), but waits for a program that is about to end, for about as long as
    /// this. Blocks.
    ///
    /// # Errors
    /// [`LockError`]; nothing has changed.
    pub fn wait(path: &Path, max: Duration) -> Result<Self, LockError> {
        let mut left = max;
        loop {
            match Self::take(path) {
                Err(LockError::InUse { .. }) if !left.is_zero() => {
                    let pause = left.min(PAUSE);
                    left -= pause;
                    std::thread::sleep(pause);
                }
                taken => return taken,
            }
        }
    }
}

/// Returns the error with the holder's name, which may be missing for a moment.
fn in_use(place: &Path) -> LockError {
    let mut text = String::new();
    let read = File::open(place).and_then(|file| file.take(256).read_to_string(&mut text));
    let found = read.ok().and_then(|_| text.trim().split_once(' '));
    let holder = found.and_then(|(process, program)| {
        let process: u32 = process.parse().ok()?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_. ".contains(c);
        let program: String = program.chars().filter(|c| is_name(*c)).collect();
        Some(format!("{program} (process {process})"))
    });
    LockError::InUse {
        holder: holder.unwrap_or_else(|| "another program".to_owned()),
    }
}

/// Opens a file to read, and to write at its end. A new one is for this user only, where there are
/// users.
///
/// # Errors
/// The system's error.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    private(&mut options).open(path)
}

/// Adds bytes at the end of a file: all of them or, as far as the system allows, nothing. So that a
/// disk that was full has the room that it had before.
///
/// # Errors
/// The system's error.
pub fn append(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(bytes).inspect_err(|_| {
        let _ = file.set_len(before);
    })
}

/// [Appends](append) lines, on lines of their own: also if a line before was cut short, or written by
/// hand without its end.
///
/// # Errors
/// The system's error.
pub fn append_lines(mut file: &File, lines: &str) -> io::Result<()> {
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let start = if last == [b'\n'] { "" } else { "\n" };
    append(file, [start, lines].concat().as_bytes())
}

/// Replaces a file by what `write` writes, or leaves it as it was: also in a crash. What a link
/// leads to is replaced, and not the link. The draft beside it has `.switchboard-tmp` after its name.
/// Returns the new file, open as by [`open`].
///
/// # Errors
/// Those of `write`, and the system's by `told`. Nothing is left behind.
pub fn replace<T, E>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<T, E>,
    to_error: impl Fn(io::Error) -> E,
) -> Result<(File, T), E> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let draft = beside(&path, ".switchboard-tmp");
    let file = begin(&draft).map_err(&to_error)?;
    let written = write(&file).and_then(|done| {
        let kept = file.sync_all().and_then(|()| fs::rename(&draft, &path));
        kept.map_err(to_error).map(|()| done)
    });
    let done = written.inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })?;
    // Whoever waits for the draft need not wait for the end of the file.
    #[cfg(unix)]
    unlock(&file);
    // So that the new name survives a loss of power. Not every system can.
    let _ = sync_folder(&path);
    Ok((file, done))
}

/// Creates a draft. Waits while another program writes one, and removes what was left by a crash.
fn begin(draft: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create_new(true);
    private(&mut options);
    loop {
        match options.open(draft) {
            Ok(file) if locks(&file, draft)? => return Ok(file),
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // A link that someone put there is not followed.
        let mut read = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut read,
            rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
        );
        // Locked until it is removed: else another program's draft would be removed in its place.
        let left = read.read(true).open(draft);
        match &left {
            Ok(file) if !locks(file, draft)? => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            _ => {}
        }
        match fs::remove_file(draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
}

/// Waits until no other program has this file, and returns whether it is still at its path.
#[cfg(unix)]
fn locks(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    rustix::fs::flock(file, rustix::fs::FlockOperation::LockExclusive)?;
    let ours = file.metadata()?;
    let there = fs::symlink_metadata(path);
    Ok(there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())))
}

#[cfg(not(unix))]
const fn locks(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Writes the names in a file's folder to the disk: a new file is safe only then.
///
/// # Errors
/// The system's error. Not every system can.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes new files readable for this user only.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Returns the path of a file beside this one, or beside what it leads to.
fn beside(path: &Path, end: &str) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = path.into_os_string();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed with the value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("rpc-core-file-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<_> = names.collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_second_lock_is_refused_with_its_holder() {
        let folder = Folder::new("lock");
        let path = folder.0.join("store");
        let first = Lock::take(&path).unwrap();
        let error = Lock::take(&path).unwrap_err().to_string();
        let number = format!("(process {})", std::process::id());
        assert!(
            error.starts_with("in use by ") && error.ends_with(&number),
            "{error}"
        );
        // Also after the file itself was replaced.
        replace(&path, |_| Ok(()), |error| error).unwrap();
        assert!(Lock::take(&path).is_err());
        // As a process has it that is being started.
        let _inherited = first.0.0.try_clone().unwrap();
        drop(first);
        Lock::take(&path).unwrap();
    }

    #[test]
    fn a_lock_waits_for_a_program_that_is_ending() {
        let folder = Folder::new("wait");
        let path = folder.0.join("store");
        let first = Lock::take(&path).unwrap();
        let second = std::thread::spawn({
            let path = path.clone();
            move || Lock::wait(&path, Duration::from_secs(60)).is_ok()
        });
        drop(first);
        assert!(second.join().unwrap());
        let _first = Lock::take(&path).unwrap();
        assert!(Lock::wait(&path, PAUSE).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn symlinks_are_followed_for_locks_and_replacements() {
        use std::os::unix::fs::symlink;
        let folder = Folder::new("link");
        let (path, link) = (folder.0.join("store"), folder.0.join("link"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        let _lock = Lock::take(&path).unwrap();
        assert!(matches!(Lock::take(&link), Err(LockError::InUse { .. })));
        replace(&link, |mut file| file.write_all(b"new"), |error| error).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        // A lock does not write to what a link leads to.
        symlink(&path, folder.0.join("other.lock")).unwrap();
        assert!(matches!(
            Lock::take(&folder.0.join("other")),
            Err(LockError::Io(_))
        ));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_failed_replacement_leaves_only_the_old_file() {
        let folder = Folder::new("replace");
        let path = folder.0.join("list");
        fs::write(&path, "old").unwrap();
        let full = |mut file: &File| {
            file.write_all(b"half")?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        };
        assert!(replace(&path, full, |error| error).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(folder.names(), ["list"]);
    }

    #[test]
    fn lines_are_appended_after_a_line_break() {
        let folder = Folder::new("lines");
        let path = folder.0.join("notes");
        fs::write(&path, "by hand").unwrap();
        let file = open(&path).unwrap();
        append_lines(&file, "one\ntwo\n").unwrap();
        append_lines(&file, "three\n").unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "by hand\none\ntwo\nthree\n"
        );
    }

    #[test]
    fn programs_that_replace_one_file_wait_for_each_other() {
        let folder = Folder::new("together");
        let path = folder.0.join("list");
        std::thread::scope(|scope| {
            for text in ["one", "two", "three", "four"] {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let write = |mut file: &File| file.write_all(text.as_bytes());
                        replace(path, write, |error| error).unwrap();
                    }
                });
            }
        });
        let kept = fs::read_to_string(&path).unwrap();
        assert!(["one", "two", "three", "four"].contains(&&*kept), "{kept}");
        assert_eq!(folder.names(), ["list"]);
    }
}
