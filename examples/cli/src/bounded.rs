//! [`read`], [`file`] and [`text`]: files of a bounded size.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::Failure;

/// The most bytes of a file that an option names.
const MAX_OPTION: u64 = 16 * 1024 * 1024;

/// Reads at most `max` bytes to the end of a file, which may grow meanwhile.
///
/// # Errors
/// [`FileTooLarge`](ErrorKind::FileTooLarge), or the system's error.
pub fn read(file: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max {
        true => {
            let message = format!("it is larger than {max} bytes");
            Err(io::Error::new(ErrorKind::FileTooLarge, message))
        }
        false => Ok(bytes),
    }
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
/// As for [`read`].
pub fn file(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a pipe waits for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    read(File::open(path)?, max)
}

/// Reads the text of a regular file of at most `max` bytes.
///
/// # Errors
/// As for [`read`]; [`InvalidData`](ErrorKind::InvalidData) for what is not UTF-8.
pub fn text(path: &Path, max: u64) -> io::Result<String> {
    utf8(file(path, max)?)
}

/// Reads the text of a file or a pipe of at most `max` bytes.
///
/// # Errors
/// As for [`text`].
pub fn piped_text(path: &Path, max: u64) -> io::Result<String> {
    utf8(read(File::open(path)?, max)?)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads what an option names, a file or a pipe. `place` is the option with the path.
///
/// # Errors
/// [`Failure`] with the place.
pub fn given(place: impl Display, path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = File::open(path).and_then(|file| read(file, MAX_OPTION));
    bytes.map_err(|error| Failure::usage(format_args!("{place}: {error}")))
}

/// Reads what an option names as text, without a mark of the byte order. `place` is the option with the path.
///
/// # Errors
/// [`Failure`] with the place.
pub fn given_text(place: impl Display, path: &Path) -> Result<String, Failure> {
    match piped_text(path, MAX_OPTION) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}').to_owned()),
        Err(error) => Err(Failure::usage(format_args!("{place}: {error}"))),
    }
}
