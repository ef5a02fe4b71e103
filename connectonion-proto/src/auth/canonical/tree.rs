//! [`Value`]: a parsed JSON text, whose parts borrow from the text.

use std::cmp::Ordering;
use std::fmt;

use rpc_core::json::DecodeErrorKind;
use rpc_core::{DecodeError, Json, Limits};

use super::points::{Points, by_points};

/// The maximum depth. Values are read by recursion, so it is bounded whatever the limits say.
const DEEPEST: usize = 128;

/// A JSON value.
pub(crate) enum Value<'a> {
    /// `true`, `false` or `null`.
    Word(&'a str),
    /// The text of a number.
    Number(&'a str),
    /// The text between the quotation marks.
    Text(&'a str),
    List(Vec<Value<'a>>),
    /// The members in the order received; no name comes twice.
    Object(Vec<Member<'a>>),
}

/// A member of an object.
pub(crate) struct Member<'a> {
    /// The text between the quotation marks of its name.
    pub(crate) name: &'a str,
    /// The text of its value.
    pub(crate) text: &'a str,
    pub(crate) value: Value<'a>,
}

/// Prints nothing: payloads carry prompts and invite codes.
impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// Returns whether a name, given as the text between its quotation marks, is this one.
pub(crate) fn same_name(quoted: &str, name: &str) -> bool {
    if quoted.contains('\\') {
        Points::of(quoted).eq(name.chars().map(u32::from))
    } else {
        quoted == name
    }
}

impl<'a> Value<'a> {
    pub(super) fn read(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        // From here on the text is JSON, and only its nesting and size can be wrong.
        Json::new(text)?;
        let mut walk = Walk {
            text,
            at: 0,
            values: 0,
            most: limits.max_items,
            deepest: limits.max_depth.min(DEEPEST),
        };
        walk.value(0)
    }
}

/// A position in a text that is JSON.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// The number of values read.
    values: usize,
    most: usize,
    deepest: usize,
}

impl<'a> Walk<'a> {
    fn value(&mut self, depth: usize) -> Result<Value<'a>, DecodeError> {
        self.values += 1;
        if self.values > self.most {
            let max = self.most;
            return Err(DecodeError::new(DecodeErrorKind::TooManyItems { max }));
        }
        match self.token() {
            Some(b'"') => self.quoted().map(Value::Text),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.list(depth + 1),
            Some(b'-' | b'0'..=b'9') => Ok(Value::Number(self.word())),
            Some(_) => Ok(Value::Word(self.word())),
            None => Err(syntax()),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value<'a>, DecodeError> {
        let mut items = Vec::new();
        self.items(depth, b']', |walk| {
            items.push(walk.value(depth)?);
            Ok(())
        })?;
        Ok(Value::List(items))
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, DecodeError> {
        let mut members = Vec::new();
        self.items(depth, b'}', |walk| {
            if walk.token() != Some(b'"') {
                return Err(syntax());
            }
            let name = walk.quoted()?;
            walk.token();
            walk.at += 1;
            walk.token();
            let start = walk.at;
            let value = walk.value(depth)?;
            let text = walk.text.get(start..walk.at).ok_or_else(syntax)?;
            members.push(Member { name, text, value });
            Ok(())
        })?;
        let mut names: Vec<_> = members.iter().map(|member| member.name).collect();
        names.sort_by(|a, b| by_points(a, b));
        if !names.is_sorted_by(|a, b| by_points(a, b) == Ordering::Less) {
            // Names may be secret.
            return Err(DecodeError::new(DecodeErrorKind::DuplicateMember("…")));
        }
        Ok(Value::Object(members))
    }

    /// Reads the items between two brackets with `item`.
    fn items(
        &mut self,
        depth: usize,
        end: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if depth > self.deepest {
            let max = self.deepest;
            return Err(DecodeError::new(DecodeErrorKind::TooDeep { max }));
        }
        self.at += 1;
        if self.token() == Some(end) {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            let delimiter = self.token().ok_or_else(syntax)?;
            self.at += 1;
            if delimiter == end {
                return Ok(());
            }
        }
    }

    /// Returns the next byte that is not white space.
    fn token(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let space = rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.at += space;
        rest.get(space).copied()
    }

    /// Reads the text between the quotation mark here and the next one.
    fn quoted(&mut self) -> Result<&'a str, DecodeError> {
        let rest = self.text.get(self.at + 1..).ok_or_else(syntax)?;
        let mut escaped = false;
        let end = rest.bytes().position(|byte| {
            let is_end = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            is_end
        });
        let inner = end.and_then(|end| rest.get(..end)).ok_or_else(syntax)?;
        self.at += inner.len() + 2;
        Ok(inner)
    }

    /// Reads a number, `true`, `false` or `null`.
    fn word(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |byte: u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
        let end = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }
}

/// The error for a syntax error, which does not occur: the text was checked before.
fn syntax() -> DecodeError {
    DecodeError::new(DecodeErrorKind::Syntax)
}
