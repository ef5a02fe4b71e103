//! [`DecodeError`]: where and why a text is no frame, without its contents.

use std::fmt;

use serde_json::error::Category;

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

    /// Names the member around everything that the path holds so far. A value of the wrong type
    /// whose member was not known is this member's.
    #[must_use]
    pub fn under(mut self, member: &'static str) -> Self {
        if let Some(expected) = self.0.expected.take() {
            self.0.kind = DecodeErrorKind::WrongType { member, expected };
        }
        self.0.path.insert(0, member);
        self
    }

    /// Moves line and column of an error in `part` to where they are in `whole`. No change if
    /// `part` is not a piece of `whole`.
    #[must_use]
    pub fn within(mut self, whole: &str, part: &str) -> Self {
        let Some(offset) = offset_in(whole, part) else {
            return self;
        };
        let before = whole.get(..offset).unwrap_or_default();
        let (line, column) = position(before);
        if self.0.line == 1 {
            self.0.column += column - 1;
        }
        self.0.line += line - 1;
        self
    }

    /// Says what a value should have been whose member is not known here.
    pub(super) fn expecting(mut self, expected: &'static str) -> Self {
        if self.0.kind == DecodeErrorKind::Mismatch {
            self.0.expected.get_or_insert(expected);
        }
        self
    }

    /// Places the error at a byte of the text.
    pub(super) fn locate(mut self, text: &str, at: usize) -> Self {
        (self.0.line, self.0.column) = position(text.get(..at).unwrap_or_default());
        self.0.excerpt = excerpt(text, at);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (line {}, column {}",
            self.0.kind, self.0.line, self.0.column
        )?;
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

/// An error of `serde_json`, which carries only words.
pub(super) fn from_parser(error: &serde_json::Error, text: &str) -> DecodeError {
    let kind = match error.classify() {
        Category::Data => DecodeErrorKind::Mismatch,
        // The parser has no kind for this, only words.
        _ if error.to_string().starts_with("recursion limit") => DecodeErrorKind::TooDeep {
            max: super::PARSER_DEPTH,
        },
        _ => DecodeErrorKind::Syntax,
    };
    let (line, column) = (error.line().max(1), error.column().max(1));
    let mut error = DecodeError::new(kind);
    (error.0.line, error.0.column) = (line, column);
    error.0.excerpt = excerpt(text, byte_at(text, line, column));
    error
}

/// Where `part` starts in `whole`, if it is a piece of it.
pub(super) fn offset_in(whole: &str, part: &str) -> Option<usize> {
    let offset = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (offset.checked_add(part.len())? <= whole.len()).then_some(offset)
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

fn byte_at(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line - 1)
        .map(str::len)
        .sum();
    (start + column - 1).min(text.len())
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
