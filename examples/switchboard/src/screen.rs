//! [`frames`]: a live view of a connection, one line per frame; and text that is safe on a terminal.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use rpc_core::net::{Direction, Frame, FrameKind, Observer};
use rpc_core::sync::Mutex;
use rpc_core::testing::Side;
use rpc_core::testing::transcript::{Entry, Kind};
use switchboard_wire::Protocol;
use switchboard_wire::explain::Explainer;
pub use switchboard_wire::text::{
    Colour, escaped_json, is_control, printable, printable_lines, shortened,
};

/// The longest description of a frame, in characters.
const WIDTH: usize = 84;

/// Returns an observer that writes the frames of a client's connection to `out`, explained as by
/// `switchboard wire decode`.
pub fn frames(
    protocol: Protocol,
    client: &str,
    out: impl Write + Send + 'static,
    colour: bool,
) -> Arc<dyn Observer> {
    Arc::new(Frames {
        client: paint(colour, Colour::Cyan, client),
        colour,
        start: Instant::now(),
        view: Mutex::new(View {
            out,
            explainer: Explainer::new(Some(protocol), false).shortening(),
            count: 0,
        }),
    })
}

struct Frames<W> {
    client: String,
    colour: bool,
    start: Instant,
    view: Mutex<View<W>>,
}

struct View<W> {
    out: W,
    explainer: Explainer,
    count: usize,
}

impl<W: Write + Send + 'static> Observer for Frames<W> {
    fn frame(&self, frame: &Frame<'_>) {
        let (from, arrow) = match frame.direction() {
            Direction::Out => (Side::Client, "->"),
            Direction::In => (Side::Server, "<-"),
        };
        let at = self.start.elapsed();
        let mut view = self.view.lock();
        view.count += 1;
        let count = view.count;
        let (what, problem) = match (frame.kind(), frame.text()) {
            // The text comes with its secrets replaced.
            (FrameKind::Text, Some(text)) => {
                let entry = Entry::new(at, 1, Some(from), Kind::Text, text);
                let explained = view.explainer.explain(count, &entry);
                let what = format!("{} {}", explained.kind, explained.words);
                (what, explained.problem)
            }
            (kind, _) => (
                format!("{kind:?} {} bytes", frame.len()).to_lowercase(),
                None,
            ),
        };
        let time = paint(
            self.colour,
            Colour::Dim,
            &format!("{:7.3}s", at.as_secs_f64()),
        );
        let what = printable(what.trim_end());
        let mut line = format!(
            "{time} {} {arrow} {}\n",
            self.client,
            shortened(&what, WIDTH)
        );
        if let Some(problem) = problem {
            let problem = paint(
                self.colour,
                Colour::Red,
                &format!("! {}", printable(&problem)),
            );
            line.push_str(&format!("         {problem}\n"));
        }
        // A reader that went away (`| head`) must not stop the conversation.
        let _ = view
            .out
            .write_all(line.as_bytes())
            .and_then(|()| view.out.flush());
    }
}

/// Paints a text, if there are colours.
pub fn paint(colour: bool, with: Colour, text: &str) -> String {
    match colour {
        true => with.paint(text),
        false => text.to_owned(),
    }
}
