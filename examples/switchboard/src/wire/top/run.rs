//! [`run`]: a [`Top`] at a real terminal, which is put back in order whatever happens.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{poll, read};

use super::{Flow, Top};

/// How often the screen is drawn while nobody presses a key.
const FRAME: Duration = Duration::from_millis(100);

/// Ends a screen from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends it within a tenth of a second.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Shows the screen until the user has seen enough, or until it is stopped. Blocks.
///
/// # Errors
/// If the terminal cannot be used. It is in order again, also after a panic.
pub fn run(mut top: Top, stop: &Stop) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let mut shown = || {
        while !stop.is_set() {
            terminal.draw(|frame| top.draw(frame))?;
            // Keys that are held down come faster than the screen is drawn.
            while poll(FRAME)? {
                if top.handle(&read()?) == Flow::Quit {
                    return Ok(());
                }
                if !poll(Duration::ZERO)? {
                    break;
                }
            }
        }
        Ok(())
    };
    let shown = shown();
    ratatui::try_restore().and(shown)
}
