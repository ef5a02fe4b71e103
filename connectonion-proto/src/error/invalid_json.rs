//! [`InvalidJson`]: where and why a text is not JSON, in the words of Python's parser.

use std::fmt;

use rpc_core::DecodeError;

/// Where and why a text is not JSON. `Display` is the reply of the known hosts: `Invalid JSON:
/// Expecting value at line 2 col 10 (pos 11)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidJson {
    /// What is wrong.
    pub message: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The position in characters, from 0.
    pub position: usize,
}

impl InvalidJson {
    /// Parses a text as Python's `json` module does, which accepts slightly more than JSON (`NaN`,
    /// `Infinity`, halves of surrogates). Returns `None` if it finds no error.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let mut scan = Scan {
            bytes: text.as_bytes(),
            at: 0,
        };
        let fault = match text.starts_with('\u{feff}') {
            true => Err(Fault("Unexpected UTF-8 BOM (decode using utf-8-sig)", 0)),
            false => scan.document(),
        };
        fault.err().map(|Fault(what, at)| Self::new(what, text, at))
    }

    /// Creates the error at the place where this crate's parser stopped.
    pub(super) fn at(text: &str, error: &DecodeError) -> Self {
        let lines = text.split_inclusive('\n').take(error.line() - 1);
        let start: usize = lines.map(str::len).sum();
        Self::new(EXPECTING_VALUE, text, start + error.column() - 1)
    }

    fn new(message: &'static str, text: &str, at: usize) -> Self {
        // The place may be within a character.
        let at = (0..=at.min(text.len())).rev();
        let before = at.filter_map(|at| text.get(..at)).next();
        let before = before.unwrap_or_default();
        let last_line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            message,
            line: 1 + before.bytes().filter(|byte| *byte == b'\n').count(),
            column: 1 + last_line.chars().count(),
            position: before.chars().count(),
        }
    }
}

impl fmt::Display for InvalidJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Invalid JSON: {} at line {} col {} (pos {})",
            self.message, self.line, self.column, self.position
        )
    }
}

const EXPECTING_VALUE: &str = "Expecting value";
const EXPECTING_NAME: &str = "Expecting property name enclosed in double quotes";
const EXPECTING_COLON: &str = "Expecting ':' delimiter";
const EXPECTING_COMMA: &str = "Expecting ',' delimiter";
const UNTERMINATED: &str = "Unterminated string starting at";
const CONTROL: &str = "Invalid control character at";
const ESCAPE: &str = "Invalid \\escape";
const UNICODE: &str = "Invalid \\uXXXX escape";

/// What is wrong, and at which byte.
struct Fault(&'static str, usize);

type Scanned = Result<(), Fault>;

/// An open container around a value.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Object,
    Array,
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn document(&mut self) -> Scanned {
        self.space();
        self.value()?;
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Fault("Extra data", self.at)),
        }
    }

    /// Parses a value of any depth, without recursion.
    fn value(&mut self) -> Scanned {
        let mut open = Vec::new();
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b'}') {
                        self.name()?;
                        open.push(Open::Object);
                        continue;
                    }
                    self.at += 1;
                }
                Some(b'[') => {
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b']') {
                        open.push(Open::Array);
                        continue;
                    }
                    self.at += 1;
                }
                _ => self.scalar()?,
            }
            // What follows a value: the end of containers, then a comma.
            loop {
                let Some(container) = open.last() else {
                    return Ok(());
                };
                self.space();
                match (self.peek(), container) {
                    (Some(b'}'), Open::Object) | (Some(b']'), Open::Array) => {
                        open.pop();
                        self.at += 1;
                    }
                    (Some(b','), container) => {
                        let is_object = *container == Open::Object;
                        self.at += 1;
                        self.space();
                        if is_object {
                            self.name()?;
                        }
                        break;
                    }
                    _ => return Err(Fault(EXPECTING_COMMA, self.at)),
                }
            }
        }
    }

    /// Parses a member's name, up to its value.
    fn name(&mut self) -> Scanned {
        if self.peek() != Some(b'"') {
            return Err(Fault(EXPECTING_NAME, self.at));
        }
        self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return Err(Fault(EXPECTING_COLON, self.at));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn scalar(&mut self) -> Scanned {
        const WORDS: [&[u8]; 6] = [
            b"null",
            b"true",
            b"false",
            b"NaN",
            b"Infinity",
            b"-Infinity",
        ];
        if self.peek() == Some(b'"') {
            return self.string();
        }
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let word = WORDS.iter().find(|word| rest.starts_with(word));
        let len = word.map_or_else(|| number(rest), |word| Some(word.len()));
        self.at += len.ok_or(Fault(EXPECTING_VALUE, self.at))?;
        Ok(())
    }

    /// Parses a string, from its opening quotation mark on.
    fn string(&mut self) -> Scanned {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(Fault(UNTERMINATED, start)),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape(start)?,
                Some(0..=0x1f) => return Err(Fault(CONTROL, self.at)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self, start: usize) -> Scanned {
        let backslash = self.at;
        self.at += 1;
        match self.peek() {
            None => Err(Fault(UNTERMINATED, start)),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.bytes.get(self.at + 1..self.at + 5);
                // A string cannot end with the digits.
                let ends = self.bytes.len() <= self.at + 5;
                match digits {
                    Some(digits) if !ends && digits.iter().all(u8::is_ascii_hexdigit) => {
                        self.at += 5;
                        Ok(())
                    }
                    _ => Err(Fault(UNICODE, backslash + 1)),
                }
            }
            Some(_) => Err(Fault(ESCAPE, backslash)),
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }
}

/// Returns the length of the number at the start of `rest`. A fraction or an exponent without
/// digits does not belong to it.
fn number(rest: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = rest.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let start = usize::from(rest.first() == Some(&b'-'));
    let mut end = start
        + match rest.get(start) {
            Some(b'0') => 1,
            Some(b'1'..=b'9') => digits(start),
            _ => return None,
        };
    if rest.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some(end)
}
