//! [`Glob`]: names with `*` and `?` in them.

use globset::{GlobBuilder, GlobMatcher};

use super::{ToolError, composed};

/// The longest pattern, in bytes.
const MAX: usize = 1_000;

/// A pattern for paths: `*` matches anything within a name, `**/` any folders, `?` one character, `[ab]` one of
/// these, `{one,other}` either, and a `/` at the end all that is in the folder. Without a `/` it matches the last name
/// only. A path that is written in it letter by letter matches, too.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    literal: String,
    matcher: GlobMatcher,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, ToolError> {
        if pattern.len() > MAX {
            return Err(ToolError::call(format!(
                "a pattern is longer than {MAX} bytes"
            )));
        }
        let literal = composed(pattern.trim_start_matches("./").trim_start_matches('/'));
        let whole = match literal.contains('/') {
            true if literal.ends_with('/') => format!("{literal}**"),
            true => literal.clone().into_owned(),
            false => format!("**/{literal}"),
        };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build();
        let glob = glob.map_err(|error| {
            let why = error.kind();
            ToolError::call(format!("{pattern:?} is not a pattern for names: {why}"))
        })?;
        Ok(Self {
            literal: literal.into_owned(),
            matcher: glob.compile_matcher(),
        })
    }

    pub(super) fn matches(&self, path: &str) -> bool {
        let path = &*composed(path);
        let is_written = || match path.strip_suffix(&self.literal) {
            Some("") => true,
            Some(before) => before.ends_with('/') && !self.literal.contains('/'),
            None => false,
        };
        self.matcher.is_match(path) || is_written()
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
            ("src/", "src/a/b", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("(a|b).[x]", "(a|b).[x]", true),
            ("(a|b)", "a", false),
            ("*.{ts,tsx}", "src/a.tsx", true),
            ("{a,b}.txt", "b.txt", true),
            ("[ab].txt", "c.txt", false),
            ("[ab].txt", "src/a.txt", true),
            ("app/[id]/page.tsx", "app/[id]/page.tsx", true),
            ("[id].tsx", "app/[id].tsx", true),
            ("/src/*.rs", "src/lib.rs", true),
        ] {
            let glob = Glob::new(pattern).unwrap();
            assert_eq!(glob.matches(path), matches, "{pattern} {path}");
        }
        for wrong in ["{a,b", "[z-a]", &"*".repeat(MAX + 1)] {
            assert!(Glob::new(wrong).is_err(), "{wrong}");
        }
    }
}
