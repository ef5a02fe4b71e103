//! [`Screen`]: a live view of a conversation, one line per frame.

pub mod acolyte;
pub mod connectonion;
pub mod exoclaw;
pub mod smarthole;
pub mod snek;

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rpc_core::net::{Direction, Frame, FrameKind, Observer};
pub use switchboard_wire::text::{
    Colour, escaped_json, is_control, printable, printable_lines, shortened,
};

/// The longest description of a frame, in characters.
const WIDTH: usize = 84;
/// The width of names, in characters.
const NAME: usize = 6;

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
    fn a_long_frame_takes_one_line() {
        assert_eq!(
            shortened(&"é".repeat(1000), WIDTH).chars().count(),
            WIDTH + 1
        );
    }
}
