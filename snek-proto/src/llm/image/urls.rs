//! Addresses of images in a text.

use std::ops::Range;

const EXTENSIONS: [&str; 7] = ["png", "jpg", "jpeg", "gif", "bmp", "webp", "svg"];

/// Returns the addresses of images in a text, in order, with repetitions.
///
/// The specification's pattern, `https?://\S+\.(?:png|jpg|jpeg|gif|bmp|webp|svg)(?:\?\S*)?`, as it
/// stands: case counts, each address reaches as far as it can (`http://a.png,http://b.jpg` is one),
/// anything may follow the extension (`x.jpegs` gives `x.jpeg`), and a query extends to the next
/// white space. All trailing `.`, `'` and `"` are removed afterwards. Takes time linear in the
/// length of the text.
///
/// ```
/// let text = r#"see "https://example.com/a.png?s=1" and http://b/c.gif."#;
/// assert_eq!(
///     snek_proto::llm::image::extract_urls(text),
///     ["https://example.com/a.png?s=1", "http://b/c.gif"]
/// );
/// ```
#[must_use]
pub fn extract_urls(text: &str) -> Vec<&str> {
    find_urls(text)
        .filter_map(|range| text.get(range))
        .collect()
}

/// Returns the positions of the addresses that [`extract_urls`] returns.
pub(super) fn find_urls(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    // A match never goes over white space, and takes the last extension before it. So there is at
    // most one in each stretch without white space, and it starts at the first scheme.
    let mut start = 0;
    text.split(is_space).filter_map(move |token| {
        let at = start;
        // Every white space is counted with its length: it lies between this token and the next.
        start += token.len();
        start += text
            .get(start..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        let found = find_in(token)?;
        Some(at + found.start..at + found.end)
    })
}

fn find_in(token: &str) -> Option<Range<usize>> {
    let (start, after_scheme) = token.match_indices("http").find_map(|(at, _)| {
        let rest = token.get(at + 4..)?;
        let colon = rest.strip_prefix('s').unwrap_or(rest);
        let rest = colon.strip_prefix("://")?;
        Some((at, token.len() - rest.len()))
    })?;
    let rest = token.get(after_scheme..)?;
    // At least one character stands between the scheme and the dot.
    let (dot, extension) = rest.rmatch_indices('.').find_map(|(dot, _)| {
        let after = rest.get(dot + 1..)?;
        let extension = EXTENSIONS.iter().find(|name| after.starts_with(**name))?;
        (dot > 0).then_some((dot, extension))
    })?;
    let mut end = after_scheme + dot + 1 + extension.len();
    if token.get(end..)?.starts_with('?') {
        end = token.len();
    }
    let url = token.get(start..end)?.trim_end_matches(['.', '\'', '"']);
    Some(start..start + url.len())
}

/// Returns whether the pattern's `\S` excludes a character: Python counts four control characters
/// as white space that Unicode does not.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    #[test]
    fn addresses_are_found_as_the_pattern_has_them() {
        for (text, expected) in [
            ("", &[][..]),
            ("http://a.png", &["http://a.png"]),
            ("http://.png", &[]),
            ("http://..png", &["http://..png"]),
            ("http://A.PNG HTTPS://a.png", &[]),
            ("xhttp://a.pnghttp://b.jpg", &["http://a.pnghttp://b.jpg"]),
            ("http://a/x.jpegs", &["http://a/x.jpeg"]),
            ("http://a/x.png.zip#f", &["http://a/x.png"]),
            ("(http://a/x.png?y),", &["http://a/x.png?y),"]),
            ("'http://a/x.png?y.\"'", &["http://a/x.png?y"]),
            ("http://a/x.png?y=z.jpg&w", &["http://a/x.png?y=z.jpg"]),
            (
                "http://a.png\u{1c}http://a.png\u{a0}http://é.gif",
                &["http://a.png", "http://a.png", "http://é.gif"],
            ),
        ] {
            assert_eq!(extract_urls(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_megabyte_of_schemes_is_read_in_linear_time() {
        // Quadratic work would take minutes here.
        for piece in [
            "https://",
            "http://.png",
            ".png",
            "http://a.",
            "http",
            "a.png?",
        ] {
            let text = piece.repeat(1_000_000 / piece.len());
            assert!(extract_urls(&text).len() <= 1);
            let text = format!("https://{text} ");
            assert!(extract_urls(&text).len() <= 1);
        }
    }

    proptest! {
        #[test]
        fn they_are_what_the_pattern_finds(
            text in r#"(https?://|http|://|\.|\.png|\.jpe?g|\.svg|\?|[ \n\x1c\x1f\x{85}\u{2028}]|é|x|['"]|https://x\.webp){0,14}"#,
        ) {
            let pattern = r"https?://[^\s\x1c-\x1f]+\.(?:png|jpg|jpeg|gif|bmp|webp|svg)(?:\?[^\s\x1c-\x1f]*)?";
            let expected: Vec<_> = Regex::new(pattern)
                .unwrap()
                .find_iter(&text)
                .map(|found| found.as_str().trim_end_matches(['.', '\'', '"']))
                .collect();
            prop_assert_eq!(extract_urls(&text), expected);
        }
    }
}
