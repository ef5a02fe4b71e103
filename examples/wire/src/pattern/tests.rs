//! Tests of patterns.

use serde_json::json;

use super::*;

#[test]
fn a_pattern_says_where_a_frame_differs() {
    for (pattern, frame, why) in [
        (json!({"id":"1"}), json!({"id":"1","more":2}), None),
        (
            json!({"id":"1"}),
            json!({"id":"2"}),
            Some("id is \"2\", expected \"1\""),
        ),
        (
            json!({"a":{"b":"$int"}}),
            json!({"a":{"b":1.5}}),
            Some("a.b is 1.5, expected of type int"),
        ),
        (
            json!({"e":"$absent"}),
            json!({"e":null}),
            Some("e is null, expected no such member"),
        ),
        (json!({"e":"$none"}), json!({"e":null}), None),
        (
            json!({"e":"$any"}),
            json!({}),
            Some("e is missing, expected any value"),
        ),
        (json!({"n":1}), json!({"n":1.0}), None),
        (
            json!(["$each", "$string"]),
            json!(["a", 1]),
            Some("[1] is 1, expected of type string"),
        ),
        (json!(["$has",{"a":1}]), json!([{}, {"a":1}]), None),
        (
            json!(["$has",{"a":1}]),
            json!([{}]),
            Some("the frame is [{}], expected an element like {\"a\":1}"),
        ),
        (
            json!("$nre:^a"),
            json!(5),
            Some("the frame is 5, expected a string unlike ^a"),
        ),
    ] {
        let result = Pattern::new(&pattern).unwrap().matches(&frame.to_string());
        match why {
            None => assert!(result.is_ok(), "{pattern} {frame}: {result:?}"),
            Some(why) => {
                let error = result.unwrap_err().to_string();
                assert!(
                    error.ends_with(why.trim_start_matches("the frame")),
                    "{pattern}: {error}"
                );
            }
        }
    }
}

#[test]
fn an_invalid_pattern_is_found_before_it_is_used() {
    assert!(Pattern::new(&json!({"a":["$each","$string"]})).is_ok());
    assert!(Pattern::new(&json!({"a":"$strin"})).is_err());
    assert!(Pattern::new(&json!("$re:(")).is_err());
}
