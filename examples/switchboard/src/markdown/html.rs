//! [`html`]: Markdown as HTML for a page.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use ammonia::{Builder, UrlRelative};
use pulldown_cmark::{Alignment, CodeBlockKind, Event, Parser, Tag, TagEnd, TextMergeWithOffset};

use super::{Token, closed, highlight, options};

#[cfg(test)]
mod tests;

/// The deepest nesting of elements; what is deeper is shown at this depth.
const MAX_DEPTH: usize = 24;
/// The longest code to colour in a block that still grows, in bytes: it is coloured again and again.
const MAX_GROWING: usize = 16 * 1024;
/// What a link may lead to.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// What a text becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html {
    /// The part of the text that is [closed], in bytes.
    pub closed: usize,
    /// The closed part.
    pub done: String,
    /// The rest.
    pub open: String,
}

/// Renders a text that may still grow. HTML in it stays text, links open in a new tab and only lead to
/// the web or to mail, addresses of the web are links, and images are links, too. Only a few harmless elements
/// remain, whatever the text is: it has gone through a sanitiser.
///
/// ```
/// let page = switchboard::markdown::html("# Hi\n\n<b>*there*</b>\n");
/// assert_eq!(page.done, "<h1>Hi</h1>");
/// assert_eq!(page.open, "<p>&lt;b&gt;<em>there</em>&lt;/b&gt;</p>");
/// ```
#[must_use]
pub fn html(text: &str) -> Html {
    let closed = closed(text);
    let mut writer = Writer::default();
    let mut done = None;
    let events = Parser::new_ext(text, options()).into_offset_iter();
    for (event, range) in TextMergeWithOffset::new(events) {
        if done.is_none() && writer.ends.is_empty() && range.start >= closed {
            done = Some(std::mem::take(&mut writer.out));
            writer.is_growing = true;
        }
        writer.event(event);
    }
    let clean = |html: &str| SANITIZER.clean(html).to_string();
    Html {
        closed,
        done: clean(&done.unwrap_or_default()),
        open: clean(&writer.out),
    }
}

/// What remains. The writer makes nothing else, so this is the second of two walls.
static SANITIZER: LazyLock<Builder<'static>> = LazyLock::new(|| {
    let tags = [
        "a",
        "blockquote",
        "br",
        "code",
        "del",
        "em",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "li",
        "ol",
        "p",
        "pre",
        "span",
        "strong",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    let attributes = [
        ("a", HashSet::from(["href"])),
        ("ol", HashSet::from(["start"])),
        ("pre", HashSet::from(["data-language"])),
        ("th", HashSet::from(["scope"])),
    ];
    let aligned = HashSet::from(["center", "right"]);
    let tokens = TOKENS.iter().filter_map(|token| class(*token)).collect();
    let mut builder = Builder::empty();
    builder
        .tags(tags.into())
        .tag_attributes(attributes.into())
        .allowed_classes(HashMap::from([
            ("span", tokens),
            ("td", aligned.clone()),
            ("th", aligned),
        ]))
        .url_schemes(["http", "https", "mailto"].into())
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .set_tag_attribute_value("a", "target", "_blank");
    builder
});

const TOKENS: [Token; 9] = [
    Token::Plain,
    Token::Comment,
    Token::Keyword,
    Token::String,
    Token::Number,
    Token::Function,
    Token::Type,
    Token::Inserted,
    Token::Deleted,
];

/// The class of a kind of text in code.
const fn class(token: Token) -> Option<&'static str> {
    Some(match token {
        Token::Plain => return None,
        Token::Comment => "comment",
        Token::Keyword => "keyword",
        Token::String => "string",
        Token::Number => "number",
        Token::Function => "function",
        Token::Type => "type",
        Token::Inserted => "inserted",
        Token::Deleted => "deleted",
    })
}

/// Writes events as HTML, without blanks between blocks.
#[derive(Default)]
struct Writer {
    out: String,
    /// The ends of the elements that are open; empty for those that are not written.
    ends: Vec<Cow<'static, str>>,
    /// The language and the text of the block of code that is read.
    code: Option<(String, String)>,
    /// Whether the block may still grow.
    is_growing: bool,
    alignments: Vec<Alignment>,
    column: usize,
    is_head: bool,
    /// The links around this place; they do not nest.
    links: usize,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => {
                self.out.push_str("<code>");
                escape(&mut self.out, &code);
                self.out.push_str("</code>");
            }
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(true) => self.out.push_str("☑ "),
            Event::TaskListMarker(false) => self.out.push_str("☐ "),
            // Not among the options.
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.open("p"),
            Tag::Heading { level, .. } => self.open(level.to_string()),
            Tag::BlockQuote(_) => self.open("blockquote"),
            Tag::List(None) => self.open("ul"),
            Tag::List(Some(1)) => self.open("ol"),
            Tag::List(Some(start)) => self.open_with("ol", format_args!(" start=\"{start}\"")),
            Tag::Item => self.open("li"),
            Tag::Emphasis => self.open("em"),
            Tag::Strong => self.open("strong"),
            Tag::Strikethrough => self.open("del"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
                self.ends.push("".into());
            }
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.open("table");
            }
            Tag::TableHead => {
                (self.is_head, self.column) = (true, 0);
                self.out.push_str("<thead><tr>");
                self.ends.push("</tr></thead><tbody>".into());
            }
            Tag::TableRow => {
                self.column = 0;
                self.open("tr");
            }
            Tag::TableCell => self.cell(),
            // The text of an image is what it shows.
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.link(&dest_url),
            _ => self.ends.push("".into()),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::CodeBlock => {
                if let Some((language, code)) = self.code.take() {
                    self.code(&language, code.strip_suffix('\n').unwrap_or(&code));
                }
            }
            TagEnd::TableHead => self.is_head = false,
            TagEnd::Table => self.out.push_str("</tbody>"),
            TagEnd::Link | TagEnd::Image => self.links = self.links.saturating_sub(1),
            _ => {}
        }
        let end = self.ends.pop().unwrap_or_default();
        self.out.push_str(&end);
    }

    fn open(&mut self, name: impl Into<Cow<'static, str>>) {
        self.open_with(name, format_args!(""));
    }

    fn open_with(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        attributes: std::fmt::Arguments<'_>,
    ) {
        if self.ends.len() >= MAX_DEPTH {
            return self.ends.push("".into());
        }
        let name = name.into();
        let _ = write!(self.out, "<{name}{attributes}>");
        self.ends.push(format!("</{name}>").into());
    }

    fn cell(&mut self) {
        let alignment = self.alignments.get(self.column);
        self.column += 1;
        let class = match alignment {
            Some(Alignment::Center) => " class=\"center\"",
            Some(Alignment::Right) => " class=\"right\"",
            Some(Alignment::None | Alignment::Left) | None => "",
        };
        if self.is_head {
            self.open_with("th", format_args!(" scope=\"col\"{class}"));
        } else {
            self.open_with("td", format_args!("{class}"));
        }
    }

    fn link(&mut self, to: &str) {
        let lower = to.get(..8).unwrap_or(to).to_ascii_lowercase();
        let leads_out = SCHEMES.iter().any(|scheme| lower.starts_with(scheme));
        if leads_out && self.links == 0 {
            let mut href = String::new();
            escape(&mut href, to);
            self.open_with("a", format_args!(" href=\"{href}\""));
        } else {
            self.ends.push("".into());
        }
        self.links += 1;
    }

    fn text(&mut self, text: &str) {
        match &mut self.code {
            Some((_, code)) => code.push_str(text),
            None if self.links == 0 => self.linked(text),
            None => escape(&mut self.out, text),
        }
    }

    /// Writes a text, and makes links of the addresses in it.
    fn linked(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, address)) = next_address(rest) {
            escape(&mut self.out, before);
            self.link(address);
            escape(&mut self.out, address);
            self.end(TagEnd::Link);
            rest = rest.get(before.len() + address.len()..).unwrap_or_default();
        }
        escape(&mut self.out, rest);
    }

    fn code(&mut self, language: &str, code: &str) {
        let name = language.split(|c: char| c.is_whitespace() || ",{".contains(c));
        let name = name.into_iter().next().unwrap_or_default();
        self.out.push_str("<pre data-language=\"");
        escape(&mut self.out, name);
        self.out.push_str("\"><code>");
        if self.is_growing && code.len() > MAX_GROWING {
            escape(&mut self.out, code);
        } else {
            for (token, text) in highlight(language, code) {
                match class(token) {
                    Some(class) => {
                        let _ = write!(self.out, "<span class=\"{class}\">");
                        escape(&mut self.out, text);
                        self.out.push_str("</span>");
                    }
                    None => escape(&mut self.out, text),
                }
            }
        }
        self.out.push_str("</code></pre>");
    }
}

/// The first address of the web in a text, and what is before it.
fn next_address(text: &str) -> Option<(&str, &str)> {
    let mut places = text.match_indices("http").map(|(at, _)| at);
    places.find_map(|at| {
        let (before, from) = text.split_at_checked(at)?;
        let host = from.strip_prefix("http")?;
        let host = host.strip_prefix('s').unwrap_or(host).strip_prefix("://")?;
        let is_word = before.ends_with(char::is_alphanumeric);
        if is_word || !host.starts_with(char::is_alphanumeric) {
            return None;
        }
        let end = from.find(|c: char| c.is_whitespace() || "<>\"`".contains(c));
        let mut address = from.get(..end.unwrap_or(from.len()))?;
        // What ends a sentence, or brackets around the address, are no part of it.
        while let Some(last) = address.chars().next_back() {
            let is_closed = last == ')' && address.contains('(');
            if !".,;:!?)]}'*".contains(last) || is_closed {
                break;
            }
            address = address.strip_suffix(last)?;
        }
        Some((before, address))
    })
}

fn escape(out: &mut String, text: &str) {
    for part in text.split_inclusive(['&', '<', '>', '"']) {
        let mut plain = part.chars();
        let entity = match plain.next_back() {
            Some('&') => "&amp;",
            Some('<') => "&lt;",
            Some('>') => "&gt;",
            Some('"') => "&quot;",
            _ => {
                out.push_str(part);
                continue;
            }
        };
        out.push_str(plain.as_str());
        out.push_str(entity);
    }
}
