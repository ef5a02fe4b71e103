//! Vectors of registrations: what is accepted, and the code and the words of every refusal.

use serde_json::{Value, json};
use smarthole_proto::frame::Registration;
use smarthole_proto::validate::{Side, description, name, payload, registration};

use super::run;

#[test]
fn registrations_match_the_vectors() {
    run("registrations", |vector| {
        let title = vector.name();
        let found = payload(vector.str("payload"));
        let Some(code) = vector.try_str("code") else {
            let found = found.unwrap();
            let written = serde_json::to_value(&found).unwrap();
            assert_eq!(&written, vector.get("accepted"), "{title}");
            assert_eq!(registration(&found, Side::Server), Ok(()), "{title}");
            assert_eq!(name(&found.name), Ok(()), "{title}");
            return;
        };
        let error = found.unwrap_err();
        assert_eq!(error.code.name(), code, "{title}");
        if let Some(words) = vector.try_str("message") {
            assert_eq!(error.message, *words, "{title}");
        }
    });
}

/// What a payload says of names holds for names alone.
#[test]
fn names_are_validated_as_in_a_payload() {
    run("registrations", |vector| {
        let Ok(value) = serde_json::from_str::<Value>(vector.str("payload")) else {
            return;
        };
        let Some(Value::String(text)) = value.get("name") else {
            return;
        };
        let error = name(text).err();
        let code = error.as_ref().map(|error| error.code.name());
        if code.is_some() {
            assert_eq!(code, vector.try_str("code"), "{}", vector.name());
        }
        let typed: Registration = Registration::new(text.as_str(), "d");
        assert_eq!(registration(&typed, Side::Client).err(), error);
    });
}

#[test]
fn description_lengths_match_the_vectors() {
    run("descriptions", |vector| {
        let (title, text) = (vector.name(), vector.str("text"));
        for (side, member) in [(Side::Client, "client"), (Side::Server, "server")] {
            let found = description(text, side);
            assert_eq!(found.is_ok(), vector.is(member), "{title}: {member}");
            let typed: Registration = Registration::new("a", text);
            assert_eq!(registration(&typed, side), found, "{title}: {member}");
        }
        let json = json!({"name": "a", "description": text}).to_string();
        assert_eq!(payload(&json).is_ok(), vector.is("server"), "{title}");
    });
}
