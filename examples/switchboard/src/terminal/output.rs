//! [`Output`]: lines to standard output, above the edited line, if there is one.

use super::{ChatEvent, ChatView};

/// A writer of lines in its own thread, so that a stopped terminal (Ctrl-S) stops nothing else.
#[derive(Debug)]
pub struct Output(ChatView);

impl Output {
    /// Creates a writer above the edited line, or to standard output.
    #[must_use]
    pub fn new(above: Option<ChatView>) -> Self {
        Self(above.unwrap_or_else(ChatView::plain))
    }

    /// Writes a line, after earlier ones.
    ///
    /// # Cancel safety
    /// Dropping the future may lose the line.
    pub async fn line(&self, line: String) {
        self.0.show(ChatEvent::Line(line)).await;
    }

    /// Waits until everything is written.
    ///
    /// # Cancel safety
    /// Dropping the future only stops waiting.
    pub async fn finish(self) {
        self.0.finish().await;
    }
}
