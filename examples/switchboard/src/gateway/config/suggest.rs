//! "Did you mean": the known key that is closest to an unknown one.

/// Longest unknown key to compare. The known ones are much shorter.
const MAX_LENGTH: usize = 40;

/// Returns the closest known key, if it is close: at most one typing error for every three
/// characters.
pub(super) fn nearest<'k>(unknown: &str, known: &[&'k str]) -> Option<&'k str> {
    let unknown: Vec<char> = unknown
        .chars()
        .take(MAX_LENGTH + 1)
        .map(|c| {
            if c == '-' {
                '_'
            } else {
                c.to_ascii_lowercase()
            }
        })
        .collect();
    if unknown.is_empty() || unknown.len() > MAX_LENGTH {
        return None;
    }
    let near = known.iter().filter_map(|key| {
        let letters: Vec<char> = key.chars().collect();
        let distance = distance(&unknown, &letters);
        let allowed = (letters.len() / 3).max(1);
        let near = distance <= allowed && distance < letters.len();
        near.then_some((distance, *key))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, key)| key)
}

/// Returns how many characters must be added, dropped, changed or swapped with their neighbour.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (row, x) in a.iter().enumerate() {
        let mut line = Vec::with_capacity(above.len());
        let mut left = row + 1;
        line.push(left);
        for (column, y) in b.iter().enumerate() {
            let at = |line: &[usize], column: usize| line.get(column).copied().unwrap_or(0);
            let mut best = at(&above, column) + usize::from(x != y);
            best = best.min(at(&above, column + 1) + 1).min(left + 1);
            if column > 0 && previous == Some(y) && b.get(column - 1) == Some(x) {
                best = best.min(at(&before, column - 1) + 1);
            }
            line.push(best);
            left = best;
        }
        before = std::mem::replace(&mut above, line);
        previous = Some(x);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(a: &str, b: &str) -> usize {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        distance(&chars(a), &chars(b))
    }

    #[test]
    fn a_distance_counts_typing_errors() {
        assert_eq!(far("", ""), 0);
        assert_eq!(far("", "abc"), 3);
        assert_eq!(far("model", "model"), 0);
        assert_eq!(far("modle", "model"), 1);
        assert_eq!(far("mdel", "model"), 1);
        assert_eq!(far("modeel", "model"), 1);
        assert_eq!(far("port", "bind"), 4);
    }

    #[test]
    fn near_keys_are_found_and_far_ones_are_not() {
        let known = ["model", "max_tokens", "id", "bind"];
        assert_eq!(nearest("modle", &known), Some("model"));
        assert_eq!(nearest("Max-Tokens", &known), Some("max_tokens"));
        assert_eq!(nearest("maxtoken", &known), Some("max_tokens"));
        assert_eq!(nearest("ib", &known), Some("id"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest(&"m".repeat(100_000), &known), None);
    }
}
