//! Reading files: whole, or some of their lines.

use std::io;
use std::path::Path;

use cap_std::fs::{File, OpenOptions};

use super::{Code, MAX_FILE, ToolError, Workspace, shown, text};
use crate::bounded;

/// The lines to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first one, from 1.
    pub first: usize,
    /// The most lines.
    pub count: usize,
}

impl Default for Range {
    fn default() -> Self {
        Self {
            first: 1,
            count: usize::MAX,
        }
    }
}

/// Some lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The file, seen from the folder.
    pub path: String,
    /// The lines, with their ends.
    pub text: String,
    /// The number of the first one, from 1.
    pub first: usize,
    /// The number of these lines.
    pub lines: usize,
    /// The number of lines in the file.
    pub total: usize,
}

impl Workspace {
    /// Reads lines of a file.
    ///
    /// # Errors
    /// [`ToolError`]: there is no such file, it is too large, it is not text, or it is outside.
    /// Trying again is safe.
    pub fn read(&self, name: &str, range: Range) -> Result<Excerpt, ToolError> {
        let path = self.inside(name)?;
        let whole = self.load(name, &path)?;
        let total = whole.lines().count();
        let first = range.first.max(1);
        let lines = whole.split_inclusive('\n').skip(first - 1);
        let lines: Vec<_> = lines.take(range.count).collect();
        if lines.is_empty() && total > 0 {
            let message = format!("{name:?} has {total} lines, and none of them was requested");
            return Err(ToolError::call(message));
        }
        Ok(Excerpt {
            path: shown(&path),
            text: lines.concat(),
            first,
            lines: lines.len(),
            total,
        })
    }

    /// Loads the text of a file. Errors call it `name`.
    pub(super) fn load(&self, name: &str, path: &Path) -> Result<String, ToolError> {
        let told = |error: io::Error| ToolError::io(name, &error);
        let file = self.open_file(path).map_err(told)?;
        if !file.metadata().map_err(told)?.is_file() {
            let message = format!("{name:?} is not a file");
            return Err(ToolError::new(Code::Other, message));
        }
        text(name, bounded::read(file, MAX_FILE).map_err(told)?)
    }

    fn open_file(&self, path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            // A pipe without a writer would be waited for.
            let flags = rustix::fs::OFlags::NONBLOCK.bits();
            options.custom_flags(flags.cast_signed());
        }
        self.dir.open_with(path, &options)
    }
}
