//! Keys in files, as the known SDKs keep them: 32 bytes in `.co/keys/agent.key`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use zeroize::Zeroizing;

use super::{Signer, hex};

/// A size above that of every form of a key.
const MAX_FILE: u64 = 256;

impl Signer {
    /// Generates a key from the system's random numbers. Not available in browsers: use
    /// [`from_seed`](Self::from_seed) there.
    ///
    /// # Errors
    /// The system's error, if it has no random numbers.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn generate() -> io::Result<Self> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self::from_seed(&seed))
    }

    /// Loads a key from a file that holds 32 bytes, as the known SDKs write it to
    /// [`KEY_FILE`](crate::limits::KEY_FILE), or 64 hexadecimal digits.
    ///
    /// # Errors
    /// The system's error with the path, or [`ErrorKind::InvalidData`] if the file holds something else. It
    /// contains nothing of a key.
    pub fn load(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        // All the room at once: a growing buffer leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        let file = File::open(path);
        let read = file.and_then(|file| file.take(MAX_FILE).read_to_end(&mut bytes));
        read.map_err(|error| at(path, error.kind(), &error))?;
        let seed = seed(&bytes);
        let seed = seed.ok_or_else(|| at(path, ErrorKind::InvalidData, "not a key of 32 bytes"))?;
        Ok(Self::from_seed(&seed))
    }

    /// Saves the key to a new file, in the form of the known SDKs. Only its owner may read it (on
    /// systems with file permissions), and it is written as a whole or not at all. Missing folders
    /// are created.
    ///
    /// # Errors
    /// The system's error with the path; [`ErrorKind::AlreadyExists`] if there is a file. Replacing a key
    /// would lose an identity for ever: move it away first.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        write_new(path, self.seed()).map_err(|error| match error.kind() {
            kind @ ErrorKind::AlreadyExists => at(path, kind, "a key already exists"),
            kind => at(path, kind, &error),
        })
    }

    /// Loads a key; if the file does not exist, generates a key and saves it. Programs that do this
    /// at the same time all get the same key.
    ///
    /// # Errors
    /// As for [`load`](Self::load), [`generate`](Self::generate) and [`save`](Self::save).
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn load_or_generate(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        match Self::load(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            loaded => return loaded,
        }
        let signer = Self::generate()?;
        match signer.save(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Self::load(path),
            saved => saved.map(|()| signer),
        }
    }
}

fn at(path: &Path, kind: ErrorKind, words: impl std::fmt::Display) -> io::Error {
    io::Error::new(kind, format!("{}: {words}", path.display()))
}

/// Writes a new file as a whole or not at all, which only its owner may read.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::exists(path)? {
        return Err(ErrorKind::AlreadyExists.into());
    }
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        make_folder(folder)?;
    }
    let (draft, mut file) = open_draft(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let published = written.and_then(|()| publish(&draft, path));
    // It may be gone already.
    let _ = fs::remove_file(&draft);
    published
}

/// Returns the seed in the contents of a file.
fn seed(contents: &[u8]) -> Option<Zeroizing<[u8; 32]>> {
    if let Ok(seed) = <[u8; 32]>::try_from(contents) {
        return Some(Zeroizing::new(seed));
    }
    let digits = std::str::from_utf8(contents).ok()?.trim();
    hex::parse(digits).map(Zeroizing::new)
}

/// Creates a folder that others cannot read, unless it exists.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates a file beside `path` that only its owner may read.
fn open_draft(path: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = path.as_os_str().to_owned();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}.{number}.new", std::process::id()));
    let draft = PathBuf::from(name);
    // Of a process that was killed.
    let _ = fs::remove_file(&draft);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok((draft.clone(), options.open(draft)?))
}

/// Renames a finished file, unless the name is taken.
fn publish(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            // A file system without links, where two programs may both see that there is no file.
            if fs::exists(path)? {
                return Err(ErrorKind::AlreadyExists.into());
            }
            fs::rename(draft, path)?;
        }
        linked => linked?,
    }
    // So that the name survives a power cut.
    match cfg!(unix) {
        true => rpc_core::file::sync_folder(path),
        false => Ok(()),
    }
}
