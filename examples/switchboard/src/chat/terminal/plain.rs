//! [`Plain`]: answers to standard output as they come, the rest line by line to standard error.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use super::chat_view::PlanItem;
use super::queue::Queue;
use super::view::{MAX_RESULT, mark};
use super::{ChatEvent, Show};
use crate::cli::{Stdout, ask, complain, print_line};
use crate::text::{piped_lines, printable, printable_lines, printable_prose_lines};

/// How long nothing may happen before the thread looks again.
const PAUSE: Duration = Duration::from_secs(60);

/// Most calls that are remembered.
const MAX_CALLS: usize = 1_000;

/// A call of a tool.
#[derive(Debug)]
struct Call {
    id: String,
    /// The line that names it.
    line: String,
    /// It has shown something: its result is known from that.
    has_output: bool,
}

/// A writer for pipes, files and terminals whose cursor cannot be moved.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The last line on standard output has no end yet.
    is_open: bool,
    /// What comes next follows something else: it needs no blank lines before it.
    is_anew: bool,
    /// A CR at the end of the last piece is not written yet.
    has_return: bool,
    /// What was thought since anything else.
    thought: String,
    /// The calls that have no result yet, oldest first.
    calls: VecDeque<Call>,
    /// The call that was named last: what is below is its output.
    named: String,
}

impl Plain {
    /// Shows all events to the end.
    pub(super) fn run(mut self, queue: &Queue) {
        loop {
            let taken = queue.take(PAUSE);
            for event in taken.events {
                self.show(event);
            }
            if taken.is_last {
                return queue.ended(Box::new(self));
            }
        }
    }

    fn text(&mut self, text: &str) {
        let mut text = Cow::Borrowed(text);
        if std::mem::take(&mut self.has_return) {
            text = format!("\r{text}").into();
        }
        // The other half of the end of a line may come with the next piece.
        let shown = text.strip_suffix('\r').unwrap_or(&text);
        self.has_return = shown.len() < text.len();
        let shown = match self.is_anew {
            true => shown.trim_start_matches(['\r', '\n']),
            false => shown,
        };
        self.is_anew &= shown.is_empty();
        write(shown);
        if !shown.is_empty() {
            self.is_open = !shown.ends_with('\n');
        }
    }

    fn close_line(&mut self) {
        if std::mem::take(&mut self.has_return) {
            write("\r");
        }
        if std::mem::take(&mut self.is_open) {
            print_line("");
        }
        self.is_anew = true;
    }

    /// Names a call again below which something is to stand, if another one was named since: calls run side
    /// by side.
    fn name(&mut self, id: &str) {
        let call = self.calls.iter().find(|call| call.id == id);
        if let Some(call) = call.filter(|_| self.named != id) {
            complain(&call.line);
            id.clone_into(&mut self.named);
        }
    }

    fn result(&mut self, id: &str, outcome: &Result<String, String>) {
        let at = self.calls.iter().position(|call| call.id == id);
        let has_output = at.is_some_and(|at| self.calls.get(at).is_some_and(|it| it.has_output));
        if !matches!(outcome, Ok(text) if has_output || text.is_empty()) {
            self.name(id);
        }
        if let Some(at) = at {
            self.calls.remove(at);
        }
        match outcome {
            Ok(text) if !has_output => {
                let lines = text.lines();
                for line in lines.clone().take(MAX_RESULT) {
                    complain(format_args!("    {}", printable(line)));
                }
                let more = lines.count().saturating_sub(MAX_RESULT);
                if more > 0 {
                    complain(format_args!("    ... {more} more lines"));
                }
            }
            Ok(_) => {}
            Err(why) => complain(format_args!("  failed: {}", printable(why))),
        }
    }
}

fn write(text: &str) {
    let written = Stdout.write_all(answer(text).as_bytes());
    let _ = written.and_then(|()| Stdout.flush());
}

/// Returns the text of an answer as standard output takes it.
fn answer(text: &str) -> String {
    match io::stdout().is_terminal() {
        true => printable_prose_lines(text),
        false => piped_lines(text),
    }
}

impl Show for Plain {
    fn show(&mut self, event: ChatEvent) {
        if let ChatEvent::Thinking(text) = &event {
            self.thought.push_str(text);
            return;
        }
        let thought = std::mem::take(&mut self.thought);
        if !thought.trim().is_empty() {
            self.close_line();
            complain(format_args!(
                "  thinks: {}",
                printable_lines(thought.trim())
            ));
        }
        match &event {
            ChatEvent::Text(text) => return self.text(text),
            // For the terminal only.
            ChatEvent::Prompt(_)
            | ChatEvent::Unsent(_)
            | ChatEvent::Activity(_)
            | ChatEvent::Usage(_)
            | ChatEvent::Partial { .. }
            | ChatEvent::Gone(_) => return,
            _ => self.close_line(),
        }
        match event {
            ChatEvent::TextEnd => {}
            ChatEvent::Line(line) => print_line(line),
            ChatEvent::Info(text) => print_line(printable_lines(&text)),
            ChatEvent::Message { from, text } => {
                let text = answer(&text).replace('\n', "\n  ");
                print_line(format_args!("{}: {text}", printable(&from)));
            }
            ChatEvent::User(text) => complain(format_args!("> {}", printable_lines(&text))),
            ChatEvent::ToolCall {
                id,
                name,
                arguments,
            } => {
                let line = format!("  {} {}", printable(&name), printable(&arguments));
                let line = line.trim_end().to_owned();
                complain(&line);
                if self.calls.len() >= MAX_CALLS {
                    self.calls.pop_front();
                }
                id.clone_into(&mut self.named);
                self.calls.push_back(Call {
                    id,
                    line,
                    has_output: false,
                });
            }
            ChatEvent::ToolOutput { id, text, .. } => {
                self.name(&id);
                if let Some(call) = self.calls.iter_mut().find(|call| call.id == id) {
                    call.has_output = true;
                }
                for line in text.lines() {
                    complain(format_args!("    {}", printable(line)));
                }
            }
            ChatEvent::ToolResult { id, outcome } => self.result(&id, &outcome),
            ChatEvent::Plan { title, items } => {
                complain(format_args!("  {}", printable(&title)));
                for PlanItem { status, text } in items {
                    complain(format_args!("    {} {}", mark(status), printable(&text)));
                }
            }
            ChatEvent::Preview(text) => ask(printable_lines(&text)),
            ChatEvent::Note(words) => complain(printable_lines(&words)),
            ChatEvent::Warning(words) => {
                complain(format_args!("warning: {}", printable_lines(&words)));
            }
            ChatEvent::Question(words) => ask(printable_lines(&words)),
            ChatEvent::Error(words) => ask(format_args!("error: {}", printable_lines(&words))),
            _ => self.calls.clear(),
        }
    }
}
