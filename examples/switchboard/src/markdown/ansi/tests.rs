//! What Markdown looks like in a terminal.

use proptest::prelude::*;
use pulldown_cmark::{Event, Tag};

use super::super::closed;
use super::stream::MAX_OPEN;
use super::*;

const PLAIN: Style = Style { colour: false };
const COLOUR: Style = Style { colour: true };

/// The lines without the last empty one, as one text.
fn shown(text: &str, width: usize) -> String {
    let mut lines = render(text, width, PLAIN);
    assert_eq!(lines.pop().as_deref(), Some(""));
    lines.join("\n")
}

/// A line without its SGR sequences, each of which is complete, and reset before the next one.
fn stripped(line: &str) -> String {
    let mut parts = line.split("\x1b[");
    let mut text = parts.next().unwrap().to_owned();
    let mut is_reset = true;
    for part in parts {
        let (codes, rest) = part.split_once('m').unwrap();
        assert!(
            codes.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "{line:?}"
        );
        assert_eq!(codes == "0", !is_reset, "{line:?}");
        is_reset = codes == "0";
        text.push_str(rest);
    }
    assert!(is_reset, "{line:?}");
    assert!(!text.contains(char::is_control), "{line:?}");
    text
}

#[test]
fn blocks_are_separated() {
    let text =
        "# Title\nOne *two*\n**three** `four`\n\n---\n## Next\n> quoted\n>\n> # more\n> > deep\n";
    let expected = "\
# Title

One *two* **three**
`four`

────────────────────

## Next

│ quoted
│
│ # more
│
│ │ deep";
    assert_eq!(shown(text, 20), expected);
}

#[test]
fn a_style_ends_with_its_text() {
    let lines = render("## A *b*\n`c` ~~d~~ e\\\n**f _g_**", 80, COLOUR);
    let expected = [
        "\x1b[1mA \x1b[0m\x1b[1;3mb\x1b[0m",
        "",
        "\x1b[36mc\x1b[0m \x1b[9md\x1b[0m e",
        "\x1b[1mf \x1b[0m\x1b[1;3mg\x1b[0m",
        "",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn items_begin_behind_their_markers() {
    let text = "\
1. one two three four
2. ten
   - nested words that wrap
     - [ ] do
     - [x] done and wrapped
- loose

  second
-
- last
";
    let expected = "\
1. one two three
   four
2. ten
   • nested words
     that wrap
     [ ] do
     [x] done and
         wrapped

• loose

  second

•
• last";
    assert_eq!(shown(text, 18), expected);
}

#[test]
fn code_keeps_its_lines_and_every_character() {
    let text = "```c\n\tif (a)\n\n  b = \"a long string of words\";\n```\n    old\n";
    let expected = "```\n    if (a)\n\n  b = \"a long string of words\";\n```\n\n```\nold\n```";
    assert_eq!(shown(text, 20), expected);
    let lines = render("```diff\n-a\n+b\n```", 80, COLOUR);
    assert_eq!(lines[..2], ["\x1b[31m-a\x1b[0m", "\x1b[32m+b\x1b[0m"]);
    for unknown in ["```\na b\n```", "```text\na b\n```", "    a b"] {
        let marked = ["\x1b[36ma b\x1b[0m", ""];
        assert_eq!(render(unknown, 80, COLOUR), marked, "{unknown}");
    }
}

#[test]
fn a_table_fits_into_the_screen() {
    let text = "\
| Name | N | What it does |
|------|--:|:------------:|
| `cut` | 12 | cuts words |
| 名前 | 3 | a<br>b |
";
    let wide = "\
Name  │  N │ What it does
──────┼────┼─────────────
`cut` │ 12 │  cuts words
──────┼────┼─────────────
名前  │  3 │      a
      │    │      b";
    assert_eq!(shown(text, 40), wide);
    let narrow = "\
Name  │  N │ What it
      │    │  does
──────┼────┼────────
`cut` │ 12 │  cuts
      │    │  words
──────┼────┼────────
名前  │  3 │    a
      │    │    b";
    assert_eq!(shown(text, 20), narrow);
    let records = "\
Name: `cut`
N: 12
What it does:
cuts words

Name: 名前
N: 3
What it does: a
b";
    assert_eq!(shown(text, 15), records);
}

#[test]
fn a_link_shows_its_target() {
    let text = "[docs](https://e.com/a) <https://e.com> <ann@e.com> [](/b) ![cat](c.png) \
        [https://good.com](https://bad.com) ![](data:image/png;base64,AAAA)";
    let expected = "docs (https://e.com/a) https://e.com ann@e.com /b cat (c.png) \
        https://good.com (https://bad.com) data:image/png,…";
    assert_eq!(shown(text, 200), expected);
    let address = format!("https://e.com/{}", "a".repeat(50));
    let rows = render(&address, 20, COLOUR);
    assert_eq!(rows.concat(), address);
}

#[test]
fn a_model_cannot_control_the_terminal() {
    let text = "\x1b[2J&#27;]8;;x `\u{9b}31m` [a](<x y>)\n\n```\n\x1b]0;t\x07\r\n```\n<b onclick>\u{202e}</b>";
    let expected = "\\u{1b}[2J\\u{1b}]8;;x `\\u{9b}31m` a (x y)\n\n```\n\\u{1b}]0;t\\u{7}\n```\n\n<b onclick>\\u{202e}</b>";
    assert_eq!(shown(text, 200), expected);
}

#[test]
fn nesting_stops_at_the_edge_of_the_screen() {
    let lists: String = (0..40)
        .map(|depth| format!("{}- i{depth}\n", "  ".repeat(depth)))
        .collect();
    let quotes = ">".repeat(5_000) + " deep";
    for text in [&*lists, &quotes, &"- ".repeat(500)] {
        for line in render(text, 20, COLOUR) {
            assert!(stripped(&line).width() <= 20, "{line:?}");
        }
    }
    assert!(shown(&lists, 20).contains("i39"));
    assert!(shown(&quotes, 20).contains("deep"));
}

#[test]
fn plain_text_is_wrapped_at_words() {
    assert_eq!(wrap("", 20, "> ", "  "), [">"]);
    let text = "one two three\nfour  five\n\n  six seven-and-no-more";
    let expected = [
        "> one two",
        "  three",
        "  four  five",
        "",
        "    six",
        "  seven-and-n",
        "  o-more",
    ];
    assert_eq!(wrap(text, 13, "> ", "  "), expected);
    let expected = ["one two", "    three", "    four"];
    assert_eq!(wrap("one two three four", 9, "", "    "), expected);
    assert_eq!(wrap("123456789", 9, "", "    "), ["123456789"]);
    assert_eq!(wrap("你好世界。", 8, "", ""), ["你好世", "界。"]);
    assert_eq!(
        wrap("e\u{301}e\u{301}e\u{301}", 2, "", ""),
        ["e\u{301}e\u{301}", "e\u{301}"]
    );
    assert_eq!(wrap("a\tb\x1b", 20, "", ""), ["a b\\u{1b}"]);
}

#[test]
fn a_diff_shows_what_is_added_and_removed() {
    let unified = "--- a\n+++ b\n@@ -1 +1 @@\n same\n--- gone\n+\tcome\x1b\n\\ No newline\n";
    let expected = [
        "\x1b[1m--- a\x1b[0m",
        "\x1b[1m+++ b\x1b[0m",
        "\x1b[36m@@ -1 +1 @@\x1b[0m",
        " same",
        "\x1b[31m--- gone\x1b[0m",
        "\x1b[32m+   come\\u{1b}\x1b[0m",
        "\x1b[2m\\ No newline\x1b[0m",
    ];
    assert_eq!(diff(unified, 40, COLOUR), expected);
    assert_eq!(diff("+0123456789 -rm", 10, PLAIN), ["+01234567", "↳89 -rm"]);
}

#[test]
fn a_block_taller_than_the_screen_is_returned_from_its_beginning() {
    let items = 1..=40;
    let text: String = items
        .map(|item| format!("{item}. item **{item}** of many\n"))
        .collect();
    for (width, later) in [(40, 40), (40, 22)] {
        let mut stream = Stream::new(COLOUR);
        let mut lines = Vec::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let width = if number < 20 { width } else { later };
            lines.append(&mut stream.push(line, width));
            lines.append(&mut stream.overflow(width, 8));
            assert!(stream.open(width).len() <= 8);
        }
        assert!(lines.len() >= 32, "{lines:#?}");
        lines.append(&mut stream.finish(later));
        let squeezed = |lines: &[String]| -> String {
            let lines = lines.iter().map(|line| stripped(line).replace(' ', ""));
            lines.collect()
        };
        assert_eq!(squeezed(&lines), squeezed(&render(&text, 40, COLOUR)));
    }
}

#[test]
fn a_narrower_screen_repeats_no_part_of_a_row() {
    let words: Vec<_> = (100..200).map(|number| number.to_string()).collect();
    let mut stream = Stream::new(PLAIN);
    let mut lines = Vec::new();
    for (number, word) in words.iter().enumerate() {
        let width = [100, 60, 34, 120, 80][number / 20];
        lines.append(&mut stream.push(&format!("{word} "), width));
        lines.append(&mut stream.overflow(width, 2));
    }
    lines.append(&mut stream.finish(80));
    let shown = lines.join(" ");
    let shown: Vec<_> = shown.split_whitespace().collect();
    assert_eq!(shown, words);
}

/// Streams words with something before and after them on screens of these widths, and returns the words shown.
fn streamed(before: &str, after: &str, widths: [usize; 4], style: Style) -> Vec<String> {
    let mut stream = Stream::new(style);
    let mut lines = stream.push(before, widths[0]);
    for number in 0..160 {
        let width = widths[number / 40];
        lines.append(&mut stream.push(&format!("w{number:03} "), width));
        lines.append(&mut stream.overflow(width, 8));
    }
    lines.append(&mut stream.push(after, widths[3]));
    lines.append(&mut stream.finish(widths[3]));
    let lines = lines.iter().map(|line| stripped(line));
    let words = lines.collect::<Vec<_>>().join(" ");
    let words = words.split(|c: char| !c.is_alphanumeric());
    let is_word = |word: &&str| word.starts_with('w');
    words.filter(is_word).map(str::to_owned).collect()
}

#[test]
fn a_mark_that_is_closed_late_takes_no_word_away() {
    let words: Vec<_> = (0..160).map(|number| format!("w{number:03}")).collect();
    for style in [PLAIN, COLOUR] {
        for (before, after) in [
            ("2*", "3*"),
            ("**", "end**"),
            ("`", "end`"),
            ("~~", "end~~"),
            ("[", "end](http://x)"),
            ("> text\n>\n> ---\n>\n> ", ""),
            ("- text\n\n  ---\n\n  ", ""),
        ] {
            for widths in [[40; 4], [80, 40, 60, 100]] {
                let shown = streamed(before, after, widths, style);
                assert_eq!(shown, words, "{before:?} {widths:?}");
            }
        }
    }
}

#[test]
fn a_block_behind_a_short_one_is_shown_once() {
    let words: Vec<_> = (0..160).map(|number| format!("w{number:03}")).collect();
    for before in ["short\n\n**Note:** ", "one\n\n> ", "a\n\n1. "] {
        for widths in [[80; 4], [40; 4]] {
            let shown = streamed(before, "\n\n- end", widths, COLOUR);
            assert_eq!(shown, words, "{before:?} {widths:?}");
        }
    }
}

#[test]
fn a_table_is_kept_whole_at_any_width() {
    let row = "|w1 and more words|w2 and more words|w3|w4|\n";
    let text = "|head a|head b|c|d|\n|-|-|-|-|\n".to_owned() + &row.repeat(20);
    let mut stream = Stream::new(PLAIN);
    stream.push(&text, 80);
    for width in [80, 40, 24] {
        assert_eq!(stream.overflow(width, 8), [""; 0]);
    }
}

#[test]
fn an_endless_paragraph_is_not_kept() {
    let mut stream = Stream::new(PLAIN);
    let mut shown = String::new();
    for _ in 0..20_000 {
        shown += &stream.push("word ", 80).concat();
        assert!(stream.open.len() <= MAX_OPEN + 5);
    }
    shown += &stream.finish(80).concat();
    assert_eq!(shown.matches("word").count(), 20_000);
    let code = "```\n".to_owned() + &"x".repeat(10 * MAX_OPEN);
    let shown = stream.push(&code, 80).concat() + &stream.finish(80).concat();
    assert_eq!(shown.matches('x').count(), 10 * MAX_OPEN);
}

#[test]
fn a_table_is_returned_when_its_columns_are_known() {
    let mut stream = Stream::new(PLAIN);
    stream.push(&format!("|a|b|\n|-|-|\n{}", "|1|2|\n".repeat(20)), 40);
    assert_eq!(stream.overflow(40, 8), [""; 0]);
    let lines = stream.push("|a long cell|2|\n\nend", 40);
    assert_eq!((lines.len(), &*lines[1]), (24, "────────────┼──"));
}

/// Whether there are lines of code, which are as long as they are.
fn has_code(text: &str) -> bool {
    super::super::events(text).any(|event| matches!(event, Event::Start(Tag::CodeBlock(_))))
}

/// A block of Markdown around words.
fn block() -> impl Strategy<Value = String> {
    let words = proptest::collection::vec("[a-z0-9]{1,9}|[漢字語]{1,4}|é👍", 1..12);
    (words, 0..12).prop_map(|(words, kind)| {
        let text = words.join(" ");
        let lines = |before: &str| {
            words
                .iter()
                .map(|word| format!("{before}{word}\n"))
                .collect::<String>()
        };
        match kind {
            0 => format!("# {text}"),
            1 => lines("- "),
            2 => lines("1. "),
            3 => words
                .iter()
                .enumerate()
                .map(|(depth, word)| format!("{}- {word}\n", "  ".repeat(depth)))
                .collect(),
            4 => lines("> "),
            5 => format!("```rs\n{}```", lines("  ")),
            6 => format!(
                "| {} |\n|{}\n| {} |",
                words.join(" | "),
                "--|".repeat(words.len()),
                words.join(" | ")
            ),
            7 => format!("**{text}**"),
            8 => format!("[{text}](http://{})", words.concat()),
            9 => lines("- [x] "),
            10 => format!("- {text}\n\n  ```\n  {text}\n  ```\n"),
            _ => format!("`{text}` <b>{text}</b>"),
        }
    })
}

proptest! {
    #[test]
    fn no_word_is_lost(block in block(), width in 20_usize..100) {
        let lines = render(&block, width, COLOUR);
        let squeezed = |text: &str| text.replace([' ', '│'], "");
        let shown: String = lines.iter().map(|line| squeezed(&stripped(line))).collect();
        for word in block.split(|c: char| !c.is_ascii_alphanumeric()) {
            let is_syntax = ["rs", "x", "1"].contains(&word);
            prop_assert!(is_syntax || shown.contains(word), "{word} in {lines:#?}");
        }
        for character in "漢字語é👍".chars() {
            let count = |text: &str| text.matches(character).count();
            prop_assert!(count(&shown) >= count(&block), "{character} in {lines:#?}");
        }
    }

    #[test]
    fn lines_fit_and_parts_make_the_whole(
        blocks in proptest::collection::vec(block(), 1..4),
        noise in "([a-z漢\u{301}👩\u{200d} `#*_|~>\\-<!:&\u{1b}\t\u{9c}]{0,12}(\n|\n\n|)){0,8}",
        width in 20_usize..100,
    ) {
        let text = format!("{}\n\n{noise}", blocks.join("\n\n"));
        let lines = render(&text, width, COLOUR);
        for line in &lines {
            let line = stripped(line);
            prop_assert!(line.width() <= width || has_code(&text), "{line:?}");
        }
        let (before, after) = text.split_at(closed(&text));
        let mut parts = render(before, width, COLOUR);
        parts.append(&mut render(after, width, COLOUR));
        prop_assert_eq!(parts, lines);
    }

    #[test]
    fn a_growing_text_has_the_lines_of_the_whole(
        blocks in proptest::collection::vec(block(), 1..5),
        noise in "((~~~|```)(rs|)\n|```\n|  ~~~~ \n|  let \"a\"\n|/\\*\n|\n|- a\n|> b\n|c){0,9}",
        width in 20_usize..100,
        step in 1_usize..20,
    ) {
        let text = format!("{}\n\n{noise}", blocks.join("\n\n"));
        let mut stream = Stream::new(COLOUR);
        let mut lines = Vec::new();
        let characters: Vec<_> = text.chars().collect();
        for part in characters.chunks(step) {
            lines.append(&mut stream.push(&String::from_iter(part), width));
            for line in stream.open(width) {
                prop_assert!(stripped(&line).width() <= width || has_code(&text), "{line:?}");
            }
        }
        lines.append(&mut stream.finish(width));
        prop_assert_eq!(lines, render(&text, width, COLOUR));
        prop_assert_eq!(stream.finish(width), Vec::<String>::new());
    }

    #[test]
    fn wrapped_text_keeps_its_words(text in "[a-z漢é\u{1b}\t\n ]{0,80}", width in 20_usize..60) {
        let lines = wrap(&text, width, "* ", "      ");
        for line in &lines {
            prop_assert!(line.width() <= width, "{line:?}");
        }
        let words = |text: &str| text.replace(char::is_whitespace, "");
        let expected = words(&text.replace('\x1b', "\\u{1b}"));
        prop_assert_eq!(words(&lines.concat())[1..].to_owned(), expected);
    }
}
