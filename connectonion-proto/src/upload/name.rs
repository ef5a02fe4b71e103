//! Names of files, made safe.

use crate::console::is_hidden;

/// The longest name on the disk, in bytes: common file systems accept it.
const MAX_NAME: usize = 255;
/// The length of the number before it, with its underscore.
const PREFIX: usize = 33;
/// The longest ending that is kept when a name is cut, in bytes.
const MAX_ENDING: usize = 16;
/// The longest name in a message, in characters.
const MAX_SHOWN: usize = 100;

/// Returns the last part of a name, made harmless; `None` if it is not the name of a file.
///
/// Both kinds of slashes separate a path. Replaced are control characters, characters that change
/// the direction of text or are invisible, and those that are special to Windows, to markup or to a
/// shell's quotes. Names that a system reserves are safe, because a number precedes them.
pub(super) fn safe(sent: &str) -> Option<String> {
    if sent.contains('\0') {
        return None;
    }
    let last = sent.rsplit(['/', '\\']).next().unwrap_or(sent);
    let name = last.trim().trim_end_matches(['.', ' ']);
    if name.is_empty() {
        // Also "." and "..".
        return None;
    }
    let harmless = |c| if is_harmful(c) { '_' } else { c };
    let name: String = name.chars().map(harmless).collect();
    Some(cut(name))
}

/// Returns the original name, made fit for a message.
pub(super) fn printable(sent: &str) -> String {
    let harmless = |c| if is_hidden(c) { '_' } else { c };
    let mut shown: String = sent.chars().take(MAX_SHOWN).map(harmless).collect();
    if sent.chars().nth(MAX_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

fn is_harmful(c: char) -> bool {
    is_hidden(c) || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '`')
}

/// Shortens a name in the middle, so that its ending stays.
fn cut(name: String) -> String {
    const ROOM: usize = MAX_NAME - PREFIX;
    if name.len() <= ROOM {
        return name;
    }
    let ending = name.rfind('.').filter(|at| name.len() - at <= MAX_ENDING);
    let (stem, ending) = name.split_at(ending.unwrap_or(name.len()));
    let mut ends = (0..=ROOM - ending.len()).rev();
    // The last one between two characters.
    let stem = ends.find_map(|end| stem.get(..end)).unwrap_or_default();
    let stem = if ending.is_empty() {
        stem.trim_end_matches(['.', ' '])
    } else {
        stem
    };
    [stem, ending].concat()
}
