//! Keys in files, as the known SDKs keep them: 32 bytes in `.co/keys/agent.key`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use zeroize::Zeroizing;

use super::{Signer, hex};

/// A size above that of every form of a key.
const MAX_FILE: u64 = 256;

/// Why a key was not generated, loaded or saved. Contains nothing of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read or written. Retrying may help.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file does not hold a key. Retrying fails again.
    #[error("{path}: not a key of 32 bytes", path = .0.display())]
    NotAKey(PathBuf),
    /// The file already exists. Replacing it would lose an identity for ever: move it away first.
    #[error("{path}: a key already exists", path = .0.display())]
    Exists(PathBuf),
    /// The system provides no random numbers. Retrying may help.
    #[error("the system has no random numbers: {0}")]
    NoEntropy(String),
}

impl Signer {
    /// Generates a key from the system's random numbers. Not available in browsers: use
    /// [`from_seed`](Self::from_seed) there.
    ///
    /// # Errors
    /// [`KeyError::NoEntropy`]
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        let filled = getrandom::fill(&mut *seed);
        filled.map_err(|error| KeyError::NoEntropy(error.to_string()))?;
        Ok(Self::from_seed(&seed))
    }

    /// Loads a key from a file that holds 32 bytes, as the known SDKs write it to
    /// [`KEY_FILE`](crate::limits::KEY_FILE), or 64 hexadecimal digits.
    ///
    /// # Errors
    /// [`KeyError::File`], [`KeyError::NotAKey`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        let path = path.as_ref();
        // All the room at once: a growing buffer leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        let file = File::open(path).map_err(|error| failed(path, error))?;
        let read = file.take(MAX_FILE).read_to_end(&mut bytes);
        read.map_err(|error| failed(path, error))?;
        let seed = seed(&bytes).ok_or_else(|| KeyError::NotAKey(path.to_owned()))?;
        Ok(Self::from_seed(&seed))
    }

    /// Saves the key to a new file, in the form of the known SDKs. Only its owner may read it (on
    /// systems with file permissions), and it is written as a whole or not at all. Missing folders
    /// are created.
    ///
    /// # Errors
    /// [`KeyError::Exists`], [`KeyError::File`].
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), KeyError> {
        let path = path.as_ref();
        let in_folder = |error| failed(path, error);
        if fs::exists(path).map_err(in_folder)? {
            return Err(KeyError::Exists(path.to_owned()));
        }
        if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
            make_folder(folder).map_err(in_folder)?;
        }
        let (draft, mut file) = open_draft(path).map_err(in_folder)?;
        let written = file.write_all(self.seed()).and_then(|()| file.sync_all());
        let published = written.and_then(|()| publish(&draft, path));
        // It may be gone already.
        let _ = fs::remove_file(&draft);
        published.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => KeyError::Exists(path.to_owned()),
            _ => failed(path, error),
        })
    }

    /// Loads a key; if the file does not exist, generates a key and saves it. Programs that do this
    /// at the same time all get the same key.
    ///
    /// # Errors
    /// [`KeyError`]
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn load_or_generate(path: impl AsRef<Path>) -> Result<Self, KeyError> {
        let path = path.as_ref();
        match Self::load(path) {
            Err(KeyError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {}
            loaded => return loaded,
        }
        let signer = Self::generate()?;
        match signer.save(path) {
            Err(KeyError::Exists(_)) => Self::load(path),
            saved => saved.map(|()| signer),
        }
    }
}

fn failed(path: &Path, source: io::Error) -> KeyError {
    let path = path.to_owned();
    KeyError::File { path, source }
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
