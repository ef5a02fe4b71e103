//! What is read as an entity, what replaces what, and what fits a message.

use proptest::prelude::*;
use snek_proto::llm::chat::ToolCall;

use super::*;

fn entity(subject: &str, relation: &str, value: &str) -> Entity {
    Entity::new(subject, relation, value, 1).unwrap()
}

fn read_from(text: &str) -> Vec<String> {
    let called =
        ChatMessage::assistant("").with_tool_calls(vec![ToolCall::new("1", "remember", text)]);
    let said = ChatMessage::assistant(text);
    let [called, said] = [called, said].map(|answer| entities_in(&answer, 1));
    assert_eq!(called, said, "{text}");
    called.iter().map(Entity::sentence).collect()
}

#[test]
fn an_entity_is_every_object_with_a_subject_a_relation_and_a_value() {
    let ann = r#"{"subject":"user","relation":"name","value":"Ann"}"#;
    for text in [
        ann,
        &format!("[{ann}]"),
        &format!(r#"{{"entities":[{ann}]}}"#),
        &format!(r#"{{"entities":{{"first":{ann}}},"why":"so"}}"#),
        &serde_json::json!({ "entities": format!("[{ann}]") }).to_string(),
    ] {
        assert_eq!(read_from(text), ["user, name: Ann"], "{text}");
    }
    let text = r#"[{"subject":"user","relation":"age","value":41},{"subject":"Rex","relation":"is a dog","value":true}]"#;
    assert_eq!(read_from(text), ["user, age: 41", "Rex, is a dog: true"]);
    for text in [
        "",
        "nothing",
        "{}",
        r#"{"entities":[]}"#,
        r#"{"entities":[{"subject":"user","relation":"name"}]}"#,
        r#"[{"subject":"user","relation":" ","value":"Ann"}]"#,
        r#"[{"subject":"user","relation":"name","value":["Ann"]}]"#,
        r#"[{"subject":"user","relation":"name","value":"Ann""#,
    ] {
        assert_eq!(read_from(text), [""; 0], "{text}");
    }
    let beside = ChatMessage::assistant(format!("Here:\n```json\n[{ann}]\n```\nDone."));
    assert_eq!(
        entities_in(&beside, 7),
        [Entity::new("user", "name", "Ann", 7).unwrap()]
    );
}

#[test]
fn an_entity_is_one_short_line_without_control_characters() {
    let long = "é".repeat(500);
    let odd = Entity::new(" a\n\u{202e}b\u{1b}[0m ", &long, &long, 1).unwrap();
    assert_eq!(odd.subject, "a b [0m");
    assert_eq!((odd.relation.len(), odd.value.len()), (MAX_NAME, MAX_VALUE));
    assert_eq!(Entity::new("a", "\u{7}", "b", 1), None);
}

#[test]
fn a_newer_entity_takes_the_place_of_what_is_about_the_same() {
    let mut known = Vec::new();
    let mut say = |subject, relation, value, at| {
        learn(
            &mut known,
            Entity::new(subject, relation, value, at).unwrap(),
        );
        known.iter().map(Entity::sentence).collect::<Vec<_>>()
    };
    say("user", "home_town", "Oslo", 1);
    say("user", "name", "Ann", 1);
    let moved = ["user, name: Ann", "User, Home town: Rome"];
    assert_eq!(say("User", "Home town", "Rome", 2), moved);
    // An earlier turn whose answer came late.
    assert_eq!(say("user", "home town", "Bern", 1), moved);
    assert_eq!(say("Rex", "name", "Rex", 2).len(), 3);
}

#[test]
fn those_that_share_words_with_the_message_go_first_and_then_the_newest() {
    let mut known: Vec<_> = (0..20)
        .map(|n| entity("user", &format!("z{n}"), "x"))
        .collect();
    known.insert(1, entity("user", "favourite tea", "Earl Grey"));
    known.insert(2, entity("Hund", "name", "Bello"));
    known.insert(3, entity("пользователь", "город", "Москва"));
    known.insert(4, entity("用户", "城市", "上海"));
    for (message, value) in [
        ("Which TEA do I like?", "Earl Grey"),
        ("Wie heißt mein Schäferhund?", "Bello"),
        ("В каком городе я живу?", "Москва"),
        ("上海今天天气怎么样？", "上海"),
    ] {
        let fit = fitting(&known, message, 3);
        let values: Vec<_> = fit.iter().map(|it| &*it.value).collect();
        assert_eq!(values, [value, "x", "x"], "{message}");
        assert_eq!((&*fit[1].relation, &*fit[2].relation), ("z18", "z19"));
    }
    assert_eq!(fitting(&known, "", 0).len(), 0);
    assert_eq!(fitting(&known[..2], "hello", 10).len(), 2);
}

#[test]
fn words_are_found_in_any_language_and_within_others() {
    for (query, text) in [
        ("name", "My NAME is Ann."),
        ("Straße", "In der Hauptstraße 3"),
        ("名字", "我的名字是安"),
        ("город", "Мой ГОРОД"),
    ] {
        assert!(Words::of(query).are_in(text), "{query} {text}");
    }
    assert!(!Words::of("zebra").are_in("My name is Ann."));
    assert!(Words::of("a b, c!").is_empty());
}

proptest! {
    #[test]
    fn any_answer_is_read(text in ".{0,300}") {
        for found in entities_in(&ChatMessage::assistant(text), 1) {
            prop_assert!(!found.sentence().contains(char::is_control));
        }
    }
}
