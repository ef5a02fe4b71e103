//! Markdown of language models: [`events`] reads it, [`closed`] says which part of a growing text is
//! complete, and `highlight` finds what to colour in code. [`code`] and [`fenced`] put into Markdown what
//! comes from elsewhere.

pub mod ansi;
mod highlight;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::text::{printable, printable_lines};

pub use highlight::{Highlighter, Token, preload};

/// What is understood beyond `CommonMark`.
fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Parses a text. HTML in it is text.
pub fn events(text: &str) -> impl Iterator<Item = Event<'_>> {
    Parser::new_ext(text, options()).map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Event::Text(html),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        other => other,
    })
}

/// Returns the length of the part of a growing text that no later text changes: everything before its
/// last block. A line without its end counts only if it begins with a letter, because it may still become
/// part of the block above: `1` an item, `|` a row. Later text may still define a link that the part refers to.
///
/// ```
/// use switchboard::markdown::closed;
/// assert_eq!(closed("# Title\n\nA paragraph that gr"), "# Title\n\n".len());
/// assert_eq!(closed("```rust\nfn main() {}\n\n"), 0);
/// ```
pub fn closed(text: &str) -> usize {
    let line = text.rfind('\n').map_or(0, |end| end + 1);
    let (lines, rest) = text.split_at(line);
    let is_words = rest.trim_start().starts_with(char::is_alphabetic);
    let text = if is_words { text } else { lines };
    let mut depth = 0_usize;
    let mut last = 0;
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 {
            last = range.start;
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => {
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
    }
    // A block that is indented begins behind its blanks.
    let line = text.get(..last).and_then(|before| before.rfind('\n'));
    line.map_or(0, |end| end + 1)
}

/// Returns untrusted text, such as the name of a file, as it is in a line of Markdown: nothing in it is
/// markup or ends the line.
///
/// ```
/// use switchboard::markdown::code;
/// assert_eq!(code("pkg/__init__.py"), "`pkg/__init__.py`");
/// assert_eq!(code("a`\n# b"), "``a`\\n# b``");
/// ```
pub fn code(text: &str) -> String {
    let text = printable(text);
    let mark = "`".repeat(longest_run(&text) + 1);
    // One blank is taken off again at both ends, if there is one at both.
    let is_padded = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty();
    let pad = if is_padded { " " } else { "" };
    format!("{mark}{pad}{text}{pad}{mark}")
}

/// Returns a block of untrusted code in Markdown, which nothing in the code ends, and whose lines are those of
/// the code.
pub fn fenced(language: &str, code: &str) -> String {
    let code = printable_lines(code.trim_end_matches('\n'));
    let fence = "`".repeat(3.max(longest_run(&code) + 1));
    format!("{fence}{language}\n{code}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_block_is_open() {
        for (text, open) in [
            ("", ""),
            ("one", "one"),
            ("one\n\ntwo", "two"),
            ("one\n- a\n- b", "- a\n- b"),
            ("- a\n\n- b\n", "- a\n\n- b\n"),
            ("- a\n\ntwo", "two"),
            ("# a\n---\n", "---\n"),
            ("a\n\n    code", "    code"),
            (
                "a\n\n| a | b |\n|---|---|\n| 1 |",
                "| a | b |\n|---|---|\n| 1 |",
            ),
            ("a\n\n```\n\nb\n\nc", "```\n\nb\n\nc"),
            ("```\na\n```\nb", "b"),
            ("1. a\n\n2", "1. a\n\n2"),
            ("a\n\nb\n#", "b\n#"),
        ] {
            assert_eq!(&text[closed(text)..], open, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_in_a_line_is_its_own_text(name in "[a-z_*`# \\\\<&!\\[\\]().-]{1,12}") {
            let line = format!("I want to create {} (+1):", code(&name));
            let events: Vec<_> = events(&line).collect();
            let text = |event: &Event<'_>| match event {
                Event::Code(text) => Some(text.to_string()),
                _ => None,
            };
            prop_assert_eq!(events.len(), 5, "{:?}", events);
            // A blank name loses nothing but blanks.
            let shown = events.iter().find_map(text).unwrap();
            prop_assert_eq!(shown.trim(), name.trim());
        }

        #[test]
        fn closed_blocks_read_the_same_with_and_without_the_rest(
            blocks in proptest::collection::vec("[a-z `#*_|~-]{0,12}(\n[a-z `#>*_|-]{0,12}){0,2}", 1..6)
        ) {
            let text = blocks.join("\n\n");
            let end = closed(&text);
            let (before, after) = text.split_at(end);
            let parts: Vec<_> = events(before).chain(events(after)).collect();
            prop_assert_eq!(parts, events(&text).collect::<Vec<_>>());
        }
    }
}
