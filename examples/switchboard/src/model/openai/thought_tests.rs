//! Thoughts before an answer, between marks of any form.

use super::answer_tests::{content_event, decode, text};
use crate::model::answer::AnswerReader;
use crate::model::provider::Provider;
use crate::model::{Assembler, Delta};

#[test]
fn separates_thoughts_in_the_text_from_the_answer() {
    let lines = include_str!("thoughts.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        let [whole, answer, thoughts]: [String; 3] = serde_json::from_str(line).unwrap();
        for size in 1..=whole.len() {
            let mut stream = String::new();
            let chars: Vec<_> = whole.chars().collect();
            for part in chars.chunks(size) {
                stream.push_str(&content_event(&part.iter().collect::<String>()));
            }
            stream.push_str("data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n");
            let (deltas, outcome) = decode(stream.as_bytes(), 99);
            assert_eq!((text(&deltas), outcome), (answer.clone(), Ok(())), "{line}");
            let thought: String = deltas
                .iter()
                .filter_map(|delta| match delta {
                    Delta::Thought(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            assert_eq!(thought, thoughts, "{line}");
        }
        let body = serde_json::json!({ "choices": [{ "message": { "content": whole } }] });
        let (deltas, outcome) = decode(body.to_string().as_bytes(), 99);
        assert_eq!((text(&deltas), outcome), (answer, Ok(())), "{line}");
    }
}

#[test]
fn a_mark_that_may_be_text_is_text_without_an_end_or_an_answer() {
    for whole in [
        "<name> is what you write",
        "<answer>42</answer>",
        "<answer>4",
    ] {
        let body = serde_json::json!({ "choices": [{ "message": { "content": whole } }] });
        let (deltas, _) = decode(body.to_string().as_bytes(), 99);
        assert_eq!(text(&deltas), whole);
    }
}

#[test]
fn the_first_words_wait_for_a_mark_for_a_while() {
    let mut reader = AnswerReader::new(Provider::OpenAi, "");
    reader.push(content_event("so ").as_bytes()).unwrap();
    assert!(reader.waits());
    assert_eq!(reader.pop(), None);
    reader.release();
    assert_eq!(reader.pop(), Some(Delta::Text("so ".to_owned())));
    // Then they are shown as they come.
    reader.push(content_event("it").as_bytes()).unwrap();
    assert_eq!(reader.pop(), Some(Delta::Text("it".to_owned())));
    assert!(!reader.waits());
    // A mark that has begun waits for its end.
    let mut reader = AnswerReader::new(Provider::OpenAi, "");
    reader.push(content_event("<thi").as_bytes()).unwrap();
    reader.release();
    reader.push(content_event("nk>hm").as_bytes()).unwrap();
    assert_eq!(reader.pop(), Some(Delta::Thought("hm".to_owned())));
}

#[test]
fn a_mark_that_comes_late_makes_a_thought_of_what_was_shown() {
    for (parts, answer) in [
        (&["hm", "\n</thi", "nk>", "\n\n", "yes"][..], Some("yes")),
        (&["hm", " so.</think>\n\nyes", " it is"], Some("yes it is")),
        (&["hm", "\n<｜end▁of▁thinking｜>\nyes"], Some("yes")),
        // Nothing follows, or the text speaks of it.
        (&["hm", "\n</think>", "\n"], None),
        (&["hm ```\n", "x\n</think>\n", "y\n```"], None),
        (&["it opens with <think>", "\n</think>\n", "yes"], None),
        (&["it ends", " with </think> and", " more"], None),
    ] {
        let mut reader = AnswerReader::new(Provider::OpenAi, "");
        let mut all = Assembler::default();
        let events = parts.iter().map(|part| content_event(part));
        let end = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
        for event in events.chain([end.to_owned()]) {
            reader.push(event.as_bytes()).unwrap();
            reader.release();
            while let Some(delta) = reader.pop() {
                assert!(!matches!(delta, Delta::Thought(_)), "{parts:?}");
                all.push(&delta).unwrap();
            }
        }
        assert_eq!(all.text(), answer.unwrap_or(&parts.concat()), "{parts:?}");
        assert_eq!(reader.closes_thoughts(), answer.is_some(), "{parts:?}");
    }
}

#[test]
fn a_model_that_only_closes_its_thoughts_is_waited_for() {
    let end = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
    for (answer, closes) in [("</think>yes", true), (" is that", false)] {
        let mut reader = AnswerReader::new(Provider::OpenAi, "").with_closed_thoughts(true);
        reader.push(content_event("hm").as_bytes()).unwrap();
        assert!(!reader.waits() && reader.pop().is_none());
        reader
            .push((content_event(answer) + end).as_bytes())
            .unwrap();
        // It is no more, once it answers without.
        assert_eq!(reader.closes_thoughts(), closes);
    }
}
