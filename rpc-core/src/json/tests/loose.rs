//! Raw values of one kind, and what a tagged struct does with what it has read.

use serde::Deserialize;

use super::reading::Kind2;
use crate::json::{self, DecodeErrorKind as Kind, Json, Str, lenient};
use crate::{Limits, tagged};

#[derive(Debug, PartialEq, Deserialize)]
struct Loose {
    #[serde(deserialize_with = "lenient::object")]
    object: Json,
    #[serde(default, deserialize_with = "lenient::optional_array")]
    list: Option<Json>,
    #[serde(default, deserialize_with = "lenient::optional_loose")]
    text: Option<Str>,
}

#[test]
fn a_raw_value_is_kept_if_it_is_of_the_right_kind() {
    let text = r#"{"object":{"a": 1},"list":[ 1 ],"text":{"b": [2]}}"#;
    let read: Loose = json::decode(text, &Limits::default()).unwrap();
    assert_eq!(read.object.get(), r#"{"a": 1}"#);
    assert_eq!(read.list.as_ref().map(Json::get), Some("[ 1 ]"));
    assert_eq!(read.text.as_deref(), Some(r#"{"b": [2]}"#));
    let read: Loose = serde_json::from_str(text).unwrap();
    assert_eq!(read.text.as_deref(), Some(r#"{"b": [2]}"#));
    for (text, kind) in [
        (r#"{"object":null}"#, Kind::MissingMember("object")),
        (
            r#"{"object":[]}"#,
            Kind::WrongType {
                member: "object",
                expected: "an object",
            },
        ),
        (
            r#"{"object":{},"list":{}}"#,
            Kind::WrongType {
                member: "list",
                expected: "an array",
            },
        ),
    ] {
        let error = json::decode::<Loose>(text, &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(serde_json::from_str::<Loose>(text).is_err(), "{text}");
    }
}

tagged! {
    /// Where the content needs what stands beside it.
    #[derive(Clone, Debug, PartialEq)]
    struct Filled {
        .. => kind: Kind2,
        "id" => id: Option<Str>,
    }
    then filled
}

fn filled<E: serde::de::Error>(read: &mut Filled) -> Result<(), E> {
    if let Kind2::Tool(tool) = &mut read.kind
        && tool.name.is_empty()
    {
        tool.name = read.id.clone().ok_or_else(|| E::missing_field("name"))?;
    }
    Ok(())
}

#[test]
fn decoded_values_can_be_completed_or_refused() {
    let read = |text| json::decode::<Filled>(text, &Limits::default());
    let Kind2::Tool(tool) = read(r#"{"type":"tool","name":"","id":"i"}"#).unwrap().kind else {
        panic!("no tool");
    };
    assert_eq!(tool.name, "i");
    let error = read(r#"{"type":"tool","name":""}"#).unwrap_err();
    assert_eq!(error.kind(), Kind::MissingMember("name"));
}

#[test]
fn members_before_the_tag_are_bounded() {
    let limits = Limits {
        max_items: 3,
        ..Limits::default()
    };
    let read = |text| json::decode::<Kind2>(text, &limits);
    assert_eq!(read(r#"{"a":1,"b":2,"type":"end","c":3}"#), Ok(Kind2::End));
    let error = read(r#"{"a":1,"b":2,"c":3,"type":"end"}"#).unwrap_err();
    assert_eq!(error.kind(), Kind::TooManyItems { max: 3 });
}
