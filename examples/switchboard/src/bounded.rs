//! [`read`] and [`text`]: files of a bounded size.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

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

/// Reads the text of a regular file of at most `max` bytes.
///
/// # Errors
/// As for [`read`]; [`InvalidData`](ErrorKind::InvalidData) for what is not UTF-8.
pub fn text(path: &Path, max: u64) -> io::Result<String> {
    // Before it is opened: opening a pipe waits for its other end.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    String::from_utf8(read(File::open(path)?, max)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}
