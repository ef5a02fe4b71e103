//! Reading files of any size: whole, or some of their lines.

use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use cap_std::fs::{File, OpenOptions};
use sha2::{Digest as _, Sha256};

use super::{Code, MAX_FILE, Stop, ToolError, Workspace, shown};
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
    /// The lines, with their ends: at most [`MAX_FILE`] bytes.
    pub text: String,
    /// The number of the first one, from 1.
    pub first: usize,
    /// The number of these lines.
    pub lines: usize,
    /// The number of lines in the file.
    pub total: usize,
}

impl Workspace {
    /// Reads lines of a file, which is known from then on.
    ///
    /// # Errors
    /// [`ToolError`]: there is no such file, it is not text, it is outside, or it was stopped.
    /// Trying again is safe.
    pub fn read(&self, name: &str, range: Range, stop: &Stop) -> Result<Excerpt, ToolError> {
        let path = self.real(name)?;
        let first = range.first.max(1);
        let (mut text, mut lines, mut total) = (String::new(), 0, 0);
        let mut digest = Sha256::new();
        self.each_line(name, &path, stop, |line| {
            digest.update(line);
            total += 1;
            let has_room = (text.len() + line.len()) as u64 <= MAX_FILE;
            // What is read is without a gap.
            if total >= first && lines < range.count && first + lines == total && has_room {
                text.push_str(as_text(name, line)?);
                lines += 1;
            }
            Ok(true)
        })?;
        if lines == 0 && total > 0 {
            let message = format!("{name:?} has {total} lines, and none of them was requested");
            return Err(ToolError::call(message));
        }
        self.known
            .read(self.root.join(&path), digest.finalize().into());
        Ok(Excerpt {
            path: shown(&path),
            text,
            first,
            lines,
            total,
        })
    }

    /// Passes on the lines of a file, with their ends, until enough is taken. Errors call it `name`.
    pub(super) fn each_line(
        &self,
        name: &str,
        path: &Path,
        stop: &Stop,
        mut take: impl FnMut(&[u8]) -> Result<bool, ToolError>,
    ) -> Result<(), ToolError> {
        let (mut file, mut line) = (BufReader::new(self.open_file(name, path)?), Vec::new());
        loop {
            stop.check()?;
            line.clear();
            let read = file
                .by_ref()
                .take(MAX_FILE + 1)
                .read_until(b'\n', &mut line);
            read.map_err(|error| ToolError::io(name, &error))?;
            if line.len() as u64 > MAX_FILE {
                let message = format!("{name:?} has a line of more than {MAX_FILE} bytes");
                return Err(ToolError::new(Code::TooLarge, message));
            }
            if line.is_empty() || !take(&line)? {
                return Ok(());
            }
        }
    }

    /// Loads the text of a file. Errors call it `name`.
    pub(super) fn load(&self, name: &str, path: &Path) -> Result<String, ToolError> {
        let file = self.open_file(name, path)?;
        let bytes = bounded::read(file, MAX_FILE).map_err(|error| ToolError::io(name, &error))?;
        as_text(name, &bytes).map(str::to_owned)
    }

    fn open_file(&self, name: &str, path: &Path) -> Result<File, ToolError> {
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            // A pipe without a writer would be waited for.
            let flags = rustix::fs::OFlags::NONBLOCK.bits();
            options.custom_flags(flags.cast_signed());
        }
        let failed = |error: io::Error| ToolError::io(name, &error);
        let file = self.dir.open_with(path, &options).map_err(failed)?;
        match file.metadata().map_err(failed)?.is_file() {
            true => Ok(file),
            false => Err(ToolError::new(
                Code::NotFile,
                format!("{name:?} is a folder, a pipe or a device, and no file"),
            )),
        }
    }
}

/// Returns bytes as text. Fails for binary files: they contain zeros, or are not UTF-8.
pub(super) fn as_text<'a>(name: &str, bytes: &'a [u8]) -> Result<&'a str, ToolError> {
    let why = match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => return Ok(text),
        Ok(_) => "it holds zeros".to_owned(),
        Err(error) => {
            let byte = bytes.get(error.valid_up_to()).unwrap_or(&0);
            format!(
                "it holds the byte {byte:#04x}, which is not UTF-8: it may have another encoding"
            )
        }
    };
    let message = format!("{name:?} is not text: {why}");
    Err(ToolError::new(Code::NotText, message))
}
