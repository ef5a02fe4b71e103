//! What is wrong with a text that is no JSON, in the words of Python's reader.
//!
//! The vectors were made with `json.loads` of Python 3.11 (`msg`, `lineno`, `colno`, `pos` of its
//! `JSONDecodeError`): handwritten texts, and valid ones in which letters were left out, put in and
//! exchanged at random. `null` is a text that Python reads.

use connectonion_proto::error::InvalidJson;

#[derive(serde::Deserialize)]
struct Vector {
    text: String,
    message: Option<String>,
}

#[test]
fn what_is_wrong_is_said_as_python_says_it() {
    let file = include_str!("../vectors/invalid_json.json");
    let vectors: Vec<Vector> = serde_json::from_str(file).unwrap();
    assert!(vectors.len() > 150);
    for Vector { text, message } in vectors {
        let found = InvalidJson::find(&text).map(|invalid| invalid.to_string());
        assert_eq!(found, message, "{text:?}");
    }
}

#[test]
fn the_example_of_the_specification_is_told_so() {
    // Its text is not printed there; this one has the fault at the same place.
    let text = "{\"prompt\":\"\",\n    type: 'INPUT'}";
    let words = InvalidJson::find(text).unwrap().to_string();
    assert_eq!(
        words,
        "Invalid JSON: Expecting property name enclosed in double quotes at line 2 col 5 (pos 18)"
    );
}

#[test]
fn depth_does_not_matter() {
    let deep = "[".repeat(100_000);
    let invalid = InvalidJson::find(&deep).unwrap();
    assert_eq!(invalid.position, 100_000);
    assert_eq!(InvalidJson::find(&(deep + &"]".repeat(100_000))), None);
}
