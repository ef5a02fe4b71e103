//! The files of an INPUT: [`plan`] checks, names and decodes them, [`save`] writes them, and
//! [`with_reminder`] tells the agent their paths.
//!
//! Everything is checked before a run starts, so that the session can be used after a refusal.
//! Images are not files: they go to the model unchanged.
//!
//! ```
//! use connectonion_proto::frame::Attachment;
//! use connectonion_proto::upload::{UploadLimits, plan, with_reminder};
//!
//! let (name, data) = ("../../etc/evil name.txt", "data:text/plain;base64,YmFyZQ==");
//! let files = plan(&[Attachment::new(name, data)], 0x5eed, &UploadLimits::default())?;
//! assert_eq!(files[0].name, "00000000000000000000000000005eed_evil name.txt");
//! assert_eq!(files[0].bytes, b"bare");
//!
//! let prompt = with_reminder("read", ["/srv/.co/uploads/evil name.txt"]);
//! assert!(prompt.starts_with("read\n\n<system-reminder>The user uploaded the following files:\n- /srv"));
//! # Ok::<(), connectonion_proto::upload::UploadError>(())
//! ```

mod name;
mod save;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use rpc_core::DecodeError;
use rpc_core::json::DecodeErrorKind;

pub use save::save;

use crate::frame::Attachment;
use crate::limits::{MAX_FILE_BYTES, MAX_FILES};

const MIB: usize = 1024 * 1024;

/// Padding may be left out; everything else must be correct.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

rpc_core::config! {
    /// The bounds on the files of one INPUT.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct UploadLimits {
        /// The largest number of files. Default [`MAX_FILES`].
        pub max_files: usize = MAX_FILES => with_max_files,
        /// The largest file in bytes, decoded. Default [`MAX_FILE_BYTES`].
        pub max_file_bytes: usize = MAX_FILE_BYTES => with_max_file_bytes,
    }
}

/// A file ready to be written.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Saved {
    /// The name on the disk: unique, without a path, and harmless in a prompt.
    pub name: String,
    /// The contents.
    pub bytes: Vec<u8>,
}

/// Prints the size only: files are private.
impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Saved({} bytes)", self.bytes.len())
    }
}

/// Why files were refused. None is written. `Display` is the text of the ERROR. Sending the same
/// files again fails again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct UploadError(Refusal);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    /// There are more files than allowed.
    #[error("Too many files: {count} (max: {max}). Increase max_files_per_request in host.yaml")]
    TooManyFiles {
        /// The number of files.
        count: usize,
        /// The limit.
        max: usize,
    },
    /// A file is larger than allowed.
    #[error(
        "File too large: {name} ({}MB, max: {}MB). Increase max_file_size in host.yaml",
        tenths(*size),
        mebibytes(*max)
    )]
    TooLarge {
        /// Its original name, shortened and without control characters.
        name: String,
        /// Its size in bytes, decoded.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The list is unreadable, or a file lacks a member.
    #[error("{}", unreadable(.0))]
    Unreadable(DecodeError),
    /// The name is not that of a file.
    #[error("Invalid file name: {name:?}")]
    BadName {
        /// The name, shortened and without control characters.
        name: String,
    },
    /// The contents are not valid base64.
    #[error("Invalid base64 data: {name}")]
    BadData {
        /// Its original name, shortened and without control characters.
        name: String,
    },
}

impl From<DecodeError> for UploadError {
    fn from(error: DecodeError) -> Self {
        Self(Refusal::Unreadable(error))
    }
}

/// Checks and decodes files. Sizes are those of the decoded contents.
///
/// The last part of a name is used. Characters that could mislead in a path, a terminal or a prompt
/// become `_`, and a long name is shortened in the middle. A number of 32 hexadecimal digits
/// precedes it, made from `unique`, which should be 128 random bits.
///
/// # Errors
/// [`UploadError`], for the first invalid file.
pub fn plan(
    files: &[Attachment],
    unique: u128,
    limits: &UploadLimits,
) -> Result<Vec<Saved>, UploadError> {
    let (count, max) = (files.len(), limits.max_files);
    if count > max {
        return Err(UploadError(Refusal::TooManyFiles { count, max }));
    }
    let numbers = (0..).map(|place: u128| unique.wrapping_add(place));
    let files = files.iter().zip(numbers);
    let plan = |(file, number): (&Attachment, u128)| {
        plan_one(&file.name, &file.data, number, limits.max_file_bytes)
    };
    let files: Result<_, _> = files.map(plan).collect();
    files.map_err(UploadError)
}

fn plan_one(sent: &str, data: &str, number: u128, max: usize) -> Result<Saved, Refusal> {
    let name = name::safe(sent).ok_or_else(|| Refusal::BadName {
        name: name::shown(sent),
    })?;
    let bad_data = || Refusal::BadData {
        name: name::shown(sent),
    };
    let encoded = contents(data).ok_or_else(bad_data)?;
    let size = decoded_size(encoded);
    if size > max {
        return Err(Refusal::TooLarge {
            name: name::shown(sent),
            size,
            max,
        });
    }
    let bytes = BASE64.decode(encoded).map_err(|_| bad_data())?;
    Ok(Saved {
        name: name::unique(number, &name),
        bytes,
    })
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
    encoding
        .trim_ascii()
        .eq_ignore_ascii_case("base64")
        .then_some(encoded)
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
pub fn with_reminder<P: fmt::Display>(prompt: &str, paths: impl IntoIterator<Item = P>) -> String {
    let list: String = paths
        .into_iter()
        .map(|path| format!("- {path}\n"))
        .collect();
    if list.is_empty() {
        return prompt.to_owned();
    }
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
