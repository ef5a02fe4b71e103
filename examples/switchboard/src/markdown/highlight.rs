//! [`highlight`]: the parts of code that are coloured.

use std::sync::{LazyLock, Once};
use std::thread;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// How much code, and the longest line of it, to colour, in bytes.
const MAX_CODE: usize = 64 * 1024;
const MAX_LINE: usize = 2_000;
/// Names that models give to languages, and the files of that language.
const ALIASES: [(&str, &str); 8] = [
    ("shell", "sh"),
    ("console", "sh"),
    ("zsh", "sh"),
    ("typescript", "js"),
    ("ts", "js"),
    ("tsx", "js"),
    ("jsx", "js"),
    ("jsonc", "json"),
];

/// What [`preload`] colours: a bit of everything in the languages that models write most.
const SAMPLES: [(&str, &str); 6] = [
    ("rust", "fn f() -> u8 { /* a */ g(\"x\", 1) }\n"),
    ("python", "def f(a):\n    return \"x\" + 1  # a\n"),
    ("js", "const f = (a) => g(\"x\", 1); // a\n"),
    ("sh", "ls -l \"$x\" | grep 1 # a\n"),
    ("json", "{\"a\": [1, true, \"x\"]}\n"),
    ("diff", "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n"),
];

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(SyntaxSet::load_defaults_newlines);
static KINDS: LazyLock<Vec<(Scope, Token)>> = LazyLock::new(|| {
    let kinds = [
        ("comment", Token::Comment),
        ("string", Token::String),
        ("constant.numeric", Token::Number),
        ("constant.language", Token::Number),
        ("constant.character", Token::String),
        ("entity.name.function", Token::Function),
        ("support.function", Token::Function),
        ("variable.function", Token::Function),
        ("entity.name", Token::Type),
        ("support.type", Token::Type),
        ("support.class", Token::Type),
        ("storage.type", Token::Keyword),
        ("storage.modifier", Token::Keyword),
        ("keyword.operator", Token::Plain),
        ("keyword", Token::Keyword),
        ("markup.inserted", Token::Inserted),
        ("markup.deleted", Token::Deleted),
    ];
    let scope = |(name, token)| Some((Scope::new(name).ok()?, token));
    kinds.into_iter().filter_map(scope).collect()
});

/// A kind of text in code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Token {
    /// Nothing special.
    #[default]
    Plain,
    /// Code in no language, or in one that is not known.
    Unknown,
    /// A comment.
    Comment,
    /// A word of the language.
    Keyword,
    /// A text in quotes, or a character.
    String,
    /// A number, or another constant of the language.
    Number,
    /// A function where it is defined or called.
    Function,
    /// A type, a tag, or another name where it is defined.
    Type,
    /// An added line of a diff.
    Inserted,
    /// A removed line of a diff.
    Deleted,
}

/// Splits code that comes line by line into its tokens. Lines of more than 2,000 bytes, and what follows 64 KiB, are
/// [plain](Token::Plain).
pub struct Highlighter {
    /// `None` in an unknown language, and after a failure.
    state: Option<(ParseState, ScopeStack)>,
    /// What a line is without tokens.
    whole: Token,
    /// How many bytes may still be coloured.
    left: usize,
}

impl Highlighter {
    /// Creates a highlighter for the first line of code. `language` is the word behind the fence, such as `rust`.
    pub fn new(language: &str) -> Self {
        let state = find(language).map(|syntax| (ParseState::new(syntax), ScopeStack::new()));
        let whole = match state {
            Some(_) => Token::Plain,
            None => Token::Unknown,
        };
        Self {
            state,
            whole,
            left: MAX_CODE,
        }
    }

    /// Returns a line whose end has not come yet.
    pub fn open_line<'a>(&self, line: &'a str) -> [(Token, &'a str); 1] {
        [(self.whole, line)]
    }

    /// Splits the next line, which ends in `\n` unless it is the last one.
    pub fn line<'a>(&mut self, line: &'a str) -> Vec<(Token, &'a str)> {
        let whole = self.whole;
        let plain = || vec![(whole, line)];
        let Some(left) = self.left.checked_sub(line.len()) else {
            self.state = None;
            return plain();
        };
        self.left = left;
        if line.len() > MAX_LINE {
            return plain();
        }
        let state = self.state.as_mut();
        let tokens = state.and_then(|(state, scopes)| tokens(state, scopes, line));
        tokens.unwrap_or_else(|| {
            self.state = None;
            plain()
        })
    }
}

rpc_core::debug_fields!([] Highlighter, _ => {});

/// Loads the usual languages once, in a thread of its own: without it the first code to colour waits for that, up
/// to a second in a build without optimisation.
pub fn preload() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        thread::spawn(|| {
            for (language, code) in SAMPLES {
                let mut highlighter = Highlighter::new(language);
                for line in code.split_inclusive('\n') {
                    let _ = highlighter.line(line);
                }
            }
        });
    });
}

fn find(language: &str) -> Option<&'static SyntaxReference> {
    let mut words = language.split(|c: char| c.is_whitespace() || ",{".contains(c));
    let name = words.next().filter(|name| !name.is_empty())?;
    let name = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name.as_str(), |(_, name)| name);
    let found = SYNTAXES.find_syntax_by_token(name);
    found.filter(|it| it.name != SYNTAXES.find_syntax_plain_text().name)
}

/// Returns `None` if the line cannot be parsed.
fn tokens<'a>(
    state: &mut ParseState,
    scopes: &mut ScopeStack,
    line: &'a str,
) -> Option<Vec<(Token, &'a str)>> {
    let mut tokens: Vec<(Token, &str)> = Vec::new();
    let (mut start, mut token) = (0, kind(scopes));
    for (at, change) in state.parse_line(line, &SYNTAXES).ok()? {
        scopes.apply(&change).ok()?;
        let next = kind(scopes);
        if next != token {
            push(&mut tokens, token, line.get(start..at)?);
            (start, token) = (at, next);
        }
    }
    push(&mut tokens, token, line.get(start..)?);
    Some(tokens)
}

fn push<'a>(tokens: &mut Vec<(Token, &'a str)>, token: Token, text: &'a str) {
    if !text.is_empty() {
        tokens.push((token, text));
    }
}

/// The kind that the innermost known scope names.
fn kind(scopes: &ScopeStack) -> Token {
    let of = |scope: &Scope| KINDS.iter().find(|(known, _)| known.is_prefix_of(*scope));
    let known = scopes.as_slice().iter().rev().find_map(of);
    known.map_or(Token::Plain, |(_, token)| *token)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The tokens of code.
    fn highlight<'a>(language: &str, code: &'a str) -> Vec<(Token, &'a str)> {
        let mut highlighter = Highlighter::new(language);
        let mut tokens: Vec<(Token, usize)> = Vec::new();
        for line in code.split_inclusive('\n') {
            for (token, text) in highlighter.line(line) {
                match tokens.last_mut() {
                    Some((last, length)) if *last == token => *length += text.len(),
                    _ => tokens.push((token, text.len())),
                }
            }
        }
        let mut rest = code;
        let mut cut = |(token, length)| {
            let (text, after) = rest.split_at_checked(length)?;
            rest = after;
            Some((token, text))
        };
        tokens.into_iter().map_while(&mut cut).collect()
    }

    #[test]
    fn code_is_split_into_its_tokens() {
        let tokens = highlight("rust", "fn main() { // hi\n    print(\"x\", 12);\n}\n");
        for expected in [
            (Token::Keyword, "fn"),
            (Token::Function, "main"),
            (Token::Comment, "// hi\n"),
            (Token::String, "\"x\""),
            (Token::Number, "12"),
        ] {
            assert!(tokens.contains(&expected), "{expected:?} in {tokens:?}");
        }
    }

    #[test]
    fn languages_have_the_names_that_models_give_them() {
        for language in [
            "rs",
            "Rust",
            "python",
            "py",
            "bash",
            "console",
            "ts",
            "json",
            "yaml",
            "c++",
            "go",
            "html",
            "sql",
            "diff",
            "rust,ignore",
        ] {
            assert!(find(language).is_some(), "{language}");
        }
        for unknown in ["", " ", "brainwaves", "text"] {
            assert_eq!(highlight(unknown, "fn a"), [(Token::Unknown, "fn a")]);
        }
    }

    #[test]
    fn long_code_stays_plain() {
        let long = format!("\"{}\"\n", "a".repeat(MAX_LINE));
        assert_eq!(highlight("rs", &long), [(Token::Plain, long.as_str())]);
        let long = "1;\n".repeat(MAX_CODE / 3 + 9);
        let tokens = highlight("rs", &long);
        let plain = tokens.last().map(|(token, text)| (*token, text.len() / 3));
        assert_eq!(
            (tokens[0], plain),
            ((Token::Number, "1"), Some((Token::Plain, 9)))
        );
    }

    proptest! {
        #[test]
        fn nothing_is_lost(code in "(\\PC|\n|\"|/|#){0,80}", language in "rs|py|js|html|sh|md|diff") {
            let all: String = highlight(&language, &code).iter().map(|(_, text)| *text).collect();
            prop_assert_eq!(all, code);
        }
    }
}
