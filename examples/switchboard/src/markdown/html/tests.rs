//! What Markdown becomes in a page, and what never gets there.

use proptest::prelude::*;

use super::*;

fn whole(text: &str) -> String {
    let Html { done, open, .. } = html(text);
    done + &open
}

#[test]
fn markdown_becomes_html() {
    for (text, expected) in [
        ("", ""),
        ("one\ntwo", "<p>one\ntwo</p>"),
        ("a  \nb", "<p>a<br>b</p>"),
        (
            "**a** *b* ~~c~~ `d <e>`",
            "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d &lt;e&gt;</code></p>",
        ),
        ("# a\n\n---", "<h1>a</h1><hr>"),
        ("> a", "<blockquote><p>a</p></blockquote>"),
        (
            "- a\n  - b\n- [x] c\n- [ ] d",
            "<ul><li>a<ul><li>b</li></ul></li><li>☑ c</li><li>☐ d</li></ul>",
        ),
        ("3. a\n4. b", "<ol start=\"3\"><li>a</li><li>b</li></ol>"),
        (
            "|a|b|\n|-|:-:|\n|1|`2`|",
            "<table><thead><tr><th scope=\"col\">a</th><th scope=\"col\" class=\"center\">b</th></tr></thead>\
             <tbody><tr><td>1</td><td class=\"center\"><code>2</code></td></tr></tbody></table>",
        ),
        (
            "```rust,ignore\nfn a() {}\n```",
            "<pre data-language=\"rust\"><code><span class=\"keyword\">fn</span> \
             <span class=\"function\">a</span>() {}</code></pre>",
        ),
        (
            "```\n<b>\n\n```",
            "<pre data-language=\"\"><code>&lt;b&gt;\n</code></pre>",
        ),
        (
            "[a](https://b.test/?c=\"&d)",
            "<p><a href=\"https://b.test/?c=&quot;&amp;d\" target=\"_blank\" \
             rel=\"noopener noreferrer nofollow\">a</a></p>",
        ),
    ] {
        // The sanitiser decides the order of attributes.
        assert_eq!(attributes(&whole(text)), attributes(expected), "{text}");
    }
}

/// The tags with their attributes in order.
fn attributes(html: &str) -> Vec<Vec<String>> {
    let parts = html.split(['<', '>']).map(|part| {
        let mut words: Vec<_> = part.split(' ').map(str::to_owned).collect();
        words.sort();
        words
    });
    parts.collect()
}

#[test]
fn the_last_block_is_open() {
    let Html { closed, done, open } = html("# a\n\n- ü\n- c\n\nd **e");
    assert_eq!(closed, "# a\n\n- ü\n- c\n\n".len());
    assert_eq!(done, "<h1>a</h1><ul><li>ü</li><li>c</li></ul>");
    assert_eq!(open, "<p>d **e</p>");
}

#[test]
fn a_link_is_found_that_is_defined_at_the_end() {
    let html = html("[a] is good\n\nb\n\n[a]: https://a.test/");
    assert!(html.done.contains("href=\"https://a.test/\""), "{html:?}");
}

#[test]
fn html_is_text() {
    for text in [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick=\"x\">b</b>",
        "<!-- a -->\n<style>*{}</style>",
        "<svg><a href='javascript:x'>",
    ] {
        let shown = whole(text);
        let tags = shown.replace("<p>", "").replace("</p>", "");
        assert!(!tags.contains(['<', '>']), "{shown}");
        assert!(shown.contains("&lt;"), "{shown}");
    }
}

#[test]
fn a_link_leads_to_the_web_or_nowhere() {
    for to in [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\tscript:alert(1)",
        "&#106;avascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "//a.test",
        "/history",
        "#a",
    ] {
        for text in [
            format!("[a]({to})"),
            format!("![a](<{to}>)"),
            format!("[a]\n\n[a]: <{to}>"),
        ] {
            assert!(!whole(&text).contains("<a"), "{text}");
        }
    }
    for to in ["http://a.test", "HTTPS://a.test", "mailto:a@a.test"] {
        assert!(whole(&format!("<{to}>")).contains("<a "), "{to}");
    }
}

#[test]
fn an_image_is_a_link_and_links_do_not_nest() {
    let image = whole("![a *b*](https://c.test/d.png)");
    assert!(
        image.contains("<a href=\"https://c.test/d.png\""),
        "{image}"
    );
    assert!(image.contains(">a <em>b</em></a>"), "{image}");
    let badge = whole("[![a](https://b.test/c.png)](https://d.test)");
    assert_eq!(badge.matches("<a ").count(), 1, "{badge}");
    assert!(badge.contains("href=\"https://d.test\""), "{badge}");
}

#[test]
fn an_address_is_a_link() {
    for (text, address, shown) in [
        (
            "see https://a.test/b_c*d.",
            "https://a.test/b_c*d",
            "see <a",
        ),
        (
            "(http://a.test/?b=1&c=2)",
            "http://a.test/?b=1&amp;c=2",
            "</a>)",
        ),
        ("https://a.test/b_(c), d", "https://a.test/b_(c)", "</a>, d"),
        ("**https://a.test**", "https://a.test", "</a></strong>"),
        (
            "http http:// xhttp://b https://a.test",
            "https://a.test",
            "http http:// xhttp://b <a",
        ),
    ] {
        let html = whole(text);
        assert!(html.contains(&format!("href=\"{address}\"")), "{html}");
        assert!(html.contains(shown), "{html}");
        assert_eq!(html.matches("<a ").count(), 1, "{html}");
    }
    for text in [
        "`https://a.test`",
        "    https://a.test",
        "https:/a.test",
        "ahttps://a.test",
    ] {
        assert!(!whole(text).contains("<a "), "{text}");
    }
    let linked = whole("[https://a.test](https://b.test)");
    assert_eq!(linked.matches("<a ").count(), 1, "{linked}");
}

#[test]
fn deep_nesting_is_cut_and_its_text_is_not() {
    let quotes = format!("{}end", ">".repeat(20_000));
    let emphasis = format!("{}end{}", "*a ".repeat(2_000), "*".repeat(2_000));
    for text in [quotes, emphasis] {
        let shown = whole(&text);
        assert!(shown.contains("end"));
        let depth = shown.matches("<blockquote>").count() + shown.matches("<em>").count();
        assert!(depth <= MAX_DEPTH, "{depth}");
    }
}

#[test]
fn long_code_is_coloured_once_it_is_complete() {
    let code = format!("```rust\n{}", "fn a() {}\n".repeat(MAX_GROWING / 8));
    assert!(!html(&code).open.contains("<span"));
    assert!(html(&format!("{code}```\n\nb")).done.contains("<span"));
}

/// Whether nothing is in this HTML but what may be there.
fn is_tame(html: &str) -> bool {
    let tag = regex::Regex::new(
        "^(/?(blockquote|br|code|del|em|h[1-6]|hr|li|ol|p|pre|span|strong|table|tbody|td|th|thead|tr|ul|a)\
         ( (start=\"[0-9]+\"|data-language=\"[^\"]*\"|scope=\"col\"|target=\"_blank\"\
         |rel=\"noopener noreferrer nofollow\"|href=\"(?i:https?://|mailto:)[^\"]*\"\
         |class=\"[a-z]+\"))*)>",
    );
    let tag = tag.unwrap();
    html.split('<').skip(1).all(|part| tag.is_match(part))
}

proptest! {
    #[test]
    fn nothing_wild_gets_through(
        parts in proptest::collection::vec(
            prop_oneof![
                Just("<script>"), Just("</script>"), Just("<img src=x onerror=a()>"), Just("<svg/onload=a>"),
                Just("[a](javascript:b)"), Just("[a](http://b.test \"c\")"), Just("![x](https://y.test/\"z)"),
                Just("<a href=\"javascript:x\">"), Just("&lt;b&gt;"), Just("&#60;i&#62;"), Just("```html\n"),
                Just("```\" onclick=\"x\n"), Just("\n\n"), Just("\n"), Just("> "), Just("- "), Just("1. "),
                Just("|a|b|\n|-|-|\n|c|"), Just("**"), Just("`"), Just("~~"), Just("<!--"), Just("-->"),
                Just("<math><mtext>"), Just("<style>"), Just("<![CDATA["), Just("    "), Just("\u{0}"), Just("ü"),
                Just("# "), Just("[a]: data:x\n"), Just("[a]"), Just("<http://\"onclick=x>"), Just("\\"), Just("x"), Just("https://a.test"),
            ],
            0..24,
        )
    ) {
        let text = parts.concat();
        let rendered = html(&text);
        for part in [&rendered.done, &rendered.open] {
            prop_assert!(is_tame(part), "{}", part);
            // The writer has closed what it has opened, and the sanitiser has nothing to do.
            prop_assert_eq!(&SANITIZER.clean(part).to_string(), part);
        }
        prop_assert!(text.is_char_boundary(rendered.closed));
    }
}
