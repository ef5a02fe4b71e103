//! [`Screen`]: a conversation as it happens, one line per frame.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use rpc_core::Limits;
use rpc_core::net::{Direction, Frame, FrameKind, Observer};
use snek_proto::frame::Event;
use snek_proto::{ClientFrame, ServerFrame};

/// The longest description of a frame, in characters.
const WIDTH: usize = 84;

/// A colour of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// For things of minor interest.
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
}

impl Colour {
    const fn code(self) -> &'static str {
        match self {
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Cyan => "36",
            Self::Magenta => "35",
            Self::Yellow => "33",
            Self::Green => "32",
        }
    }
}

/// Where the lines go. Shared by all who write.
pub struct Screen {
    out: Mutex<Box<dyn Write + Send>>,
    colour: bool,
    start: Instant,
    frames: AtomicUsize,
}

impl Screen {
    /// Lines go to `out`, with colours or without.
    #[must_use]
    pub fn new(out: impl Write + Send + 'static, colour: bool) -> Arc<Self> {
        Arc::new(Self {
            out: Mutex::new(Box::new(out)),
            colour,
            start: Instant::now(),
            frames: AtomicUsize::new(0),
        })
    }

    /// How many frames have been shown.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames.load(Ordering::Relaxed)
    }

    /// Seconds since the start.
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

    /// Says that something happened which is not a frame.
    pub fn event(&self, who: &str, colour: Colour, text: &str) {
        let time = self.time();
        let who = self.paint(colour, &format!("{who:>6}"));
        let text = self.paint(Colour::Yellow, &printable(text));
        self.write(format_args!("{time} {who} * {text}\n"));
    }

    /// An observer for the connection of `who`, who is a client.
    #[must_use]
    pub fn observer(self: &Arc<Self>, who: &str, colour: Colour) -> Arc<dyn Observer> {
        Arc::new(Wire {
            screen: Arc::clone(self),
            who: self.paint(colour, &format!("{who:>6}")),
            methods: Mutex::default(),
        })
    }

    fn time(&self) -> String {
        self.paint(Colour::Dim, &format!("{:7.3}s", self.elapsed()))
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        if self.colour {
            format!("\x1b[{}m{text}\x1b[0m", colour.code())
        } else {
            text.to_owned()
        }
    }

    fn write(&self, text: fmt::Arguments<'_>) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that went away (`tour | head`) must not stop the conversation.
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

/// Shows the frames of one client.
struct Wire {
    screen: Arc<Screen>,
    who: String,
    /// The methods of calls that wait for their answer, which does not name it.
    methods: Mutex<HashMap<String, String>>,
}

impl Observer for Wire {
    fn frame(&self, frame: &Frame<'_>) {
        self.screen.frames.fetch_add(1, Ordering::Relaxed);
        // The text comes with its secrets replaced.
        let what = match (frame.kind(), frame.text()) {
            (FrameKind::Text, Some(text)) => self.describe(frame.direction(), &text),
            (kind, _) => format!("({kind:?}, {} bytes)", frame.len()).to_lowercase(),
        };
        let arrow = match frame.direction() {
            Direction::Out => "->",
            Direction::In => "<-",
        };
        let (time, who) = (self.screen.time(), &self.who);
        let what = printable(&what);
        let what = shorten(&what);
        self.screen
            .write(format_args!("{time} {who} {arrow} {what}\n"));
    }
}

impl Wire {
    fn describe(&self, direction: Direction, text: &str) -> String {
        let limits = Limits::default();
        let described = match direction {
            Direction::Out => ClientFrame::decode(text, &limits)
                .ok()
                .map(|frame| self.request(&frame)),
            Direction::In => ServerFrame::decode(text, &limits)
                .ok()
                .and_then(|frame| self.answer(&frame).or_else(|| event(&frame))),
        };
        described.unwrap_or_else(|| text.to_owned())
    }

    fn request(&self, frame: &ClientFrame<'_>) -> String {
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        if frame.method() == "login" {
            // A new connection: nothing that was asked before will be answered.
            methods.clear();
        }
        if let Some(id) = frame.call_id() {
            methods.insert(id.get().to_owned(), frame.method().to_owned());
        }
        let args = frame.args();
        let args = args
            .strip_prefix('[')
            .and_then(|args| args.strip_suffix(']'));
        format!("{}({})", frame.method(), args.unwrap_or(".."))
    }

    fn answer(&self, frame: &ServerFrame<'_>) -> Option<String> {
        let reply = frame.as_reply()?;
        let mut methods = self.methods.lock().unwrap_or_else(PoisonError::into_inner);
        let method = methods.remove(reply.call_id().get())?;
        Some(match reply.result() {
            Ok(data) => format!("  {method}: {}", data.map_or("null", |data| data.get())),
            Err(error) => format!("  {method} failed: {error}"),
        })
    }
}

fn event(frame: &ServerFrame<'_>) -> Option<String> {
    Some(match frame.as_event()?.ok()? {
        Event::Message(message) => {
            let mark = if message.is_final { "" } else { " (so far)" };
            format!(
                "#{} {}{mark}: {}",
                message.channel_uid, message.user_nick, message.message
            )
        }
        Event::SetTyping(typing) => {
            let who = typing.user_nick.or(typing.username).unwrap_or_default();
            format!(
                "#{} {who} is typing",
                typing.channel_uid.unwrap_or_default()
            )
        }
        Event::Join(join) => format!("joined #{}", join.channel_uid),
        Event::Leave(leave) => format!("left #{}", leave.channel_uid),
        other => format!("event {}", other.name()),
    })
}

/// A text from elsewhere as it may be shown: what controls a terminal is written as an escape.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    // Some characters that are no controls reorder what stands around them.
    let reorders = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let odd = |c: char| c.is_control() || reorders(c);
    if !text.contains(odd) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| {
        if odd(c) {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(escape).collect::<String>().into()
}

fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(WIDTH) {
        None => Cow::Borrowed(text),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> Wire {
        Wire {
            screen: Screen::new(std::io::sink(), false),
            who: "ann".to_owned(),
            methods: Mutex::default(),
        }
    }

    #[test]
    fn an_answer_is_shown_with_the_method_that_it_belongs_to() {
        let wire = wire();
        let call = r#"{"method":"get_user","args":[null],"kwargs":{},"callId":"7"}"#;
        assert_eq!(wire.describe(Direction::Out, call), "get_user(null)");
        let answer = r#"{"callId":"7","success":false,"data":{"error":"no"}}"#;
        assert_eq!(
            wire.describe(Direction::In, answer),
            "  get_user failed: no"
        );
        assert_eq!(wire.describe(Direction::In, answer), answer);
    }

    #[test]
    fn a_message_reads_like_a_line_of_chat() {
        let text = r#"{"event":"message","message":"hi","username":"bo","user_nick":"Bo","channel_uid":"c","is_final":false}"#;
        assert_eq!(wire().describe(Direction::In, text), "#c Bo (so far): hi");
        assert_eq!(wire().describe(Direction::In, "nonsense"), "nonsense");
    }

    #[test]
    fn a_text_from_elsewhere_cannot_control_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{202e}c"), r"a\u{1b}[2Jb\u{202e}c");
        assert_eq!(printable("héllo ✓"), "héllo ✓");
    }

    #[test]
    fn a_long_frame_takes_one_line() {
        assert_eq!(shorten(&"é".repeat(1000)).chars().count(), WIDTH + 1);
    }
}
