//! [`TempDir`]: a folder of its own, which goes with the value.

use std::path::{Path, PathBuf};

use switchboard::cli::Failure;

/// A new folder among the system's temporary ones.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// The name says what it is for, and is used once in this process.
    pub(crate) fn new(name: &str) -> Result<Self, Failure> {
        let name = format!("tour-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).map_err(Failure::new)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        std::fs::write(self.0.join(file), text).map_err(Failure::new)
    }

    pub(crate) fn read(&self, file: &str) -> Result<String, Failure> {
        let path = self.0.join(file);
        let text = std::fs::read_to_string(&path);
        text.map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // It is the system's folder for what may stay behind.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
