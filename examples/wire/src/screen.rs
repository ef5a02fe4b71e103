//! [`Screen`]: a live view of a conversation, one line per frame.

pub mod acolyte;
pub mod connectonion;
pub mod exoclaw;
mod numbers;
pub(crate) mod recent;
pub mod smarthole;
pub mod snek;

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rpc_core::net::{Direction, Frame, FrameKind, Observer};
pub use rpc_core::text::is_control;

pub use numbers::Numbers;

/// The longest description of a frame, in characters.
const WIDTH: usize = 84;
/// How many bytes of a text are looked at together.
const BLOCK: usize = 32;
/// The width of names, in characters.
const NAME: usize = 6;

/// A colour of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// For minor details.
    Dim,
    /// For headings.
    Bold,
    /// Cyan.
    Cyan,
    /// Magenta.
    Magenta,
    /// Yellow.
    Yellow,
    /// Green.
    Green,
    /// Red.
    Red,
    /// Blue.
    Blue,
}

impl Colour {
    /// Returns a text in this colour, followed by a reset.
    #[must_use]
    pub fn paint(self, text: &str) -> String {
        let mut painted = String::with_capacity(text.len() + 9);
        self.begin(&mut painted);
        painted.push_str(text);
        Self::end(&mut painted);
        painted
    }

    /// Appends what begins this colour.
    pub fn begin(self, text: &mut String) {
        text.push_str("\x1b[");
        text.push_str(self.code());
        text.push('m');
    }

    /// Appends what ends any colour.
    pub fn end(text: &mut String) {
        text.push_str("\x1b[0m");
    }

    /// Returns its number in escape sequences.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Cyan => "36",
            Self::Magenta => "35",
            Self::Yellow => "33",
            Self::Green => "32",
            Self::Red => "31",
            Self::Blue => "34",
        }
    }
}

/// A describer of the frames of one protocol. One value gets the frames of a connection and of its
/// reconnects, so it can remember requests.
pub trait Describe: Send + 'static {
    /// Describes a frame, in which secrets are already replaced. `None` shows it as it is.
    fn describe(&mut self, direction: Direction, text: &str) -> Option<String>;
}

/// The output of lines, shared by all writers.
pub struct Screen {
    out: Mutex<Box<dyn Write + Send>>,
    colour: bool,
    /// The width of names, in characters.
    names: usize,
    start: Instant,
    frames: AtomicUsize,
}

impl Screen {
    /// Creates a screen that writes to `out`, with or without colours. Aligns names of up to 6
    /// characters.
    #[must_use]
    pub fn new(out: impl Write + Send + 'static, colour: bool) -> Arc<Self> {
        Self::with_names(out, colour, NAME)
    }

    /// Creates a screen like [`new`](Self::new) that aligns names of up to this many characters.
    #[must_use]
    pub fn with_names(out: impl Write + Send + 'static, colour: bool, names: usize) -> Arc<Self> {
        Arc::new(Self {
            out: Mutex::new(Box::new(out)),
            colour,
            names,
            start: Instant::now(),
            frames: AtomicUsize::new(0),
        })
    }

    /// Returns how many frames have been shown.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    /// Returns the seconds since the start.
    #[must_use]
    pub fn elapsed(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Begins a chapter.
    pub fn title(&self, text: &str) {
        let text = self.paint(Colour::Bold, text);
        self.write(format_args!("\n{text}\n"));
    }

    /// Explains what is seen.
    pub fn note(&self, text: &str) {
        let text = self.paint(Colour::Dim, text);
        self.write(format_args!("  {text}\n"));
    }

    /// Shows an event that is not a frame.
    pub fn event(&self, who: &str, colour: Colour, text: &str) {
        let time = self.time();
        let who = self.name(who, colour);
        let text = self.paint(Colour::Yellow, &printable(text));
        self.write(format_args!("{time} {who} * {text}\n"));
    }

    /// Returns an observer for the connection of the client `who`. `describe` knows the protocol:
    /// [`snek::Frames`], [`exoclaw::Frames`] and so on.
    #[must_use]
    pub fn observer(
        self: &Arc<Self>,
        who: &str,
        colour: Colour,
        describe: impl Describe,
    ) -> Arc<dyn Observer> {
        Arc::new(Wire {
            screen: Arc::clone(self),
            who: self.name(who, colour),
            describe: Mutex::new(describe),
        })
    }

    fn name(&self, who: &str, colour: Colour) -> String {
        let names = self.names;
        self.paint(colour, &format!("{who:>names$}"))
    }

    fn time(&self) -> String {
        self.paint(Colour::Dim, &format!("{:7.3}s", self.elapsed()))
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        if self.colour {
            colour.paint(text)
        } else {
            text.to_owned()
        }
    }

    fn write(&self, text: fmt::Arguments<'_>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that went away (`| head`) must not stop the conversation.
        let _ = out.write_fmt(text).and_then(|()| out.flush());
    }
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen")
            .field("frames", &self.frames())
            .finish_non_exhaustive()
    }
}

/// An observer that shows the frames of one client.
struct Wire<D> {
    screen: Arc<Screen>,
    who: String,
    describe: Mutex<D>,
}

impl<D: Describe> Observer for Wire<D> {
    fn frame(&self, frame: &Frame<'_>) {
        self.screen.frames.fetch_add(1, Ordering::Relaxed);
        // The text comes with its secrets replaced.
        let what = match (frame.kind(), frame.text()) {
            (FrameKind::Text, Some(text)) => self.words(frame.direction(), &text),
            (kind, _) => format!("({kind:?}, {} bytes)", frame.len()).to_lowercase(),
        };
        let arrow = match frame.direction() {
            Direction::Out => "->",
            Direction::In => "<-",
        };
        let (time, who) = (self.screen.time(), &self.who);
        let what = printable(&what);
        let what = shortened(&what, WIDTH);
        self.screen
            .write(format_args!("{time} {who} {arrow} {what}\n"));
    }
}

impl<D: Describe> Wire<D> {
    fn words(&self, direction: Direction, text: &str) -> String {
        let mut describe = self.describe.lock().unwrap_or_else(PoisonError::into_inner);
        let described = describe.describe(direction, text);
        described.unwrap_or_else(|| text.to_owned())
    }
}

/// Makes an untrusted text of several lines [`printable`]. Tabs and the ends of lines (LF or CRLF) stay.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(['\n', '\t']) {
        let words = part.strip_suffix("\r\n");
        let words = words.or_else(|| part.strip_suffix(['\n', '\t']));
        let (words, end) = part.split_at(words.unwrap_or(part).len());
        shown.push_str(&printable(words));
        shown.push_str(end);
    }
    shown
}

/// Returns JSON in which the characters that control a terminal or reorder text are escaped, also
/// those that JSON allows.
#[must_use]
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    // JSON itself escapes the others.
    let is_odd = |c: char| c >= '\u{7f}' && is_control(c);
    if json.is_ascii() && !json.contains('\u{7f}') || !json.contains(is_odd) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_odd(c) {
            true => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => escaped.push(c),
        }
    }
    escaped.into()
}

/// Makes untrusted text safe to show: escapes the characters that control a terminal.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    // What most text is made of is looked at byte by byte, many together.
    let are_plain = |bytes: &[u8]| {
        let plain = bytes.iter().map(|byte| matches!(byte, b' '..=b'~'));
        plain.fold(true, |all, plain| all & plain)
    };
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    if blocks.iter().all(|block| are_plain(block)) && are_plain(rest) {
        return Cow::Borrowed(text);
    }
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_control(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// Cuts a text to this many characters, with a mark at the cut.
#[must_use]
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Silent;

    impl Describe for Silent {
        fn describe(&mut self, _: Direction, _: &str) -> Option<String> {
            None
        }
    }

    #[test]
    fn what_has_no_words_is_shown_as_it_is() {
        let wire = Wire {
            screen: Screen::new(std::io::sink(), false),
            who: "ann".to_owned(),
            describe: Mutex::new(Silent),
        };
        assert_eq!(wire.words(Direction::In, "nonsense"), "nonsense");
    }

    #[test]
    fn a_text_from_elsewhere_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c"), r"a\u{1b}[2Jb\u{202e}c");
        assert_eq!(printable("héllo ✓"), "héllo ✓");
    }

    #[test]
    fn tabs_and_ends_of_lines_stay_in_a_text_of_lines() {
        let text = "a\tb\r\n\tc\n\r\n";
        assert_eq!(printable_lines(text), text);
        assert_eq!(
            printable_lines("\x1b[2J\r\ta\rb"),
            r"\u{1b}[2J\r".to_owned() + "\ta\\rb"
        );
    }

    #[test]
    fn json_has_no_character_that_controls_a_terminal() {
        let text = "\u{7f}\u{85}\u{9b}2J\u{61c}\u{202e}\u{2028}é😀";
        let json = serde_json::Value::from(text).to_string();
        let escaped = escaped_json(&json);
        assert!(!escaped.contains(is_control), "{escaped:?}");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        assert_eq!(escaped_json("\"é\""), "\"é\"");
    }

    #[test]
    fn a_long_frame_takes_one_line() {
        assert_eq!(
            shortened(&"é".repeat(1000), WIDTH).chars().count(),
            WIDTH + 1
        );
    }
}
