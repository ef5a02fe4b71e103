//! [`Hop`]: the lines of one protocol. What goes over them is shown and kept.

use std::sync::Arc;

use rpc_core::net::{Direction, Frame, Observer};
use switchboard::cli::Failure;
use switchboard::screen::{Colour, Describe, Screen};
use tokio::sync::watch;

use crate::tour::patience::{expect, in_time};

/// The lines of one protocol.
#[derive(Clone)]
pub(super) struct Hop {
    pub(super) name: &'static str,
    colour: Colour,
    screen: Arc<Screen>,
    /// All frames so far, as the clients see them, without their secrets.
    frames: Arc<watch::Sender<Vec<(Direction, String)>>>,
}

impl Hop {
    pub(super) fn new(name: &'static str, colour: Colour, screen: &Arc<Screen>) -> Self {
        Self {
            name,
            colour,
            screen: Arc::clone(screen),
            frames: Arc::default(),
        }
    }

    /// What a client's connection shows its frames to.
    pub(super) fn line(&self, client: &str, describe: impl Describe) -> Arc<dyn Observer> {
        let shown = self.screen.observer(client, self.colour, describe);
        let frames = Arc::clone(&self.frames);
        Arc::new(move |frame: &Frame<'_>| {
            shown.frame(frame);
            let text = frame.text().unwrap_or_default().into_owned();
            frames.send_modify(|frames| frames.push((frame.direction(), text)));
        })
    }

    /// Waits for a frame with this text.
    pub(super) async fn until(&self, direction: Direction, text: &str) -> Result<(), Failure> {
        let mut frames = self.frames.subscribe();
        let what = format!("a frame with {text} on the line of {}", self.name);
        let found = frames.wait_for(|frames| matching(frames, direction, text) > 0);
        in_time(&what, found).await?.map_err(Failure::new)?;
        Ok(())
    }

    /// Says that something happened to a line.
    pub(super) fn event(&self, text: &str) {
        self.screen.event(self.name, self.colour, text);
    }

    /// How many frames there were.
    pub(super) fn summary(&self) -> String {
        let (name, width) = (self.name, super::LONGEST_NAME);
        let (sent, heard) = (
            self.count(Direction::Out, ""),
            self.count(Direction::In, ""),
        );
        format!("{name:>width$}: {sent:2} frames sent, {heard:2} received")
    }

    /// Expects so many frames with this text.
    pub(super) fn has(
        &self,
        times: usize,
        direction: Direction,
        text: &str,
    ) -> Result<(), Failure> {
        let (name, found) = (self.name, self.count(direction, text));
        expect(
            found == times,
            &format!("{times} frames with {text} on the line of {name}, not {found}"),
        )
    }

    /// How many frames have this text.
    fn count(&self, direction: Direction, text: &str) -> usize {
        matching(&self.frames.borrow(), direction, text)
    }
}

fn matching(frames: &[(Direction, String)], direction: Direction, text: &str) -> usize {
    let fits = |(way, frame): &&(Direction, String)| *way == direction && frame.contains(text);
    frames.iter().filter(fits).count()
}
