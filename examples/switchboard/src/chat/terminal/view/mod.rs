//! [`View`]: what of a conversation stands on the screen: lines that stay, and below them rows that still change.
//!
//! It writes nothing and reads no clock, so that tests see what a terminal would show.

mod growing_messages;
mod painted;
mod tool;

use std::time::Instant;

use rpc_core::text::beginning;
use unicode_width::UnicodeWidthStr;

use super::ChatEvent;
use super::chat_view::{PlanItem, PlanStatus};
use crate::markdown::ansi::{self, Stream, Style, wrap};
use crate::text::{self, Colour, printable};

use growing_messages::Partial;
use painted::wrap_painted;
use tool::Tools;

pub(super) use tool::MAX_RESULT;

/// The most rows of a thought that stay on the screen, and that are shown while it grows.
const MAX_THOUGHT: usize = 3;
/// The longest thought that is kept, in bytes.
const MAX_THOUGHT_BYTES: usize = 64 * 1024;
/// Most messages that grow at once.
const MAX_PARTIALS: usize = 64;
/// Most steps of a plan that are shown.
const MAX_PLAN: usize = 100;

/// The box of a step of a plan.
pub(super) const fn mark(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Pending => "[ ]",
        PlanStatus::Active => "[~]",
        PlanStatus::Done => "[x]",
        PlanStatus::Failed => "[!]",
    }
}

/// What a line is about, for the blank lines between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Answer,
    Step,
    Other,
}

/// What goes on.
#[derive(Debug)]
struct Activity {
    what: String,
    since: Instant,
    /// The user is waited for.
    is_question: bool,
}

/// The state of a conversation on the screen.
#[derive(Debug, Default)]
pub(super) struct View {
    style: Style,
    width: usize,
    /// How the user can stop what runs, such as `Esc stops`.
    stop: Option<&'static str>,
    /// Whether a prompt is below, apart from the answers.
    has_prompt: bool,
    label: String,
    activity: Option<Activity>,
    tokens: Option<u64>,
    answer: Stream,
    /// The rows of the answer's open block, and for which width.
    open: Option<(usize, Vec<String>)>,
    /// The blank row after a block that is written, until it is known that something follows.
    has_gap: bool,
    /// Rows about what happens while a block of the answer is open: above it if it goes on, else below.
    notes: Vec<String>,
    /// Whether the first rows of what is open are not drawn.
    is_cut: bool,
    thought: String,
    tools: Tools,
    plan: Option<(String, Vec<PlanItem>)>,
    partials: Vec<Partial>,
    /// Lines to write above.
    lines: Vec<String>,
    /// What was written last since the user's line.
    last: Option<Kind>,
}

impl View {
    /// Creates the view of an empty conversation. `stop` says how what runs is stopped; `has_prompt`
    /// whether the user writes below it.
    pub(super) fn new(colour: bool, stop: Option<&'static str>, has_prompt: bool) -> Self {
        Self {
            style: Style { colour },
            width: 80,
            stop,
            has_prompt,
            label: "> ".to_owned(),
            answer: Stream::new(Style { colour }),
            ..Self::default()
        }
    }

    /// Sets the width of the screen, for what is rendered from now on.
    pub(super) const fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// The prefix of the edited line.
    pub(super) fn label(&self) -> &str {
        match self.has_prompt {
            true => &self.label,
            false => "",
        }
    }

    /// Whether something runs that can be stopped.
    pub(super) const fn is_running(&self) -> bool {
        self.activity.is_some()
    }

    /// Whether the user is asked something.
    pub(super) fn is_asking(&self) -> bool {
        self.activity.as_ref().is_some_and(|it| it.is_question)
    }

    /// The user's line is above: nothing keeps apart from what came before it.
    pub(super) fn line_entered(&mut self) {
        if !self.is_running() {
            self.last = None;
        }
    }

    /// Takes the lines that stay.
    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Takes in what happens.
    pub(super) fn show(&mut self, event: ChatEvent, now: Instant) {
        match event {
            ChatEvent::Line(line) => self.lines.extend(wrap_painted(&line, self.width)),
            ChatEvent::Info(text) => {
                let lines = text.lines();
                let rows = lines.flat_map(|line| wrap_columns(line, self.width));
                let rows = rows.collect();
                self.note(rows);
            }
            ChatEvent::Prompt(label) => self.label = printable(&label).into_owned(),
            ChatEvent::Activity(what) => self.set_activity(&what, now),
            ChatEvent::Usage(tokens) => self.tokens = Some(tokens),
            ChatEvent::Text(text) => {
                self.end_thought();
                self.set_activity("answering", now);
                self.print_notes();
                let rows = self.answer.push(&text, self.width);
                self.open = None;
                self.print_answer(rows);
            }
            ChatEvent::Preview(text) => {
                self.end_texts();
                let rows = ansi::render(&text, self.width, self.style);
                self.print_answer(rows);
            }
            ChatEvent::TextEnd => self.end_answer(),
            ChatEvent::Thinking(text) => {
                self.end_answer();
                self.set_activity("thinking", now);
                let room = MAX_THOUGHT_BYTES.saturating_sub(self.thought.len());
                self.thought.push_str(beginning(&text, room));
            }
            ChatEvent::ToolCall {
                id,
                name,
                arguments,
            } => {
                self.end_texts();
                let name = printable(&name).into_owned();
                self.set_activity(&format!("running {name}"), now);
                if let Some(rows) = self
                    .tools
                    .call(id, name, &arguments, self.width, self.style)
                {
                    self.print(Kind::Step, rows);
                }
            }
            ChatEvent::ToolOutput { id, text, is_diff } => self.tools.output(&id, &text, is_diff),
            ChatEvent::ToolResult { id, outcome } => {
                let rows = self.tools.result(&id, &outcome, self.width, self.style);
                self.print(Kind::Step, rows);
                let next = self.tools.running().map(|name| format!("running {name}"));
                self.set_activity(next.as_deref().unwrap_or("thinking"), now);
            }
            ChatEvent::Plan { title, items } => self.set_plan(title, items),
            ChatEvent::Partial { from, text } => self.set_partial(from, text, now),
            ChatEvent::Gone(from) => self.partials.retain(|partial| partial.from != from),
            ChatEvent::Message { from, text } => {
                let at = self.partials.iter().position(|it| it.from == from);
                let settled = at.map(|at| self.partials.remove(at).settled);
                let settled = settled.filter(|(part, _)| text.starts_with(part));
                let rows = self.message(&from, &text, settled.map_or(0, |it| it.1));
                self.print(Kind::Other, rows);
            }
            ChatEvent::Ended => self.end(),
            other => self.remark(other, now),
        }
    }

    /// A message of one or more lines.
    fn remark(&mut self, event: ChatEvent, now: Instant) {
        let (colour, text) = match event {
            ChatEvent::User(text) => {
                self.end_texts();
                self.last = None;
                let rows = wrap(&text, self.width, "> ", "  ");
                let rows = rows.iter().map(|row| self.paint(Colour::Dim, row));
                let rows: Vec<_> = rows.collect();
                self.lines.extend(rows);
                return;
            }
            ChatEvent::Question(text) => {
                self.end_texts();
                let rows = wrap(&text, self.width, "", "");
                let mut rows = rows.into_iter();
                let first = rows.next().map(|row| self.paint(Colour::Magenta, &row));
                let rows = first.into_iter().chain(rows).collect();
                self.print(Kind::Other, rows);
                self.activity = Some(Activity {
                    what: "waiting for your answer".to_owned(),
                    since: now,
                    is_question: true,
                });
                return;
            }
            ChatEvent::Warning(text) => (Colour::Yellow, format!("warning: {text}")),
            ChatEvent::Error(text) => (Colour::Red, format!("error: {text}")),
            ChatEvent::Note(text) => (Colour::Dim, text),
            _ => return,
        };
        let rows = wrap(&text, self.width, "", "");
        let rows = rows.iter().map(|row| self.paint(colour, row)).collect();
        self.note(rows);
    }

    /// Writes rows that are no part of the answer, which goes on.
    fn note(&mut self, rows: Vec<String>) {
        self.end_thought();
        self.notes.extend(rows);
        if !self.answer.is_open() {
            self.print_notes();
        }
    }

    fn print_notes(&mut self) {
        let notes = std::mem::take(&mut self.notes);
        self.print(Kind::Other, notes);
    }

    /// The rows that still change, at most `max` of them.
    pub(super) fn live(&mut self, now: Instant, max: usize) -> Vec<String> {
        let mut rows = Vec::new();
        let thought = match self.thought.trim() {
            "" => Vec::new(),
            thought => wrap(thought, self.width, "  ", "  "),
        };
        let skipped = thought.len().saturating_sub(MAX_THOUGHT);
        let thought = thought
            .iter()
            .skip(skipped)
            .filter(|row| !row.trim().is_empty());
        rows.extend(thought.map(|row| self.paint(Colour::Dim, row)));
        for partial in self.partials.iter().filter(|it| !it.text.is_empty()) {
            rows.extend(self.message(&partial.from, &partial.text, partial.settled.1));
        }
        let mut below = self.tools.live(self.width, self.style);
        if let Some((title, items)) = &self.plan {
            below.extend(self.plan_rows(title, items));
        }
        below.extend(self.status(now));
        // What is above gives way first, its beginning before its end.
        below.drain(..below.len().saturating_sub(max));
        let room = max - below.len();
        // What is read from its beginning does not vanish above.
        let most = room.saturating_sub(rows.len() + 1);
        let surplus = self.answer.overflow(self.width, most);
        if !surplus.is_empty() {
            self.open = None;
            self.print_answer(surplus);
        }
        rows.splice(..0, self.notes.iter().cloned());
        rows.splice(..0, self.open_block());
        self.is_cut = rows.len() > room;
        if self.is_cut {
            rows.drain(..rows.len() - room);
            if let Some(first) = rows.first_mut() {
                *first = self.paint(Colour::Dim, "...");
            }
        }
        rows.extend(below);
        rows
    }

    /// The line about what goes on.
    fn status(&self, now: Instant) -> Option<String> {
        let Some(activity) = &self.activity else {
            return self.writers(now);
        };
        let mut parts = vec![match activity.is_question {
            true => activity.what.clone(),
            false => format!("{} {}", activity.what, seconds(activity.since, now)),
        }];
        parts.extend(self.tokens.map(|tokens| format!("{tokens} tokens")));
        parts.extend(self.stop.map(str::to_owned));
        self.status_row(&parts.join(" · "))
    }

    /// The line about who writes, if nothing else goes on.
    fn writers(&self, now: Instant) -> Option<String> {
        let since = self.partials.iter().map(|it| it.since).min()?;
        let names: Vec<_> = self.partials.iter().map(|it| &*it.from).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        let are_typing = self.partials.iter().all(|it| it.text.is_empty());
        let typing = if are_typing { "typing" } else { "writing" };
        let (names, seconds) = (names.join(", "), seconds(since, now));
        self.status_row(&format!("{names} {are} {typing} {seconds}"))
    }

    /// It never takes a second row.
    fn status_row(&self, text: &str) -> Option<String> {
        let row = wrap(text, self.width, "", "").into_iter().next()?;
        Some(self.paint(Colour::Dim, &row))
    }

    fn set_activity(&mut self, what: &str, now: Instant) {
        let what = printable(what);
        match &mut self.activity {
            Some(activity) if activity.what == what => {}
            activity => {
                *activity = Some(Activity {
                    what: what.into_owned(),
                    since: now,
                    is_question: false,
                });
            }
        }
    }

    fn set_plan(&mut self, title: String, mut items: Vec<PlanItem>) {
        let is_open =
            |status: &PlanStatus| matches!(status, PlanStatus::Pending | PlanStatus::Active);
        self.end_texts();
        if items.len() > MAX_PLAN {
            let rest = items.split_off(MAX_PLAN);
            let status = rest.iter().map(|item| item.status).find(is_open);
            items.push(PlanItem {
                status: status.unwrap_or(PlanStatus::Done),
                text: format!("({} more)", rest.len()),
            });
        }
        let is_other = |(old, _): &mut (String, Vec<PlanItem>)| *old != title;
        if let Some((title, items)) = self.plan.take_if(is_other) {
            let rows = self.plan_rows(&title, &items);
            self.print(Kind::Step, rows);
        }
        let is_over = !items.iter().any(|item| is_open(&item.status));
        self.plan = Some((title, items));
        if is_over {
            self.end_plan();
        }
    }

    fn plan_rows(&self, title: &str, items: &[PlanItem]) -> Vec<String> {
        let title = wrap(title, self.width, "  ", "  ");
        let mut rows: Vec<_> = title
            .iter()
            .map(|row| self.paint(Colour::Bold, row))
            .collect();
        for item in items {
            let first = format!("    {} ", mark(item.status));
            let item_rows = wrap(&item.text, self.width, &first, "        ");
            rows.extend(item_rows.iter().map(|row| match item.status {
                PlanStatus::Pending => row.clone(),
                PlanStatus::Active => self.paint(Colour::Bold, row),
                PlanStatus::Done => self.paint(Colour::Green, row),
                PlanStatus::Failed => self.paint(Colour::Red, row),
            }));
        }
        rows
    }

    fn end(&mut self) {
        self.end_texts();
        let rows = self.tools.end(self.width, self.style);
        self.print(Kind::Step, rows);
        self.end_plan();
        (self.activity, self.tokens) = (None, None);
        self.has_gap = false;
        if self.last.take() == Some(Kind::Answer) && self.has_prompt {
            self.lines.push(String::new());
        }
    }

    /// Everything that still changes is over.
    pub(super) fn finish(&mut self) {
        self.end();
        self.partials.clear();
    }

    fn end_texts(&mut self) {
        self.end_thought();
        self.end_answer();
    }

    fn end_answer(&mut self) {
        let rows = self.answer.finish(self.width);
        self.open = None;
        self.print_answer(rows);
        self.print_notes();
    }

    /// Writes rows of the answer, each block of which ends with a blank row; the last one waits.
    fn print_answer(&mut self, mut rows: Vec<String>) {
        if rows.is_empty() {
            return;
        }
        if self.is_answer_apart() {
            self.lines.push(String::new());
        }
        self.has_gap = rows.pop_if(|row| row.is_empty()).is_some();
        self.lines.extend(rows);
        self.last = Some(Kind::Answer);
    }

    /// Whether a blank row comes before the next rows of the answer.
    fn is_answer_apart(&self) -> bool {
        self.has_gap || self.last != Some(Kind::Answer) && self.needs_gap(Kind::Answer)
    }

    /// The rows of the answer's block that still grows.
    fn open_block(&mut self) -> Vec<String> {
        let width = self.width;
        if self.open.as_ref().is_none_or(|(of, _)| *of != width) {
            self.open = Some((width, self.answer.open(width)));
        }
        let rows = self.open.iter().flat_map(|(_, rows)| rows);
        let mut rows: Vec<_> = rows.flat_map(|row| fitting(row, width)).collect();
        while rows.pop_if(|row| row.is_empty()).is_some() {}
        if !rows.is_empty() && self.is_answer_apart() {
            rows.insert(0, String::new());
        }
        rows
    }

    fn end_thought(&mut self) {
        let thought = std::mem::take(&mut self.thought);
        if thought.trim().is_empty() {
            return;
        }
        let rows = wrap(thought.trim(), self.width, "  ", "  ");
        let mut rows: Vec<_> = rows
            .into_iter()
            .filter(|row| !row.trim().is_empty())
            .collect();
        fold(&mut rows, MAX_THOUGHT, "  ");
        let rows = rows
            .iter()
            .map(|row| self.paint(Colour::Dim, row))
            .collect();
        self.print(Kind::Step, rows);
    }

    fn end_plan(&mut self) {
        if let Some((title, items)) = self.plan.take() {
            let rows = self.plan_rows(&title, &items);
            self.print(Kind::Step, rows);
        }
    }

    /// Writes rows that stay.
    fn print(&mut self, kind: Kind, rows: Vec<String>) {
        if rows.is_empty() {
            return;
        }
        if self.needs_gap(kind) {
            self.lines.push(String::new());
        }
        self.has_gap = false;
        self.lines.extend(rows);
        self.last = Some(kind);
    }

    /// An answer is set apart from what is around it.
    fn needs_gap(&self, kind: Kind) -> bool {
        match self.last {
            Some(Kind::Answer) => true,
            Some(_) => kind == Kind::Answer,
            None => false,
        }
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        paint(self.style, colour, text)
    }
}

/// Paints a row, if there are colours.
fn paint(style: Style, colour: Colour, text: &str) -> String {
    text::paint(style.colour, colour, text)
}

/// The rows of a line: one of code may be longer than a row.
fn fitting(line: &str, width: usize) -> Vec<String> {
    match columns(line) > width {
        true => wrap_painted(line, width),
        false => vec![line.to_owned()],
    }
}

fn seconds(since: Instant, now: Instant) -> String {
    format!("{} s", now.saturating_duration_since(since).as_secs())
}

/// The columns that a row takes: the sequences in it that set colours take none.
pub(super) fn columns(row: &str) -> usize {
    let mut parts = row.split("\x1b[");
    let first = parts.next().map_or(0, UnicodeWidthStr::width);
    let rest = parts.filter_map(|part| part.split_once('m'));
    first + rest.map(|(_, text)| text.width()).sum::<usize>()
}

/// Wraps a line whose parts are apart by two blanks or more: the last part stays in its column.
fn wrap_columns(line: &str, width: usize) -> Vec<String> {
    let text = line.trim_start();
    let indent = line.get(..line.len() - text.len()).unwrap_or_default();
    let last = text.rfind("  ").map_or(0, |at| at + 2);
    let column = match text.get(..last) {
        Some(before) if before.width() + indent.len() < width / 2 => before.width(),
        _ => 2,
    };
    let rest = format!("{indent}{}", " ".repeat(column));
    wrap(text, width, indent, &rest)
}

/// Cuts rows after the first ones, and says how many are left out.
fn fold(rows: &mut Vec<String>, most: usize, indent: &str) {
    let more = rows.len().saturating_sub(most);
    // The line that says so would take the place of the only one.
    if more > 1 {
        rows.truncate(most);
        rows.push(format!("{indent}... {more} more lines"));
    }
}

#[cfg(test)]
mod tests;
