//! The files of an INPUT: [`plan`] checks, names and decodes them, [`save`] writes them,
//! [`with_reminder`] gives the agent their paths, and [`Uploads`] has those of all sessions.
//!
//! Everything is checked before a run starts, so that the session can be used after a refusal.
//! Images are not files: they go to the model unchanged.

#[cfg(feature = "server")]
mod folder;
mod name;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use rpc_core::DecodeError;
use rpc_core::json::DecodeErrorKind;

use crate::frame::Attachment;
use crate::limits::{MAX_FILE_BYTES, MAX_FILES};

#[cfg(feature = "server")]
pub(crate) use folder::{Sender, Uploads};

const MIB: usize = 1024 * 1024;

/// Padding may be left out; everything else must be correct.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

rpc_core::config! {
    /// The bounds on files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UploadLimits {
        /// The largest number of files of one INPUT. Default [`MAX_FILES`].
        pub max_files: usize = MAX_FILES,
        /// The largest file in bytes, decoded. Default [`MAX_FILE_BYTES`].
        pub max_file_bytes: usize = MAX_FILE_BYTES,
        /// The bytes that the files of all sessions may take; those of one owner, and those from one
        /// address, a quarter. A file counts at least 4 KiB. Default 1 GiB.
        pub max_bytes: u64 = 1 << 30,
    }
}

/// A file ready to be written.
pub(crate) struct Saved {
    /// The name on the disk: unique, without a path, and harmless in a prompt.
    pub(crate) name: String,
    /// The contents.
    bytes: Vec<u8>,
}

/// Why files were refused. None is written. `Display` is the text of the ERROR. Names are shortened and
/// without control characters.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    #[error("Too many files: {count} (max: {max}). Increase max_files_per_request in host.yaml")]
    TooManyFiles { count: usize, max: usize },
    #[error(
        "File too large: {name} ({}MB, max: {}MB). Increase max_file_size in host.yaml",
        tenths(*size),
        mebibytes(*max)
    )]
    TooLarge {
        name: String,
        size: usize,
        max: usize,
    },
    /// The list is unreadable, or a file lacks a member.
    #[error("{}", unreadable(.0))]
    Unreadable(#[from] DecodeError),
    #[error("Invalid file name: {0:?}")]
    BadName(String),
    /// The contents are not valid base64.
    #[error("Invalid base64 data: {0}")]
    BadData(String),
    /// The files of the owner or address, or of all, take too much.
    #[error("files may take {max} bytes: delete a session with files, or try again later")]
    NoRoom { max: u64 },
    /// The system's error, which is for the log.
    #[error("the files were not saved: try again")]
    Io(#[from] io::Error),
}

impl UploadError {
    /// Returns whether the same files may be accepted later.
    pub(crate) const fn is_retryable(&self) -> bool {
        matches!(self, Self::NoRoom { .. } | Self::Io(_))
    }
}

/// Checks and decodes files. Sizes are those of the decoded contents.
///
/// The last part of a name is used. Characters that could mislead in a path, a terminal or a prompt
/// become `_`, and a long name is shortened in the middle. A number of 32 hexadecimal digits
/// precedes it, made from `unique`.
///
/// # Errors
/// [`UploadError`], for the first invalid file.
pub(crate) fn plan(
    files: &[Attachment],
    unique: u128,
    limits: &UploadLimits,
) -> Result<Vec<Saved>, UploadError> {
    let (count, max) = (files.len(), limits.max_files);
    if count > max {
        return Err(UploadError::TooManyFiles { count, max });
    }
    let numbers = (0..).map(|place: u128| unique.wrapping_add(place));
    let files = files.iter().zip(numbers);
    files
        .map(|(file, number)| plan_one(file, number, limits.max_file_bytes))
        .collect()
}

fn plan_one(file: &Attachment, number: u128, max: usize) -> Result<Saved, UploadError> {
    let shown = || name::printable(&file.name);
    let name = name::safe(&file.name).ok_or_else(|| UploadError::BadName(shown()))?;
    let encoded = contents(&file.data).ok_or_else(|| UploadError::BadData(shown()))?;
    let size = decoded_size(encoded);
    if size > max {
        let name = shown();
        return Err(UploadError::TooLarge { name, size, max });
    }
    let bytes = BASE64.decode(encoded);
    Ok(Saved {
        name: format!("{number:032x}_{name}"),
        bytes: bytes.map_err(|_| UploadError::BadData(shown()))?,
    })
}

/// Writes files to a folder, which is created if missing, and returns their paths in order. No file
/// is overwritten. On Unix only this user may read them. Blocks.
///
/// Pass an absolute folder: the paths are for the agent.
///
/// # Errors
/// The system's error; none of the files remains then. Retrying is safe.
pub(crate) fn save(folder: &Path, files: &[Saved]) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let mut paths = Vec::with_capacity(files.len());
    for file in files {
        let path = folder.join(&file.name);
        match create(&path, &mut paths).and_then(|mut to| to.write_all(&file.bytes)) {
            Ok(()) => {}
            Err(error) => {
                for path in &paths {
                    let _ = fs::remove_file(path);
                }
                return Err(error);
            }
        }
    }
    Ok(paths)
}

/// Creates a file, and adds it to `made`.
fn create(path: &Path, made: &mut Vec<PathBuf>) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    made.push(path.to_owned());
    Ok(file)
}

/// Returns the base64 of a data URL, or of a bare text.
fn contents(data: &str) -> Option<&str> {
    let is_url = data
        .get(..5)
        .is_some_and(|it| it.eq_ignore_ascii_case("data:"));
    if !is_url {
        return Some(data);
    }
    let (head, encoded) = data.split_once(',')?;
    let (_, encoding) = head.rsplit_once(';')?;
    let is_base64 = encoding.trim_ascii().eq_ignore_ascii_case("base64");
    is_base64.then_some(encoded)
}

/// Returns the decoded size of a base64 text, before any memory is allocated for it.
fn decoded_size(encoded: &str) -> usize {
    let digits = encoded.trim_end_matches('=').len();
    digits / 4 * 3 + (digits % 4).saturating_sub(1)
}

/// How the reminder begins.
const REMINDER: &str = "\n\n<system-reminder>The user uploaded the following files:\n";

/// Returns the prompt followed by the paths of the files, for the agent to read; without files, the
/// prompt.
pub(crate) fn with_reminder(prompt: &str, paths: &[String]) -> String {
    if paths.is_empty() {
        return prompt.to_owned();
    }
    let list: String = paths.iter().map(|path| format!("- {path}\n")).collect();
    format!(
        "{prompt}{REMINDER}{list}Use your \
         read_file tool or other available tools to read the file contents before responding. Do \
         not assume or guess the contents.</system-reminder>"
    )
}

/// Returns what the user has written of such a prompt.
pub(crate) fn without_reminder(prompt: &str) -> &str {
    let end = prompt.rfind(REMINDER).unwrap_or(prompt.len());
    prompt.get(..end).unwrap_or(prompt)
}

/// Returns the words for an unreadable list: the known hosts only name the missing member.
fn unreadable(error: &DecodeError) -> String {
    match error.kind() {
        DecodeErrorKind::MissingMember(member) => format!("'{member}'"),
        kind => format!("Invalid files: {kind}"),
    }
}

/// Returns mebibytes with one decimal, rounded: `1.0`.
fn tenths(bytes: usize) -> String {
    let tenths = (bytes as u128 * 10 + MIB as u128 / 2) / MIB as u128;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// Returns mebibytes, with a decimal only if it is not zero.
fn mebibytes(bytes: usize) -> String {
    if bytes.is_multiple_of(MIB) {
        (bytes / MIB).to_string()
    } else {
        tenths(bytes)
    }
}
