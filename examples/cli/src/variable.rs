//! [`variable`]: settings from the environment, or from files of a service manager; [`secret`],
//! [`secret_file`] and [`secret_text`]: tokens, keys and passwords from there, from files and from options.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rpc_core::Secret;

use super::{Failure, bounded};

/// The folder with a file for each secret: set by systemd for `LoadCredential=`, and in containers
/// where their secrets are mounted.
const FOLDER: &str = "CREDENTIALS_DIRECTORY";
/// The largest file with a secret.
const MAX_FILE: u64 = 64 * 1024;

/// Why a token, key or password cannot be used. Says where it is, never what it is.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct SecretError {
    /// The option or variable, and the file.
    pub place: String,
    /// What is wrong with it.
    pub why: String,
}

impl From<SecretError> for Failure {
    fn from(error: SecretError) -> Self {
        Self::usage(error)
    }
}

/// Returns the environment variable of this name. If it is unset, returns the content of the file of this
/// name in the folder `CREDENTIALS_DIRECTORY`, without the end of its last line.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    let file = || {
        let text = read(&credential(name)?).ok()?;
        let text = text.trim_end_matches(['\r', '\n']);
        (!text.is_empty()).then(|| text.to_owned())
    };
    // What is not UTF-8 is seen to be wrong, and not taken as unset.
    let set = std::env::var_os(name).map(|it| it.to_string_lossy().into_owned());
    set.or_else(file)
}

/// Returns the secret in the environment variable of this name, else in the file of this name in the
/// folder `CREDENTIALS_DIRECTORY`, as [`secret_text`] reads it.
///
/// # Errors
/// [`SecretError`].
pub fn secret(name: &str) -> Result<Option<Secret>, SecretError> {
    let value = std::env::var_os(name).unwrap_or_default();
    let found = secret_text(name, &value.to_string_lossy())?;
    match credential(name).filter(|file| found.is_none() && file.exists()) {
        Some(file) => secret_file(name, &file),
        None => Ok(found),
    }
}

/// Returns the secret that an option gives, else the one of a variable, as [`secret`] finds it.
///
/// # Errors
/// [`SecretError`].
pub fn secret_or(
    option: &str,
    given: Option<&Secret>,
    name: &str,
) -> Result<Option<Secret>, SecretError> {
    let given = given.map_or("", |given| given.expose());
    match secret_text(option, given)? {
        None => secret(name),
        found => Ok(found),
    }
}

/// Returns the secret in a file, as [`secret_text`] reads it. `place` is what names the file.
///
/// # Errors
/// [`SecretError`].
pub fn secret_file(place: &str, file: &Path) -> Result<Option<Secret>, SecretError> {
    let place = format!("{place} {}", file.display());
    match read(file) {
        Ok(text) => secret_text(&place, &text),
        Err(error) => {
            let why = error.to_string();
            Err(SecretError { place, why })
        }
    }
}

/// Returns a text as a secret, without blanks, line breaks and marks of the byte order around it; `None`
/// for one that is blank. `place` is where it comes from.
///
/// # Errors
/// [`SecretError`] for anything that is not printable ASCII.
pub fn secret_text(place: &str, text: &str) -> Result<Option<Secret>, SecretError> {
    let is_around = |c: char| c.is_whitespace() || c == '\u{feff}';
    let begins = text.trim_start_matches(is_around);
    let secret = begins.trim_end_matches(is_around);
    let before = text.chars().count() - begins.chars().count();
    let wrong = secret.char_indices().find(|(_, c)| !matches!(c, ' '..='~'));
    if let Some((at, character)) = wrong {
        // One of another script that looks like a letter, one without a width, a line break.
        let position = before + secret.get(..at).unwrap_or_default().chars().count() + 1;
        let (code, is_end) = (u32::from(character), character == '\n');
        let hint = if is_end { ", in one line" } else { "" };
        let why = format!(
            "character {position} is U+{code:04X}, not printable ASCII: write it again{hint}"
        );
        let place = place.to_owned();
        return Err(SecretError { place, why });
    }
    Ok((!secret.is_empty()).then(|| Secret::from(secret)))
}

/// Returns the file that a service manager may have made for a secret.
fn credential(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty())?;
    Some(Path::new(&folder).join(name))
}

fn read(file: &Path) -> io::Result<String> {
    let bytes = bounded::read(File::open(file)?, MAX_FILE)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(text: &str) -> Result<Option<String>, String> {
        let secret = secret_text("A_KEY", text).map_err(|error| error.to_string())?;
        Ok(secret.map(Secret::into_inner))
    }

    #[test]
    fn a_secret_is_trimmed_and_a_blank_one_counts_as_absent() {
        for text in [
            "k e y",
            " k e y\r\n",
            "\u{feff}k e y\n\n",
            "\t\u{a0}k e y\u{feff}\r",
        ] {
            assert_eq!(read_as(text), Ok(Some("k e y".to_owned())), "{text:?}");
        }
        for text in ["", "  ", "\r\n", "\u{feff}", "\u{feff} \t\u{2003}\n"] {
            assert_eq!(read_as(text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn a_lookalike_character_is_named_with_its_place_only() {
        for (text, position, name) in [
            ("hunt\u{435}r2", 5, "U+0435"),
            ("hunter\u{200b}2", 7, "U+200B"),
            ("\u{feff} hunter\u{a0}2", 9, "U+00A0"),
            ("hunter2\nhunter3", 8, "U+000A"),
            ("hunter\u{7f}", 7, "U+007F"),
            ("hunter\u{fffd}", 7, "U+FFFD"),
        ] {
            let error = read_as(text).unwrap_err();
            let begin = format!("A_KEY: character {position} is {name}, ");
            assert!(error.starts_with(&begin), "{error}");
            assert!(!error.contains("hunt"), "{error}");
        }
    }

    #[test]
    fn a_file_is_named_in_errors_and_read_to_a_limit() {
        let folder = std::env::temp_dir().join(format!("secrets-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = folder.join("key");
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            secret_file("--key-file", &file)
        };
        let key = read(b"\xef\xbb\xbfkey\r\n").unwrap().unwrap();
        assert_eq!(key.expose(), "key");
        assert!(read(b"\n").unwrap().is_none());
        // What some editors call Unicode.
        for wrong in [&b"\xff\xfek\0e\0y\0"[..], &[b'x'; 65 * 1024]] {
            let error = read(wrong).unwrap_err().to_string();
            let begin = format!("--key-file {}: ", file.display());
            assert!(error.starts_with(&begin), "{error}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
        let error = secret_file("--key-file", &file).unwrap_err();
        assert!(error.why.contains("os error"), "{error}");
    }

    #[test]
    fn an_unset_variable_is_none() {
        assert_eq!(variable("SWITCHBOARD_NO_SUCH_VARIABLE"), None);
        assert!(secret("SWITCHBOARD_NO_SUCH_VARIABLE").unwrap().is_none());
    }
}
