//! Canonical forms are those of Python and of JavaScript.

use connectonion_proto::auth::{Canonical, canonical_json};

use super::run;

const FORMS: [(&str, Canonical); 4] = [
    ("escaped", Canonical::Escaped),
    ("utf8", Canonical::Utf8),
    ("top_level", Canonical::TopLevel),
    ("python", Canonical::Python),
];

#[test]
fn strings_are_encoded_like_python_and_javascript() {
    run("canonical", |vector| {
        for (name, form) in FORMS {
            let Some(expected) = vector.try_str(name) else {
                continue;
            };
            let written = canonical_json(vector.str("text"), form);
            assert_eq!(written.as_deref(), Ok(expected), "{name}");
        }
    });
}

#[test]
fn numbers_are_encoded_like_python() {
    run("numbers", |vector| {
        let text = vector.str("text");
        let written = canonical_json(text, Canonical::Python).unwrap();
        assert_eq!(written, vector.str("python"));
        assert_eq!(canonical_json(text, Canonical::Utf8).unwrap(), text);
    });
}
