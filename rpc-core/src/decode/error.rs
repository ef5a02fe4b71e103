//! [`DecodeError`]: where and why a text is no frame, without its contents.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde_json::error::Category;

/// How much of the text around the fault the excerpt looks at, in characters each way.
const EXCERPT_REACH: usize = 24;

/// Why a text is no frame. Decoding the same text again fails again.
///
/// Holds nothing of the text's values: frames carry passwords and private text. The
/// [excerpt](Self::excerpt) keeps punctuation only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    kind: DecodeErrorKind,
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
        Self {
            kind,
            line: 1,
            column: 1,
            frame: None,
            path: Vec::new(),
            excerpt: Box::default(),
        }
    }

    /// A member is absent.
    #[must_use]
    pub fn missing(member: &'static str) -> Self {
        Self::new(DecodeErrorKind::MissingMember(member))
    }

    /// A member is not `expected` (with its article: "a string").
    #[must_use]
    pub fn wrong_type(member: &'static str, expected: &'static str) -> Self {
        let error = Self::new(DecodeErrorKind::WrongType { member, expected });
        Self {
            path: vec![member],
            ..error
        }
    }

    /// A member has a value that the protocol does not allow.
    #[must_use]
    pub fn bad_value(member: &'static str, expected: &'static str) -> Self {
        let error = Self::new(DecodeErrorKind::BadValue { member, expected });
        Self {
            path: vec![member],
            ..error
        }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// The line of the fault, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The column of the fault in bytes, counted from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// The kind of frame that it happened in, if that was known by then.
    #[must_use]
    pub const fn frame(&self) -> Option<&'static str> {
        self.frame
    }

    /// The known members around the fault, outermost first.
    #[must_use]
    pub fn path(&self) -> &[&'static str] {
        &self.path
    }

    /// The shape of the text around the fault: punctuation is kept, every run of anything else is
    /// one `…`. Empty where no place is known.
    #[must_use]
    pub fn excerpt(&self) -> &str {
        &self.excerpt
    }

    /// Names the kind of frame that it happened in.
    #[must_use]
    pub const fn in_frame(mut self, frame: &'static str) -> Self {
        self.frame = Some(frame);
        self
    }

    /// Names the member around everything that the path holds so far.
    #[must_use]
    pub fn under(mut self, member: &'static str) -> Self {
        self.path.insert(0, member);
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
        if self.line == 1 {
            self.column += column - 1;
        }
        self.line += line - 1;
        self
    }

    /// Places the error at a byte of the text.
    pub(super) fn locate(mut self, text: &str, at: usize) -> Self {
        (self.line, self.column) = position(text.get(..at).unwrap_or_default());
        self.excerpt = excerpt(text, at);
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (line {}, column {}",
            self.kind, self.line, self.column
        )?;
        if let Some(frame) = self.frame {
            write!(f, ", in `{frame}`")?;
        }
        let mut separator = ", at ";
        for member in &self.path {
            write!(f, "{separator}{member}")?;
            separator = ".";
        }
        if !self.excerpt.is_empty() {
            write!(f, ", near {}", self.excerpt)?;
        }
        f.write_str(")")
    }
}

impl std::error::Error for DecodeError {}

/// What the helpers know about a failure; `serde_json`'s own error only carries words.
#[derive(Debug, Default)]
pub(super) struct Notes {
    kind: Cell<Option<DecodeErrorKind>>,
    expected: Cell<Option<(&'static str, &'static str)>>,
    path: RefCell<Vec<&'static str>>,
}

impl Notes {
    /// Fails with a kind of our own.
    pub(super) fn fail<E: serde::de::Error>(&self, kind: DecodeErrorKind) -> E {
        self.kind.set(Some(kind));
        E::custom(kind)
    }

    /// A member's value failed; its own members may have been noted before.
    pub(super) fn failed_in(&self, member: &'static str, expected: &'static str) {
        if self.expected.get().is_none() {
            self.expected.set(Some((member, expected)));
        }
        self.path.borrow_mut().insert(0, member);
    }

    pub(super) fn explain(self, error: &serde_json::Error, text: &str) -> DecodeError {
        let kind = match (self.kind.get(), error.classify()) {
            (Some(kind), _) => kind,
            (None, Category::Data) => match self.expected.get() {
                Some((member, expected)) => DecodeErrorKind::WrongType { member, expected },
                None => DecodeErrorKind::Mismatch,
            },
            // The parser has no kind for this, only words.
            _ if error.to_string().starts_with("recursion limit") => DecodeErrorKind::TooDeep {
                max: super::PARSER_DEPTH,
            },
            _ => DecodeErrorKind::Syntax,
        };
        let (line, column) = (error.line().max(1), error.column().max(1));
        DecodeError {
            kind,
            line,
            column,
            frame: None,
            path: self.path.into_inner(),
            excerpt: excerpt(text, byte_at(text, line, column)),
        }
    }
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
