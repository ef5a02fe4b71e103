//! [`DecodeError`]: where and why text does not decode, without its contents.

use std::fmt;

use serde::de::{Expected, Unexpected};

/// How many characters around the error the excerpt covers in each direction.
const EXCERPT_REACH: usize = 24;

/// Why text does not decode. Decoding the same text again fails again.
///
/// Contains no values of the text, because frames carry passwords and private text. The
/// excerpt keeps punctuation only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(Box<Fault>);

/// Boxed, so that the success path carries one word only.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    kind: DecodeErrorKind,
    /// What the value should be, until its member is known.
    expected: Option<&'static str>,
    /// The error text of the type that was read, where `kind` has none.
    message: Option<Box<str>>,
    /// The value is null, which counts as missing.
    is_null: bool,
    is_located: bool,
    line: usize,
    column: usize,
    frame: Option<&'static str>,
    path: Vec<&'static str>,
    excerpt: Box<str>,
}

/// What is wrong with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The message is larger than the limit.
    #[error("{size} bytes are more than the limit of {max}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// A value that must be parsed is nested too deeply.
    #[error("nested more than {max} levels deep")]
    TooDeep {
        /// The limit.
        max: usize,
    },
    /// A list has too many items.
    #[error("a list has more than {max} items")]
    TooManyItems {
        /// The limit.
        max: usize,
    },
    /// The text is not a JSON object.
    #[error("not a JSON object")]
    NotAnObject,
    /// The message is not text.
    #[error("a binary message, where only text is allowed")]
    Binary,
    /// The text is not JSON, or ends too early.
    #[error("not valid JSON")]
    Syntax,
    /// A known member appears twice.
    #[error("member `{0}` comes twice")]
    DuplicateMember(&'static str),
    /// A required member is missing or null.
    #[error("member `{0}` is missing")]
    MissingMember(&'static str),
    /// A member has a value of the wrong type.
    #[error("member `{member}` is not {expected}")]
    WrongType {
        /// The member.
        member: &'static str,
        /// What it should be, with its article.
        expected: &'static str,
    },
    /// A member has the right type but a value that the protocol does not allow.
    #[error("member `{member}` is not {expected}")]
    BadValue {
        /// The member.
        member: &'static str,
        /// What it should be, with its article.
        expected: &'static str,
    },
    /// A strict frame has an unknown member.
    #[error("an unknown member")]
    UnknownMember,
    /// The text is JSON, but not a value of the requested type.
    #[error("not the expected value")]
    Mismatch,
}

impl DecodeError {
    /// Creates an error of this kind at the start of the text.
    #[must_use]
    pub fn new(kind: DecodeErrorKind) -> Self {
        Self(Box::new(Fault {
            kind,
            expected: None,
            message: None,
            is_null: false,
            is_located: false,
            line: 1,
            column: 1,
            frame: None,
            path: Vec::new(),
            excerpt: Box::default(),
        }))
    }

    /// Creates an error for a missing member.
    #[must_use]
    pub fn missing(member: &'static str) -> Self {
        Self::new(DecodeErrorKind::MissingMember(member))
    }

    /// Creates an error for a member that is not `expected` (with its article: "a string").
    #[must_use]
    pub fn wrong_type(member: &'static str, expected: &'static str) -> Self {
        Self::new(DecodeErrorKind::WrongType { member, expected }).under(member)
    }

    /// Creates an error for a member with a value that the protocol does not allow.
    #[must_use]
    pub fn bad_value(member: &'static str, expected: &'static str) -> Self {
        Self::new(DecodeErrorKind::BadValue { member, expected }).under(member)
    }

    /// Returns what is wrong.
    #[must_use]
    pub const fn kind(&self) -> DecodeErrorKind {
        self.0.kind
    }

    /// Returns the line of the error, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.0.line
    }

    /// Returns the column of the error in bytes, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.0.column
    }

    /// Returns the kind of the frame, if it was known.
    #[must_use]
    pub const fn frame(&self) -> Option<&'static str> {
        self.0.frame
    }

    /// Returns the known members around the error, outermost first.
    #[must_use]
    pub fn path(&self) -> &[&'static str] {
        &self.0.path
    }

    /// Sets the kind of the frame.
    #[must_use]
    pub const fn in_frame(mut self, frame: &'static str) -> Self {
        self.0.frame = Some(frame);
        self
    }

    /// Replaces the kind with a more exact one, at the same place.
    #[must_use]
    pub const fn with_kind(mut self, kind: DecodeErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Adds an outer member to the path. If the error is a wrong type without a member, it becomes
    /// an error of this member.
    #[must_use]
    pub fn under(mut self, member: &'static str) -> Self {
        if std::mem::take(&mut self.0.is_null) {
            self.0.expected = None;
            self.0.kind = DecodeErrorKind::MissingMember(member);
            return self;
        }
        if let Some(expected) = self.0.expected.take() {
            self.0.kind = DecodeErrorKind::WrongType { member, expected };
        } else if self.0.kind == DecodeErrorKind::Mismatch && self.0.message.is_some() {
            let expected = "valid";
            self.0.kind = DecodeErrorKind::BadValue { member, expected };
        }
        self.0.path.insert(0, member);
        self
    }

    /// Marks the value as null, which counts as missing.
    #[cold]
    pub(super) fn null(mut self) -> Self {
        self.0.is_null = true;
        self
    }

    /// Sets what the value should be, for a member that is not known yet.
    pub(super) fn expecting(mut self, expected: &'static str) -> Self {
        if self.0.kind == DecodeErrorKind::Mismatch {
            self.0.message = None;
            self.0.expected.get_or_insert(expected);
        }
        self
    }

    /// Sets the place to a byte of the text, unless the error has a place.
    #[cold]
    pub(super) fn locate_once(self, text: &str, at: usize) -> Self {
        if self.0.is_located {
            return self;
        }
        self.locate(text, at)
    }

    /// Sets the place to a byte of the text.
    pub(super) fn locate(mut self, text: &str, at: usize) -> Self {
        self.0.is_located = true;
        (self.0.line, self.0.column) = position(text.get(..at).unwrap_or_default());
        self.0.excerpt = excerpt(text, at);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.kind)?;
        if let Some(message) = &self.0.message {
            write!(f, ": {message}")?;
        }
        write!(f, " (line {}, column {}", self.0.line, self.0.column)?;
        if let Some(frame) = self.0.frame {
            write!(f, ", in `{frame}`")?;
        }
        let mut separator = ", at ";
        for member in &self.0.path {
            write!(f, "{separator}{member}")?;
            separator = ".";
        }
        if !self.0.excerpt.is_empty() {
            write!(f, ", near {}", self.0.excerpt)?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for DecodeError {}

/// The errors of types that are read with `serde`. A `custom` message should say what the value has
/// to be, and nothing about its contents.
impl serde::de::Error for DecodeError {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        let mut error = Self::new(DecodeErrorKind::Mismatch);
        error.0.message = Some(message.to_string().into_boxed_str());
        error
    }

    #[cold]
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}"))
    }

    #[cold]
    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    #[cold]
    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self::new(DecodeErrorKind::Mismatch).expecting("a known word")
    }

    #[cold]
    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::new(DecodeErrorKind::UnknownMember)
    }

    #[cold]
    fn missing_field(member: &'static str) -> Self {
        Self::missing(member)
    }

    #[cold]
    fn duplicate_field(member: &'static str) -> Self {
        Self::new(DecodeErrorKind::DuplicateMember(member))
    }
}

/// Returns line and column, from 1, of the position after `before`.
fn position(before: &str) -> (usize, usize) {
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    let in_line = before.bytes().rev().take_while(|byte| *byte != b'\n');
    (line, 1 + in_line.count())
}

/// Returns the punctuation around byte `at`, with every run of other characters as one `…`.
fn excerpt(text: &str, at: usize) -> Box<str> {
    let bytes = text.as_bytes();
    let from = at.saturating_sub(EXCERPT_REACH);
    let to = (at + EXCERPT_REACH).min(bytes.len());
    let mut shape = String::new();
    let mut hidden = from > 0;
    for byte in bytes.get(from..to).unwrap_or_default() {
        if matches!(byte, b'{' | b'}' | b'[' | b']' | b':' | b',' | b'"') {
            if std::mem::take(&mut hidden) {
                shape.push('…');
            }
            shape.push(char::from(*byte));
        } else if !byte.is_ascii_whitespace() {
            hidden = true;
        }
    }
    if hidden || to < bytes.len() {
        shape.push('…');
    }
    shape.into_boxed_str()
}
