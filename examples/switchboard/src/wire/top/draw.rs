//! How a [`Top`] looks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph};

use super::{Focus, Tab, Top};
use crate::screen::printable;
use crate::wire::faults::Rules;
use crate::wire::view::{Call, Row, State, View, lock};

/// From this width on, the selected frame is beside the list.
const WIDE: u16 = 100;
/// The width of the bar of a call.
const BAR: usize = 20;
const DIM: Style = Style::new().fg(Color::DarkGray);
const BAD: Style = Style::new().fg(Color::Red);
const ODD: Style = Style::new().fg(Color::Yellow);
const NAME: Style = Style::new().fg(Color::Cyan);

/// A text of a peer, harmless.
fn span(text: &str, style: Style) -> Span<'static> {
    Span::styled(printable(text).into_owned(), style)
}

impl Top {
    /// Draws the screen.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let shared = self.view.clone();
        let view = lock(&shared);
        let lines = self.lines(&view);
        let [head, tabs, body, foot] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Paragraph::new(self.status(&view)), head);
        frame.render_widget(Paragraph::new(self.tabs(&view)), tabs);
        let [list, detail] = match frame.area().width >= WIDE {
            true => Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(body),
            false => Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(body),
        };
        self.page = usize::from(list.height).max(1);
        if self.tab == Tab::Faults {
            self.draw_rules(frame, body);
        } else {
            self.draw_list(frame, list, &view, &lines);
            self.draw_detail(frame, detail, &view);
        }
        self.draw_foot(frame, foot);
    }

    fn status(&self, view: &View) -> Line<'static> {
        let state = match (self.until, view.is_complete(), self.rules.is_some()) {
            (Some(_), ..) => "paused",
            (None, true, _) => "complete",
            (None, false, true) => "live",
            (None, false, false) => "loading",
        };
        let pending = view.calls().iter().filter(|it| it.state == State::Pending);
        let mut words = format!(" {state}  {} frames", view.rows().len());
        let pending = pending.count();
        if pending > 0 {
            words = format!("{words}  {pending} pending");
        }
        if view.dropped() > 0 {
            words = format!("{words}  {} no longer here", view.dropped());
        }
        if !self.filter.is_empty() {
            words = format!("{words}  filter: {}", printable(&self.filter));
        }
        let name = span(&self.name, Style::new().add_modifier(Modifier::BOLD));
        Line::from(vec![name, Span::raw(words)])
    }

    fn tabs(&self, view: &View) -> Line<'static> {
        let problems = view.rows().iter().filter(|row| row.problem.is_some());
        let problems = problems.count();
        let tab = |tab: Tab, words: String, style: Style| {
            let style = match tab == self.tab {
                true => style.add_modifier(Modifier::REVERSED),
                false => style,
            };
            Span::styled(format!(" {words} "), style)
        };
        let bad = if problems > 0 { BAD } else { Style::new() };
        let mut spans = vec![
            tab(Tab::Frames, "Frames".to_owned(), Style::new()),
            tab(Tab::Problems, format!("Problems {problems}"), bad),
            tab(
                Tab::Calls,
                format!("Calls {}", view.calls().len()),
                Style::new(),
            ),
        ];
        if self.rules.is_some() {
            spans.push(tab(Tab::Faults, "Faults".to_owned(), Style::new()));
        }
        Line::from(spans)
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect, view: &View, lines: &[usize]) {
        let height = usize::from(area.height);
        let at = match self.selected {
            Some(line) => lines.partition_point(|it| *it < line),
            None => lines.len(),
        };
        // The selected row is in the middle, but for the ends.
        let last = lines.len().saturating_sub(height);
        let from = at.saturating_sub(height / 2).min(last);
        let seen = lines.iter().skip(from).take(height).copied();
        let calls: Vec<_> = match self.tab {
            Tab::Calls => seen.clone().filter_map(|line| view.call(line)).collect(),
            _ => Vec::new(),
        };
        let now = view.rows().back().map_or(0.0, |row| row.at);
        let longest = calls.iter().map(|call| took(call, now)).fold(0.0, f64::max);
        let rows = seen.map(|line| {
            let drawn = match self.tab {
                Tab::Calls => view.call(line).map(|call| draw_call(call, now, longest)),
                _ => view.row(line).map(draw_row),
            };
            let drawn = drawn.unwrap_or_default();
            match Some(line) == self.selected {
                true => drawn.style(Style::new().add_modifier(Modifier::REVERSED)),
                false => drawn,
            }
        });
        let mut rows: Vec<_> = rows.collect();
        if rows.is_empty() {
            rows.push(Line::styled("nothing here", DIM));
        }
        frame.render_widget(Paragraph::new(rows), area);
    }

    fn draw_detail(&self, frame: &mut Frame<'_>, area: Rect, view: &View) {
        let borders = match frame.area().width >= WIDE {
            true => Borders::LEFT,
            false => Borders::TOP,
        };
        let block = Block::new().borders(borders).border_style(DIM);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let Some(row) = self.selected.and_then(|line| view.row(line)) else {
            let hint = Line::styled("arrows select a frame, n goes to the next problem", DIM);
            frame.render_widget(Paragraph::new(hint), inner);
            return;
        };
        let mut lines = about(row, view.call(row.n));
        let room = usize::from(inner.height).saturating_sub(lines.len()).max(1);
        let from = self.tree.at.saturating_sub(room / 2);
        let branches = self.tree.lines();
        for (index, branch) in branches.iter().enumerate().skip(from).take(room) {
            let mark = match branch.is_open {
                Some(true) => "▾ ",
                Some(false) => "▸ ",
                None => "  ",
            };
            let mut spans = vec![Span::raw("  ".repeat(branch.depth)), Span::raw(mark)];
            if !branch.name.is_empty() {
                spans.extend([span(&branch.name, NAME), Span::raw(": ")]);
            }
            spans.push(span(&branch.value, Style::new()));
            let line = Line::from(spans);
            let is_here = matches!(self.focus, Focus::Tree) && index == self.tree.at;
            lines.push(match is_here {
                true => line.style(Style::new().add_modifier(Modifier::REVERSED)),
                false => line,
            });
        }
        frame.render_widget(Paragraph::new(lines), inner);
    }

    fn draw_rules(&self, frame: &mut Frame<'_>, area: Rect) {
        let rules = self.rules.as_ref().map(Rules::list).unwrap_or_default();
        let lines = rules.iter().enumerate().map(|(index, rule)| {
            let mark = if rule.on { "[x]" } else { "[ ]" };
            let line = Line::from(vec![
                Span::raw(format!("{mark} ")),
                span(&rule.text, Style::new()),
                Span::styled(format!("  happened {} times", rule.hits), DIM),
            ]);
            match index == self.rule {
                true => line.style(Style::new().add_modifier(Modifier::REVERSED)),
                false => line,
            }
        });
        let mut lines: Vec<_> = lines.collect();
        if lines.is_empty() {
            lines.push(Line::styled("no rules yet: a adds one", DIM));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn draw_foot(&self, frame: &mut Frame<'_>, area: Rect) {
        let (prompt, input) = match &self.focus {
            Focus::Filter(input) => ("filter: ", input),
            Focus::Rule(input) => ("rule: ", input),
            _ => {
                let keys = match (&self.focus, self.tab) {
                    (Focus::Tree, _) => "arrows move, open and close  Esc list  q quit",
                    (_, Tab::Faults) => "space on/off  a add  d remove  Tab next list  q quit",
                    _ => "n/p problem  / filter  Enter frame  space pause  Tab next list  q quit",
                };
                let line = match self.error.is_empty() {
                    true => Line::styled(keys, DIM),
                    false => Line::from(span(&self.error, BAD)),
                };
                return frame.render_widget(Paragraph::new(line), area);
            }
        };
        let width = usize::from(area.width).saturating_sub(prompt.len() + 1);
        let scroll = input.visual_scroll(width);
        let mut spans = vec![
            Span::raw(prompt),
            span(input.value().get(..).unwrap_or_default(), Style::new()),
        ];
        if !self.error.is_empty() {
            spans.push(span(&format!("  {}", self.error), BAD));
        }
        let offset = u16::try_from(scroll).unwrap_or(0);
        frame.render_widget(Paragraph::new(Line::from(spans)).scroll((0, offset)), area);
        let column = prompt.len() + input.visual_cursor().saturating_sub(scroll);
        let column = u16::try_from(column).unwrap_or(0).min(area.width);
        frame.set_cursor_position(Position::new(area.x + column, area.y));
    }
}

/// An arrow from the sender.
fn arrow(dir: Option<&str>) -> &'static str {
    match dir {
        Some("c2s") => "->",
        Some(_) => "<-",
        None => " *",
    }
}

fn draw_row(row: &Row) -> Line<'static> {
    let explained = &row.explained;
    let style = match (&row.problem, row.is_unknown()) {
        (Some(_), _) => BAD,
        (None, true) => ODD,
        (None, false) => Style::new(),
    };
    let kind = printable(&explained.kind);
    let mut spans = vec![
        Span::styled(format!("{:>6} {:>9.3} ", row.n, row.at), DIM),
        Span::raw(format!("{:>2} {} ", row.conn, arrow(row.dir))),
        Span::styled(format!("{kind:<16} "), style.add_modifier(Modifier::BOLD)),
    ];
    if let Some(problem) = &row.problem {
        spans.push(span(&format!("{problem}: "), BAD));
    }
    spans.push(span(explained.words.trim_start(), style));
    Line::from(spans)
}

/// How long a call has taken, or takes so far, in seconds.
fn took(call: &Call, now: f64) -> f64 {
    let end = match (call.state, call.answered) {
        (State::Done | State::Failed, Some((_, last))) => last,
        _ => now,
    };
    (end - call.at).max(0.0)
}

fn draw_call(call: &Call, now: f64, longest: f64) -> Line<'static> {
    let style = match call.state {
        State::Done => Style::new().fg(Color::Green),
        State::Pending => ODD,
        State::Failed | State::Unanswered => BAD,
    };
    let time = took(call, now);
    // One block at least, so that there is something to see.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the width of a bar"
    )]
    let blocks = ((time / longest.max(1e-9)) * BAR as f64).round() as usize;
    let blocks = blocks.clamp(1, BAR);
    let words = match call.state {
        State::Done | State::Failed => format!("{:.1} ms", time * 1000.0),
        State::Pending => format!("pending, {time:.1} s"),
        State::Unanswered => "never answered".to_owned(),
    };
    let kind = printable(&call.kind);
    let id = printable(&call.id);
    Line::from(vec![
        Span::styled(format!("{:>6} {:>9.3} ", call.line, call.at), DIM),
        Span::raw(format!("{:>2} ", call.conn)),
        Span::styled(format!("{:<BAR$} ", "█".repeat(blocks)), style),
        Span::styled(format!("{words:>15} "), style),
        Span::raw(format!("{kind} {id}")),
    ])
}

/// What is said of a frame above its contents.
fn about(row: &Row, call: Option<&Call>) -> Vec<Line<'static>> {
    let kind = printable(&row.explained.kind);
    let mut lines = vec![Line::styled(
        format!("Frame {}: {kind}", row.n),
        Style::new().add_modifier(Modifier::BOLD),
    )];
    if let Some(problem) = &row.problem {
        lines.push(Line::from(span(problem, BAD)));
    }
    if let Some((place, column)) = &row.place {
        lines.push(Line::from(span(place, DIM)));
        lines.push(Line::styled(format!("{}^", " ".repeat(*column)), BAD));
    }
    if row.explained.unknown_kind {
        lines.push(Line::styled("the kind is not known", ODD));
    }
    for path in row.explained.unknown.iter().take(5) {
        lines.push(Line::from(span(
            &format!("the member {path} is not known"),
            ODD,
        )));
    }
    if let Some(asked) = &row.explained.answers {
        let after = asked.after.as_secs_f64() * 1000.0;
        let words = format!(
            "answers frame {}, {}, after {after:.1} ms",
            asked.line, asked.kind
        );
        lines.push(Line::from(span(&words, DIM)));
    }
    if let Some(call) = call {
        let state = match call.state {
            State::Pending => "pending",
            State::Done => "done",
            State::Failed => "failed",
            State::Unanswered => "never answered",
        };
        lines.push(Line::styled(
            format!("answers: {}, {state}", call.answers),
            DIM,
        ));
    }
    lines
}
