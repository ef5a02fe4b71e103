//! [`DecodeError`]: where and why a text is no frame, without its contents.

use std::fmt;

use serde::de::{Expected, Unexpected};

/// How much of the text around the fault the excerpt looks at, in characters each way.
const EXCERPT_REACH: usize = 24;

/// Why a text is no frame. Decoding the same text again fails again.
///
/// Holds nothing of the text's values: frames carry passwords and private text. The
/// [excerpt](Self::excerpt) keeps punctuation only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(Box<Fault>);

/// Boxed, so that reading what is right carries one word for what may be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    kind: DecodeErrorKind,
    /// What the value should have been, until its member is known.
    expected: Option<&'static str>,
    /// In the words of the type that was read, where `kind` has none.
    message: Option<Box<str>>,
    /// The value is null, which counts as absent.
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
    /// A value that has to be parsed is nested too deeply.
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
    /// A frame is one JSON object; this is something else.
    #[error("not a JSON object")]
    NotAnObject,
    /// The message is not text.
    #[error("a binary message, where only text is allowed")]
    Binary,
    /// Not JSON, or JSON that ends too early.
    #[error("not valid JSON")]
    Syntax,
    /// A known member comes twice.
    #[error("member `{0}` comes twice")]
    DuplicateMember(&'static str),
    /// A member that the frame cannot do without is absent or null.
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
    /// A member has the right type and a value that the protocol does not allow.
    #[error("member `{member}` is not {expected}")]
    BadValue {
        /// The member.
        member: &'static str,
        /// What it should be, with its article.
        expected: &'static str,
    },
    /// A member that a strict frame does not know.
    #[error("an unknown member")]
    UnknownMember,
    /// The text parsed as JSON, but not as the type that was asked for.
    #[error("not the expected value")]
    Mismatch,
}

impl DecodeError {
    /// An error of this kind at the start of the text.
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

    /// A member is absent.
    #[must_use]
    pub fn missing(member: &'static str) -> Self {
        Self::new(DecodeErrorKind::MissingMember(member))
    }

    /// A member is not `expected` (with its article: "a string").
    #[must_use]
    pub fn wrong_type(member: &'static str, expected: &'static str) -> Self {
        Self::new(DecodeErrorKind::WrongType { member, expected }).under(member)
    }

    /// A member has a value that the protocol does not allow.
    #[must_use]
    pub fn bad_value(member: &'static str, expected: &'static str) -> Self {
        Self::new(DecodeErrorKind::BadValue { member, expected }).under(member)
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> DecodeErrorKind {
        self.0.kind
    }

    /// The line of the fault, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.0.line
    }

    /// The column of the fault in bytes, counted from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.0.column
    }

    /// The kind of frame that it happened in, if that was known by then.
    #[must_use]
    pub const fn frame(&self) -> Option<&'static str> {
        self.0.frame
    }

    /// The known members around the fault, outermost first.
    #[must_use]
    pub fn path(&self) -> &[&'static str] {
        &self.0.path
    }

    /// The shape of the text around the fault: punctuation is kept, every run of anything else is
    /// one `…`. Empty where no place is known.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        &self.0.excerpt
    }

    /// Names the kind of frame that it happened in.
    #[must_use]
    pub const fn in_frame(mut self, frame: &'static str) -> Self {
        self.0.frame = Some(frame);
        self
    }

    /// Says more exactly what is wrong, at the same place.
    #[must_use]
    pub const fn with_kind(mut self, kind: DecodeErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Names the member around everything that the path holds so far. A value of the wrong type
    /// whose member was not known is this member's.
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

    /// The value is null, which counts as absent.
    #[cold]
    pub(super) fn null(mut self) -> Self {
        self.0.is_null = true;
        self
    }

    /// Says what a value should have been whose member is not known here.
    pub(super) fn expecting(mut self, expected: &'static str) -> Self {
        if self.0.kind == DecodeErrorKind::Mismatch {
            self.0.message = None;
            self.0.expected.get_or_insert(expected);
        }
        self
    }

    /// Places the error at a byte of the text, unless it has a place.
    #[cold]
    pub(super) fn locate_once(self, text: &str, at: usize) -> Self {
        if self.0.is_located {
            return self;
        }
        self.locate(text, at)
    }

    /// Places the error at a byte of the text.
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

/// What a type says that is read by `serde`. Its own words (`custom`) should say what the value has to
/// be and nothing of what it is.
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
    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("expected {expected}"))
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

/// Line and column, from 1, of what comes after `before`.
fn position(before: &str) -> (usize, usize) {
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    let column = 1 + before
        .bytes()
        .rev()
        .take_while(|byte| *byte != b'\n')
        .count();
    (line, column)
}

/// Punctuation of the text around byte `at`, with every run of anything else as one `…`.
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
