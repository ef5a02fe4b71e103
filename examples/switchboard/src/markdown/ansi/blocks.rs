//! [`Renderer`]: from the events of the parser to lines.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd};

use super::super::highlight::{Highlighter, Token};
use super::Style;
use super::table::Table;
use super::text::{self, Look, Piece, Span};
use crate::text::{Colour, printable_lines};

const BULLET: &str = "• ";
const QUOTE: &str = "│ ";
const FENCE: &str = "```";
const CODE: Look = Look::colour(Colour::Cyan);

/// A block quote or an item of a list, around what is rendered.
#[derive(Debug)]
struct Container {
    /// What its first row begins with, until that is written.
    first: Option<Span>,
    /// What its other rows begin with, which is as wide.
    rest: Span,
    /// Whether blocks in it are set apart: it has a paragraph of its own.
    is_loose: bool,
}

/// Turns events into lines.
#[derive(Debug, Default)]
pub(super) struct Renderer {
    width: usize,
    style: Style,
    lines: Vec<String>,
    /// How many tags are open.
    depth: usize,
    /// The number of lines when the outermost open tag began.
    start: usize,
    containers: Vec<Container>,
    /// The numbers of the next items of the open lists.
    lists: Vec<Option<u64>>,
    /// Whether an empty line comes before the next block.
    gap: bool,
    /// The inline text of the block, with the look of what comes next.
    inline: Vec<Span>,
    looks: Vec<Look>,
    /// The open links and images: the address, and where in `inline` the text begins.
    links: Vec<(String, usize)>,
    /// The open code block: its language and text.
    code: Option<(String, String)>,
    table: Option<Table>,
}

impl Renderer {
    pub(super) fn new(width: usize, style: Style) -> Self {
        Self {
            width,
            style,
            ..Self::default()
        }
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }

    pub(super) fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => {
                if self.depth == 0 {
                    self.start = self.lines.len();
                }
                self.depth += 1;
                self.begin(tag);
            }
            Event::End(tag) => {
                self.depth = self.depth.saturating_sub(1);
                self.end(tag);
                self.block_ended();
            }
            Event::Rule => {
                if self.depth == 0 {
                    self.start = self.lines.len();
                }
                self.begin_block();
                self.write_gap();
                let rule = Span::new(&"─".repeat(self.space()), Look::DIM);
                self.put(&rule.pieces().collect::<Vec<_>>());
                self.gap = true;
                self.block_ended();
            }
            Event::Text(text) => match (&mut self.code, &*text) {
                (Some((_, code)), text) => code.push_str(text),
                // The one tag that models use for layout, because cells of tables have one line.
                (None, "<br>" | "<br/>" | "<br />") => self.push_text("\n"),
                (None, text) => self.push_text(text),
            },
            Event::Code(code) => {
                self.push_mark("`");
                let look = self.look().with(CODE);
                self.inline.push(Span::new(&printable_lines(&code), look));
                self.push_mark("`");
            }
            Event::SoftBreak => self.push_text(" "),
            Event::HardBreak => self.push_text("\n"),
            Event::TaskListMarker(is_done) => self.task(is_done),
            // Extensions that are off.
            Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.push_text(&text),
        }
    }

    fn begin(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => {
                self.begin_block();
                if let Some(container) = self.containers.last_mut() {
                    container.is_loose = true;
                }
            }
            Tag::Heading { level, .. } => {
                self.begin_block();
                self.push_mark(&format!("{} ", "#".repeat(level as usize)));
                self.looks.push(match level {
                    HeadingLevel::H1 => Look::BOLD.with(Look::UNDERLINE),
                    HeadingLevel::H2 => Look::BOLD,
                    _ => Look::BOLD.with(Look::ITALIC),
                });
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.write_gap();
                self.contain(QUOTE, QUOTE, Look::DIM);
            }
            Tag::List(start) => {
                self.begin_block();
                self.lists.push(start);
            }
            Tag::Item => {
                self.write_gap();
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number = number.saturating_add(1);
                        marker
                    }
                    _ => BULLET.to_owned(),
                };
                let rest = " ".repeat(marker.chars().count());
                self.contain(&marker, &rest, Look::PLAIN);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => {
                if let Some(table) = &mut self.table {
                    table.row();
                }
                self.looks.push(Look::BOLD);
            }
            Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.row();
                }
            }
            Tag::Emphasis => self.begin_look(Look::ITALIC, "*"),
            Tag::Strong => self.begin_look(Look::BOLD, "**"),
            Tag::Strikethrough => self.begin_look(Look::STRIKE, "~~"),
            Tag::Link {
                link_type,
                dest_url,
                ..
            } => {
                let is_email = link_type == LinkType::Email;
                let address = if is_email {
                    String::new()
                } else {
                    address(&dest_url)
                };
                self.begin_link(address);
            }
            Tag::Image { dest_url, .. } => self.begin_link(address(&dest_url)),
            // Inside of others, or extensions that are off.
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.looks.pop();
                self.flush();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.containers.pop();
                self.gap = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = true;
            }
            TagEnd::Item => {
                self.flush();
                let container = self.containers.last();
                if container.is_some_and(|container| container.first.is_some()) {
                    self.put(&[]);
                }
                let container = self.containers.pop();
                self.gap = container.is_some_and(|container| container.is_loose);
            }
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.write_code(&language, &code);
                }
                self.gap = true;
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.write_gap();
                    table.write(self.space(), |row| self.put(row));
                }
                self.gap = true;
            }
            TagEnd::TableHead => {
                self.looks.pop();
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Emphasis => self.end_look("*"),
            TagEnd::Strong => self.end_look("**"),
            TagEnd::Strikethrough => self.end_look("~~"),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Ends the text of an item that is not a paragraph: no blank line follows it.
    fn begin_block(&mut self) {
        if !self.inline.is_empty() {
            self.flush();
            self.gap = false;
        }
    }

    /// Ends an outermost block with an empty line, unless nothing of it is seen.
    fn block_ended(&mut self) {
        if self.depth == 0 {
            if self.lines.len() > self.start {
                self.lines.push(String::new());
            }
            self.gap = false;
        }
    }

    /// Begins a container, unless the screen is too narrow for one more.
    fn contain(&mut self, first: &str, rest: &str, look: Look) {
        let first = Span::new(first, look);
        let fits =
            text::columns(&first.pieces().collect::<Vec<_>>()) + self.width / 2 <= self.space();
        let container = if fits {
            Container {
                first: Some(first),
                rest: Span::new(rest, look),
                is_loose: false,
            }
        } else {
            if rest.trim().is_empty() {
                self.inline.push(first);
            }
            Container {
                first: None,
                rest: Span::new("", look),
                is_loose: false,
            }
        };
        self.containers.push(container);
    }

    /// Shows whether the task of an item is done, in place of the bullet.
    fn task(&mut self, is_done: bool) {
        let marker = if is_done { "[x] " } else { "[ ] " };
        let container = self.containers.last_mut();
        match container.filter(|it| it.first.as_ref().is_some_and(|it| it.text() == BULLET)) {
            Some(container) => {
                container.first = Some(Span::new(marker, Look::PLAIN));
                container.rest = Span::new("    ", Look::PLAIN);
            }
            None => self.push_text(marker),
        }
    }

    fn begin_look(&mut self, look: Look, mark: &str) {
        self.push_mark(mark);
        self.looks.push(self.look().with(look));
    }

    fn end_look(&mut self, mark: &str) {
        self.looks.pop();
        self.push_mark(mark);
    }

    fn begin_link(&mut self, address: String) {
        self.links.push((address, self.inline.len()));
        self.looks.push(self.look().with(Look::UNDERLINE));
    }

    fn end_link(&mut self) {
        self.looks.pop();
        let Some((address, start)) = self.links.pop() else {
            return;
        };
        let spans = self.inline.get(start..).unwrap_or_default();
        let text: String = spans.iter().map(Span::text).collect();
        let address = match (text.trim(), &*address) {
            (_, "") => return,
            (text, address) if text == address => return,
            ("", address) => address.to_owned(),
            (_, address) => format!(" ({address})"),
        };
        let look = self.look().with(Look::DIM);
        self.inline
            .push(Span::new(&printable_lines(&address), look));
    }

    fn look(&self) -> Look {
        self.looks.last().copied().unwrap_or_default()
    }

    fn push_text(&mut self, text: &str) {
        let span = Span::new(text, self.look());
        self.inline.push(span);
    }

    /// Adds a mark that is needed where looks cannot be seen.
    fn push_mark(&mut self, mark: &str) {
        if !self.style.colour {
            self.push_text(mark);
        }
    }

    /// The columns between what containers put before a row, and the end of the screen.
    fn space(&self) -> usize {
        let before = self.containers.iter().flat_map(|it| it.rest.pieces());
        let before = text::columns(&before.collect::<Vec<_>>());
        self.width.saturating_sub(before).max(1)
    }

    /// Writes the inline text.
    fn flush(&mut self) {
        let inline = std::mem::take(&mut self.inline);
        if inline.is_empty() {
            return;
        }
        self.write_gap();
        for row in text::fold(&inline, self.space()) {
            self.put(&row);
        }
    }

    fn write_gap(&mut self) {
        if std::mem::take(&mut self.gap) {
            self.put(&[]);
        }
    }

    fn write_code(&mut self, language: &str, code: &str) {
        self.write_gap();
        self.write_fence();
        let mut highlighter = Highlighter::new(language);
        for line in code.split_inclusive('\n') {
            self.write_code_line(&highlighter.line(line));
        }
        self.write_fence();
    }

    /// Marks where code begins or ends, where colours do not.
    pub(super) fn write_fence(&mut self) {
        if !self.style.colour {
            let fence = Span::new(FENCE, Look::PLAIN);
            self.put(&fence.pieces().collect::<Vec<_>>());
        }
    }

    /// Writes the tokens of a line of code as one line: it can be copied as it is, and the terminal breaks it.
    pub(super) fn write_code_line(&mut self, tokens: &[(Token, &str)]) {
        let mut line = Vec::new();
        let mut used = 0;
        for (token, text) in tokens {
            let span = Span::code(text.trim_end_matches('\n'), used, look(*token));
            used += text::columns(&span.pieces().collect::<Vec<_>>());
            line.push(span);
        }
        self.put(&line.iter().flat_map(Span::pieces).collect::<Vec<_>>());
    }

    /// Writes a row behind what containers put before it.
    fn put(&mut self, row: &[Piece<'_>]) {
        let containers = self.containers.iter_mut();
        let before = containers.map(|it| it.first.take().unwrap_or_else(|| it.rest.clone()));
        let before: Vec<_> = before.collect();
        let mut all: Vec<_> = before.iter().flat_map(Span::pieces).collect();
        if row.is_empty() {
            all.truncate(text::trim_end(&all).len());
        }
        all.extend_from_slice(row);
        self.lines.push(text::paint(&all, self.style));
    }
}

/// What to show of an address: of data, only what it is.
fn address(url: &str) -> String {
    match url.split_once([';', ',']) {
        Some((kind, _)) if kind.starts_with("data:") => format!("{kind},…"),
        _ => url.to_owned(),
    }
}

fn look(token: Token) -> Look {
    match token {
        Token::Plain => Look::PLAIN,
        Token::Unknown => CODE,
        Token::Comment => Look::DIM,
        Token::Keyword => Look::colour(Colour::Magenta),
        Token::String | Token::Inserted => Look::colour(Colour::Green),
        Token::Number => Look::colour(Colour::Yellow),
        Token::Function => Look::colour(Colour::Blue),
        Token::Type => Look::colour(Colour::Cyan),
        Token::Deleted => Look::colour(Colour::Red),
    }
}
