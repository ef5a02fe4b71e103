//! [`Stream`]: Markdown that grows.

use pulldown_cmark::{Event, Tag};

use super::super::highlight::{Highlighter, Token};
use super::super::{closed, events};
use super::blocks::Renderer;
use super::{Style, render};

/// The longest block that is kept, in bytes: what is longer goes on as another one.
pub(super) const MAX_OPEN: usize = 16 * 1024;

/// Renders a text that grows. What it has returned stays, so it can be printed at once; it keeps the rest
/// only, and the cost of a step does not grow with the text. The lines are those that [`render`] returns
/// for the whole text, if no reference to a link is defined in another block.
///
/// ```
/// use switchboard::markdown::ansi::{Stream, Style};
/// let mut stream = Stream::new(Style::default());
/// assert!(stream.push("# Ti", 80).is_empty());
/// assert_eq!(stream.push("tle\nSome ", 80), ["# Title", ""]);
/// // What is open is drawn below, and redrawn when it has changed.
/// assert_eq!(stream.open(80), ["Some"]);
/// assert_eq!(stream.push("code:\n```sh\nls\ncd /t", 80), ["Some code:", "", "```", "ls"]);
/// assert_eq!(stream.open(80), ["cd /t"]);
/// stream.push("mp", 80);
/// assert_eq!(stream.finish(80), ["cd /tmp", "```", ""]);
/// ```
#[derive(Debug, Default)]
pub struct Stream {
    style: Style,
    /// The blocks that are not closed, or the line of code that has not ended.
    pub(super) open: String,
    code: Option<Code>,
    /// How much of what is open was returned already, in visible characters.
    returned: usize,
}

/// An open code block, all of whose complete lines are returned.
#[derive(Debug)]
struct Code {
    /// The characters that open it.
    fence: String,
    highlighter: Highlighter,
    is_empty: bool,
}

impl Stream {
    /// Creates the stream of an empty text.
    pub fn new(style: Style) -> Self {
        Self {
            style,
            ..Self::default()
        }
    }

    /// Adds text. Returns the lines, for a screen of this width, that no later text changes.
    pub fn push(&mut self, text: &str, width: usize) -> Vec<String> {
        self.open.push_str(text);
        // A block closes where a line ends.
        if !text.contains('\n') {
            return self.cut_open(width);
        }
        let mut lines = Vec::new();
        loop {
            if self.code.is_some() {
                lines.append(&mut self.code_lines(width));
                if self.code.is_some() {
                    break;
                }
            }
            let rest = self.open.split_off(closed(&self.open));
            let closed = std::mem::replace(&mut self.open, rest);
            lines.append(&mut render(&closed, width, self.style));
            self.code = self.begin_code();
            if self.code.is_none() {
                break;
            }
            lines.append(&mut self.fence(width));
        }
        lines = self.unreturned(lines);
        lines.append(&mut self.cut_open(width));
        lines
    }

    /// Returns the lines of an open block that has grown too long, up to its last word.
    fn cut_open(&mut self, width: usize) -> Vec<String> {
        if self.open.len() <= MAX_OPEN {
            return Vec::new();
        }
        let end = self.open.rfind(char::is_whitespace);
        let rest = self.open.split_off(end.unwrap_or(self.open.len()));
        let lines = self.open_lines(width);
        self.open = rest.trim_start().to_owned();
        self.unreturned(lines)
    }

    /// Returns what was not returned yet of the lines of closed blocks. What was returned beyond them belongs to
    /// the block behind.
    fn unreturned(&mut self, lines: Vec<String>) -> Vec<String> {
        let all: usize = lines.iter().map(|line| visible(line)).sum();
        let returned = self.returned;
        self.returned = returned.saturating_sub(all);
        not_returned(lines, returned)
    }

    /// Returns the lines of what is not returned yet, as far as it is known.
    pub fn open(&self, width: usize) -> Vec<String> {
        not_returned(self.open_lines(width), self.returned)
    }

    /// Returns the first lines of what is open, so that at most `max` are left: a long list is read from its
    /// beginning. Those with a table are not returned, because later rows set its columns. The lines may differ in
    /// little from those of the whole: whether items are set apart is not known before the last one.
    pub fn overflow(&mut self, width: usize, max: usize) -> Vec<String> {
        let mut lines = self.open(width);
        let surplus = lines.len().saturating_sub(max);
        let mut events = events(&self.open);
        let is_table = |event| matches!(event, Event::Start(Tag::Table(_)));
        if surplus == 0 || self.code.is_none() && events.any(is_table) {
            return Vec::new();
        }
        lines.truncate(surplus);
        self.returned += lines.iter().map(|line| visible(line)).sum::<usize>();
        lines
    }

    fn open_lines(&self, width: usize) -> Vec<String> {
        match &self.code {
            None => {
                let mut lines = render(&self.open, width, self.style);
                lines.pop_if(|line| line.is_empty());
                lines
            }
            Some(code) if code.is_end(&self.open) || self.open.is_empty() => Vec::new(),
            // It is coloured when it is complete.
            Some(code) => self.code_line(&code.highlighter.open_line(&self.open), width),
        }
    }

    /// Returns whether a block is open that later text may go on with.
    pub fn is_open(&self) -> bool {
        self.code.is_some() || !self.open.trim().is_empty()
    }

    /// Returns the lines of the rest. Then the text is empty again.
    pub fn finish(&mut self, width: usize) -> Vec<String> {
        let open = std::mem::take(&mut self.open);
        let returned = std::mem::take(&mut self.returned);
        let Some(mut code) = self.code.take() else {
            return not_returned(render(&open, width, self.style), returned);
        };
        let mut lines = Vec::new();
        if !code.is_end(&open) && !open.is_empty() {
            lines = self.code_line(&code.highlighter.line(&open), width);
            code.is_empty = false;
        }
        lines.append(&mut self.fence(width));
        lines.extend((!code.is_empty).then(String::new));
        not_returned(lines, returned)
    }

    /// Takes the complete lines of the open code block. Ends it if its end is among them.
    fn code_lines(&mut self, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let open = std::mem::take(&mut self.open);
        let mut rest = open.as_str();
        while let Some(code) = &mut self.code
            && let Some((line, after)) = rest
                .find('\n')
                .and_then(|end| rest.split_at_checked(end + 1))
        {
            rest = after;
            if code.is_end(line) {
                let is_empty = code.is_empty;
                self.code = None;
                lines.append(&mut self.fence(width));
                lines.extend((!is_empty).then(String::new));
            } else {
                code.is_empty = false;
                let mut renderer = Renderer::new(width, self.style);
                renderer.write_code_line(&code.highlighter.line(line));
                lines.append(&mut renderer.into_lines());
            }
        }
        rest.clone_into(&mut self.open);
        lines
    }

    fn code_line(&self, line: &[(Token, &str)], width: usize) -> Vec<String> {
        let mut renderer = Renderer::new(width, self.style);
        renderer.write_code_line(line);
        renderer.into_lines()
    }

    fn fence(&self, width: usize) -> Vec<String> {
        let mut renderer = Renderer::new(width, self.style);
        renderer.write_fence();
        renderer.into_lines()
    }

    /// Takes the line that opens a code block, if the text begins with it. An indented one stays: its lines
    /// lose their indent.
    fn begin_code(&mut self) -> Option<Code> {
        let start = self.open.len() - self.open.trim_start_matches('\n').len();
        let (line, rest) = self.open.get(start..)?.split_once('\n')?;
        let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
        let language = line.trim_start_matches(mark);
        let fence = line.get(..line.len() - language.len())?;
        if fence.len() < 3 || mark == '`' && language.contains('`') {
            return None;
        }
        let code = Code {
            fence: fence.to_owned(),
            highlighter: Highlighter::new(language.trim()),
            // Without colours there are its fences.
            is_empty: self.style.colour,
        };
        self.open = rest.to_owned();
        Some(code)
    }
}

impl Code {
    /// Whether this line ends the block.
    fn is_end(&self, line: &str) -> bool {
        let line = line.trim_end();
        let indent = line.len() - line.trim_start_matches(' ').len();
        let fence = line.trim_start_matches(' ');
        let mark = self.fence.chars().next().unwrap_or('`');
        indent < 4 && fence.len() >= self.fence.len() && fence.chars().all(|c| c == mark)
    }
}

/// The lines after so many visible characters: how many lines had these depends on the width, which may have
/// changed.
pub(crate) fn not_returned(mut lines: Vec<String>, mut returned: usize) -> Vec<String> {
    let is_returned = |line: &&String| {
        let left = (returned > 0).then(|| returned.checked_sub(visible(line)));
        returned = left.flatten().unwrap_or(returned);
        left.flatten().is_some()
    };
    let first = lines.iter().take_while(is_returned).count();
    lines.drain(..first);
    if let Some(line) = lines.first_mut().filter(|_| returned > 0) {
        *line = without_beginning(line, returned);
    }
    lines
}

/// A line without its first visible characters. Its colours stay.
fn without_beginning(line: &str, mut count: usize) -> String {
    let mut rest = String::new();
    let mut is_colour = false;
    for c in line.chars() {
        is_colour |= c == '\x1b';
        if is_colour {
            is_colour = c != 'm';
            rest.push(c);
        } else if count > 0 {
            count -= usize::from(is_counted(c));
        } else if !c.is_whitespace() || rest.ends_with(|c: char| c != 'm' && c != '\x1b') {
            rest.push(c);
        }
    }
    rest
}

/// The visible characters of a line that stay the same while the text grows and the width changes.
pub(crate) fn visible(line: &str) -> usize {
    let mut parts = line.split("\x1b[");
    let first = parts.next().unwrap_or_default();
    let rest = parts.filter_map(|part| Some(part.split_once('m')?.1));
    let characters = [first].into_iter().chain(rest).flat_map(str::chars);
    characters.filter(|c| is_counted(*c)).count()
}

/// Later text takes marks away, because it has their partners; bars, rules and bullets follow the width.
fn is_counted(c: char) -> bool {
    !c.is_whitespace() && !"│─•*_~`[]()<>#\\".contains(c)
}
