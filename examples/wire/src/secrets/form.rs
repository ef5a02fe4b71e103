//! [`is_key`]: whether a word has the form of a key: long, from letters of both cases and digits, and no words in it.

/// The least length of a key.
pub(super) const LEAST: usize = 20;
/// The least length of what follows a short word in a key without capital letters.
const LEAST_TAIL: usize = 24;

/// The bytes that keys are made of.
pub(super) const fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'~')
}

/// Returns whether a word of at least this length has letters and digits, and nothing that paths, versions and
/// sentences have.
pub(super) fn is_mixed(text: &str, least: usize) -> bool {
    let text = text.trim_end_matches('=');
    text.len() >= least
        && text.bytes().any(|it| it.is_ascii_digit())
        && text.bytes().any(|it| it.is_ascii_alphabetic())
        && !text.contains(|c: char| c.is_whitespace() || "/.:,;()[]{}<>#=".contains(c))
        && !is_uuid(text)
}

fn is_uuid(text: &str) -> bool {
    let parts = text.split('-').map(str::len);
    parts.eq([8, 4, 4, 4, 12]) && text.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
}

/// Returns whether a long word may be a key: a look that most words end.
pub(super) fn may_be_key(word: &[u8]) -> bool {
    let digits = word.iter().filter(|it| it.is_ascii_digit()).count();
    word.len() >= LEAST && digits > 0 && digits < word.len()
}

/// Returns whether a word is a key.
pub(super) fn is_key(word: &str) -> bool {
    let bytes = word.as_bytes();
    if !may_be_key(bytes) || word.starts_with("0x") || word.starts_with("AAAA") || names_hash(word)
    {
        return false;
    }
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    let (upper, lower) = (has(u8::is_ascii_uppercase), has(u8::is_ascii_lowercase));
    match (upper, lower) {
        (true, true) => is_random(word),
        // As in base 32.
        (true, false) => {
            word.starts_with(|c: char| c.is_ascii_uppercase())
                && digit_groups(bytes) > 1
                && !is_worded(word)
        }
        // A short word and digits of any base.
        (false, true) => {
            let cut = word.rfind(['_', '-']).map(|at| word.split_at(at + 1));
            cut.is_some_and(|(before, tail)| {
                let parts = before.split(['_', '-']);
                before.len() <= 16
                    && tail.len() >= LEAST_TAIL
                    && digit_groups(tail.as_bytes()) > 1
                    && parts.map(letters).all(|it| it.len() < 6 || !is_spoken(it))
            })
        }
        (false, false) => false,
    }
}

fn letters(part: &str) -> &str {
    part.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Returns whether a hash says what it is: `sha512-...`.
pub(super) fn names_hash(word: &str) -> bool {
    let (name, _) = word.split_once(['-', '_']).unwrap_or((word, ""));
    letters(name) != name && letters(name).eq_ignore_ascii_case("sha")
}

/// Returns whether letters of both cases and digits follow each other without order, and form no words.
pub(super) fn is_random(word: &str) -> bool {
    let class = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        _ => 2,
    };
    let classes = word.bytes().filter(u8::is_ascii_alphanumeric).map(class);
    let classes: Vec<_> = classes.collect();
    let changes = classes
        .windows(2)
        .filter(|pair| pair.first() != pair.last())
        .count();
    changes * 10 >= classes.len() * 3 && !is_worded(word)
}

fn digit_groups(bytes: &[u8]) -> usize {
    let groups = bytes.chunk_by(|one, other| one.is_ascii_digit() == other.is_ascii_digit());
    groups
        .filter(|it| it.first().is_some_and(u8::is_ascii_digit))
        .count()
}

/// Returns whether half of the letters are of words.
pub(super) fn is_worded(word: &str) -> bool {
    let (mut all, mut spoken) = (0, 0);
    // `HTTPServer` has two words, as has `readFile`.
    let bytes = word.as_bytes();
    let mut start = 0;
    for at in 1..=bytes.len() {
        let of = |at: usize| bytes.get(at).copied().unwrap_or(b' ');
        let (before, here, next) = (of(at - 1), of(at), of(at + 1));
        let is_end = !here.is_ascii_alphabetic()
            || here.is_ascii_uppercase()
                && (before.is_ascii_lowercase() || next.is_ascii_lowercase());
        if is_end || !before.is_ascii_alphabetic() {
            let part = word.get(start..at).unwrap_or_default();
            let part = part.trim_matches(|c: char| !c.is_ascii_alphabetic());
            all += part.len();
            spoken += if part.len() > 3 && is_spoken(part) {
                part.len()
            } else {
                0
            };
            start = at;
        }
    }
    spoken * 2 >= all
}

/// Returns whether letters could be spoken: with vowels, and not many consonants in a row.
fn is_spoken(part: &str) -> bool {
    let is_vowel = |byte: &u8| b"aeiouy".contains(&byte.to_ascii_lowercase());
    let mut runs = part
        .as_bytes()
        .chunk_by(|one, other| is_vowel(one) == is_vowel(other));
    part.bytes().any(|it| is_vowel(&it)) && runs.all(|run| run.len() < 4)
}
