//! [`Glob`]: names with `*` and `?` in them.

use regex::Regex;

use super::Problem;

/// The longest pattern, in bytes.
const MAX: usize = 1_000;

/// A pattern for paths: `*` matches anything within a name, `**/` any folders, `?` one character.
/// Without a `/` it matches the last name only.
#[derive(Clone, Debug)]
pub(super) struct Glob(Regex);

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, Problem> {
        let bad = |_| Problem::call(format!("{pattern:?} is not a pattern for names"));
        if pattern.len() > MAX {
            return Err(Problem::call(format!(
                "a pattern is longer than {MAX} bytes"
            )));
        }
        let pattern = pattern.trim_start_matches("./");
        let start = if pattern.contains('/') { "" } else { "(.*/)?" };
        let mut regex = format!("^{start}");
        let mut rest = pattern.trim_start_matches('/');
        while let Some(first) = rest.chars().next() {
            let (taken, part) = match first {
                _ if rest.starts_with("**/") => (3, "(.*/)?".into()),
                '*' if rest.starts_with("**") => (2, ".*".into()),
                '*' => (1, "[^/]*".into()),
                '?' => (1, "[^/]".into()),
                other => (
                    other.len_utf8(),
                    regex::escape(other.encode_utf8(&mut [0; 4])),
                ),
            };
            regex.push_str(&part);
            rest = rest.get(taken..).unwrap_or_default();
        }
        regex.push('$');
        Regex::new(&regex).map(Self).map_err(bad)
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stay_within_a_name_unless_there_are_two() {
        for (pattern, path, matches) in [
            ("*.rs", "lib.rs", true),
            ("*.rs", "src/deep/lib.rs", true),
            ("*.rs", "lib.rsx", false),
            ("src/*.rs", "src/lib.rs", true),
            ("./src/*.rs", "src/lib.rs", true),
            ("src/*.rs", "src/deep/lib.rs", false),
            ("src/**/*.rs", "src/lib.rs", true),
            ("src/**/*.rs", "src/very/deep/lib.rs", true),
            ("src/**", "src/a/b", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("(a|b).[x]", "(a|b).[x]", true),
            ("(a|b)", "a", false),
        ] {
            let glob = Glob::new(pattern).unwrap();
            assert_eq!(glob.matches(path), matches, "{pattern} {path}");
        }
        assert!(Glob::new(&"*".repeat(MAX + 1)).is_err());
    }
}
