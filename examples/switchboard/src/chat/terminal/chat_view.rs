//! [`ChatView`]: a conversation as people see it. The same for all programs: each says what happens in
//! [`ChatEvent`]s, and the view decides how that looks.

use std::io::{self, IsTerminal as _};
use std::thread::{self, JoinHandle};

use super::plain::Plain;
use super::queue::Queue;
use super::{Terminal, is_plain, painter};
use crate::markdown::preload;

/// Something to show. Texts may hold anything: what controls a terminal is escaped by the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatEvent {
    /// A line as it is, such as JSON: the only text that is not escaped.
    Line(String),
    /// What a command asked for, such as a list: lines that keep their columns where they break.
    Info(String),
    /// The prefix of the edited line, such as `#general> `.
    Prompt(String),
    /// What was written and is not sent: it goes back to the edited line.
    Unsent(String),
    /// What goes on now, such as `thinking`, in the status line, which counts its seconds. The events
    /// below set it, too.
    Activity(String),
    /// The tokens of the run so far, for the status line.
    Usage(u64),
    /// What a user has said that is not on the screen, such as earlier turns.
    User(String),
    /// More of the answer, in Markdown.
    Text(String),
    /// Markdown to read before a question: no part of the answer.
    Preview(String),
    /// The answer is complete: more text is another one. Other events than texts say so, too.
    TextEnd,
    /// More of what the model thinks.
    Thinking(String),
    /// A tool begins to run.
    ToolCall {
        /// Tells calls apart that run side by side.
        id: String,
        /// The tool.
        name: String,
        /// What of its arguments people want to see: a path, a command.
        arguments: String,
    },
    /// More output of a tool that runs. The last lines are shown while it runs, the first ones stay.
    ToolOutput {
        /// The id of the call.
        id: String,
        /// Any part of the output.
        text: String,
        /// Lines that begin with `+` or `-` were added or removed.
        is_diff: bool,
    },
    /// A tool has ended.
    ToolResult {
        /// The id of the call.
        id: String,
        /// The result, or why the tool failed. The beginning of a result is shown if there was no output.
        outcome: Result<String, String>,
    },
    /// The plan, or its new state: shown in place until every item is over, or the run is.
    Plan {
        /// What the plan is for.
        title: String,
        /// Its steps.
        items: Vec<PlanItem>,
    },
    /// A message that still grows: all of it so far, or nothing while its author types.
    Partial {
        /// Who writes it.
        from: String,
        /// The message so far, in Markdown.
        text: String,
    },
    /// A complete message, in place of the [`Partial`](Self::Partial) one of the same author.
    Message {
        /// Who has written it.
        from: String,
        /// The message, in Markdown.
        text: String,
    },
    /// Removes the partial message of this author.
    Gone(String),
    /// A question to the user, whose answer is waited for.
    Question(String),
    /// A remark.
    Note(String),
    /// Something that may be wrong.
    Warning(String),
    /// Something that has failed.
    Error(String),
    /// The run is over: nothing is shown any more that goes on.
    Ended,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanItem {
    /// How far it is.
    pub status: PlanStatus,
    /// What is to be done.
    pub text: String,
}

/// How far a step of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStatus {
    /// It has not begun.
    Pending,
    /// It is being done.
    Active,
    /// It is done.
    Done,
    /// It has failed.
    Failed,
}

impl ChatEvent {
    /// The bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Line(text)
            | Self::Info(text)
            | Self::Prompt(text)
            | Self::Unsent(text)
            | Self::Activity(text)
            | Self::User(text)
            | Self::Text(text)
            | Self::Preview(text)
            | Self::Thinking(text)
            | Self::Gone(text)
            | Self::Question(text)
            | Self::Note(text)
            | Self::Warning(text)
            | Self::Error(text)
            | Self::ToolOutput { text, .. }
            | Self::Partial { text, .. }
            | Self::Message { text, .. }
            | Self::ToolResult {
                outcome: Ok(text) | Err(text),
                ..
            } => text.len(),
            Self::ToolCall { arguments, .. } => arguments.len(),
            Self::Plan { items, .. } => items.iter().map(|item| item.text.len()).sum(),
            Self::Usage(_) | Self::TextEnd | Self::Ended => 0,
        }
    }

    /// Takes in an event that follows this one, or returns it.
    pub(super) fn merge(&mut self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::Text(text), Self::Text(more)) | (Self::Thinking(text), Self::Thinking(more)) => {
                text.push_str(&more);
            }
            (
                Self::ToolOutput { id, text, is_diff },
                Self::ToolOutput {
                    id: same,
                    text: more,
                    is_diff: alike,
                },
            ) if *id == same && *is_diff == alike => text.push_str(&more),
            (
                Self::Partial { from, text },
                Self::Partial {
                    from: same,
                    text: whole,
                },
            ) if *from == same => *text = whole,
            (Self::Usage(tokens), Self::Usage(more)) => *tokens = more,
            (_, next) => return Some(next),
        }
        None
    }
}

/// A conversation on the screen.
///
/// At a terminal, answers and messages are rendered as Markdown while they grow. What is complete stays;
/// what still changes is below it, with a line about what goes on. In a pipe, with `CI` set, and at a terminal
/// without cursor movement (`TERM=dumb`), answers and messages go to standard output as they come, the
/// rest to standard error, line by line. `NO_COLOR` takes away the colours only.
pub struct ChatView {
    queue: Queue,
    /// Shows the events, unless the line editor does.
    thread: Option<JoinHandle<()>>,
}

impl ChatView {
    /// Creates a view above the line that is edited in `terminal`; without one, on standard output.
    pub fn new(terminal: Option<&Terminal>) -> Self {
        match terminal {
            Some(terminal) => terminal.above(),
            None if io::stdout().is_terminal() && !is_plain() => {
                preload();
                Self::with_thread(|queue| painter::run(&queue))
            }
            None => Self::plain(),
        }
    }

    /// Creates a view that only writes lines, such as JSON, wherever they go.
    pub fn plain() -> Self {
        Self::with_thread(|queue| Plain::default().run(&queue))
    }

    /// Creates a view whose events are shown elsewhere.
    pub(super) const fn above(queue: Queue) -> Self {
        let thread = None;
        Self { queue, thread }
    }

    fn with_thread(run: impl FnOnce(Queue) + Send + 'static) -> Self {
        let queue = Queue::default();
        let events = queue.clone();
        let thread = Some(thread::spawn(move || run(events)));
        Self { queue, thread }
    }

    /// Shows an event, after earlier ones. Waits only if very much is not shown yet.
    ///
    /// # Cancel safety
    /// Dropping the future may lose the event.
    pub async fn show(&self, event: ChatEvent) {
        self.queue.push(event).await;
    }

    /// Waits until everything is shown. Drop the [`Terminal`] before: it shows what is left.
    ///
    /// # Cancel safety
    /// Dropping the future only stops waiting.
    pub async fn finish(self) {
        self.show(ChatEvent::Ended).await;
        if let Some(thread) = self.thread {
            self.queue.end();
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

rpc_core::debug_fields!([] ChatView, _ => {});
