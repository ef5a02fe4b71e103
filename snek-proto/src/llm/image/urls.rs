//! Addresses of images in a text.

use std::ops::Range;

/// What the address of an image ends with, behind a dot.
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
    // An address has no white space, and reaches as far as it can: there is at most one between two spaces.
    let mut next = 0;
    text.split_inclusive(is_space).filter_map(move |word| {
        let at = next;
        next += word.len();
        let found = find_url(word.trim_end_matches(is_space))?;
        Some(at + found.start..at + found.end)
    })
}

/// Returns the position of the address in a text without white space.
fn find_url(word: &str) -> Option<Range<usize>> {
    let scheme = |(at, _)| {
        let before = word.get(..at)?;
        let name = ["https", "http"]
            .into_iter()
            .find(|name| before.ends_with(name))?;
        Some((at - name.len(), at + "://".len()))
    };
    let (start, host) = word.match_indices("://").find_map(scheme)?;
    let extension = |(dot, _)| {
        let after = word.get(dot + 1..)?;
        let found = EXTENSIONS.into_iter().find(|it| after.starts_with(it))?;
        Some((dot, dot + 1 + found.len()))
    };
    let (dot, mut end) = word.rmatch_indices('.').find_map(extension)?;
    if dot <= host {
        return None;
    }
    if word.get(end..)?.starts_with('?') {
        end = word.len();
    }
    let url = word.get(start..end)?.trim_end_matches(['.', '\'', '"']);
    Some(start..start + url.len())
}

/// Returns whether the pattern's `\S` excludes a character: Python counts four control characters
/// as white space that Unicode does not.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_match_the_pattern() {
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
    fn a_megabyte_of_schemes_takes_linear_time() {
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
}
