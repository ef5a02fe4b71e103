//! What the rules say to which words.

use serde_json::json;
use snek_proto::llm::image::{Image, ImageFormat};

use super::*;
use crate::assistant::tools::Tools;
use crate::model::Assembler;

fn said(messages: &[ChatMessage], tools: bool) -> ChatMessage {
    let all = Tools::new();
    let request = ChatRequest::new(messages.iter().collect());
    let request = request.with_tools(if tools { all.definitions() } else { &[] });
    let mut assembler = Assembler::default();
    for delta in answer(&request, false) {
        assembler.push(&delta).unwrap();
    }
    assembler.into_message()
}

fn asked(text: &str) -> ChatMessage {
    said(&[ChatMessage::user(format!("Alice: {text}"))], true)
}

#[test]
fn it_counts() {
    let count = |text| asked(text).content.text().into_owned();
    assert_eq!(count("@Bot can you count?"), "Alice, I count: 1 2 3 - done");
    assert!(count("count to 5").contains("4 5 - done"));
    assert_eq!(count("hello"), HELP);
}

#[test]
fn it_shows_markdown() {
    let text = asked("show me some Markdown").content.text().into_owned();
    let kinds = [
        "# ",
        "1. ",
        "- [x] ",
        "> ",
        "](https://",
        "|--",
        "```rust\n",
        "**",
    ];
    assert!(kinds.iter().all(|kind| text.contains(kind)), "{text}");
}

#[test]
fn it_asks_for_the_tools_that_the_text_asks_for() {
    for (text, expected) in [
        ("what time is it?", &[("time", "{}")][..]),
        ("roll 2d6", &[("dice", r#"{"dice":"2d6"}"#)]),
        (
            "the time, and dice",
            &[("time", "{}"), ("dice", r#"{"dice":"1d6"}"#)],
        ),
        (
            "what did I say about dice?",
            &[("search", r#"{"query":"dice"}"#)],
        ),
        ("search for größe", &[("search", r#"{"query":"größe"}"#)]),
        ("«what time is it»", &[]),
    ] {
        let calls = asked(text).tool_calls;
        let calls: Vec<_> = calls
            .iter()
            .map(|call| (&*call.name, &*call.arguments))
            .collect();
        assert_eq!(calls, expected, "{text}");
    }
}

#[test]
fn it_repeats_the_results_of_tools() {
    let question = ChatMessage::user("Alice: time?");
    let mut messages = vec![question.clone(), asked("time?")];
    messages.push(ChatMessage::tool("call_0", "it is 01:02:03 UTC"));
    assert_eq!(said(&messages, true).content.text(), "it is 01:02:03 UTC");
    messages.push(ChatMessage::tool("call_1", r#"{"found":["a","b"]}"#));
    let answer = said(&messages, false);
    assert!(
        answer
            .content
            .text()
            .ends_with("I found 2 messages: «a», «b»")
    );
    assert_eq!(said(&[question], false).content.text(), HELP);
}

#[test]
fn two_bots_stop_answering_each_other() {
    let question = ChatMessage::user("Alice: what did I say?");
    let found = json!({ "found": ["Bo: count, roll dice", "Bo: what time is it?"] });
    let results = ["it is 01:02:03 UTC", "5 + 4 makes 9", &found.to_string()]
        .map(|result| ChatMessage::tool("call_0", result));
    let mut answers: Vec<_> = results
        .into_iter()
        .map(|result| said(&[question.clone(), result], true))
        .collect();
    answers.push(asked("count to 4"));
    answers.push(asked("show Markdown!"));
    for answer in answers {
        let text = answer.content.text();
        let next = asked(&text);
        assert_eq!(next.content.text(), HELP, "{text}");
    }
}

#[test]
fn repeats_known_facts() {
    let facts = "You help.\n\nKnown facts:\n- user name: Bo\n- user lives in Oslo\n";
    let question = ChatMessage::user("what do you know?");
    let answer = said(&[ChatMessage::system(facts), question.clone()], false);
    let expected = "I know: user name: Bo; user lives in Oslo";
    assert_eq!(answer.content.text(), expected);
    assert_eq!(said(&[question], false).content.text(), HELP);
}

#[test]
fn reports_usage_first_and_before_the_end() {
    let question = ChatMessage::user("count");
    let request = ChatRequest::new(vec![&question]);
    let pieces = answer(&request, false).into_iter().map(Ok).collect();
    let billed = billed(&request, pieces);
    let bills: Vec<_> = billed
        .iter()
        .map(|piece| match piece {
            Ok(Delta::Usage(usage)) => Some((usage.prompt, usage.completion)),
            _ => None,
        })
        .collect();
    let prompt = estimate(&question) as u64;
    assert_eq!(bills.first(), Some(&Some((prompt, 0))));
    assert_eq!(bills[bills.len() - 2], Some((prompt, 7)));
    assert_eq!(bills.iter().flatten().count(), 2);
}

#[test]
fn it_describes_images_in_either_format() {
    let url = "http://h/a.png";
    let images = [Image::new(url, b"12345".as_slice())];
    let text = format!("Alice: and this {url}");
    for format in [ImageFormat::OpenAi, ImageFormat::DeepSeek] {
        let message = format.message(&text, &images);
        let answer = said(&[message], true);
        let expected = "I see an image of type image/png with 5 bytes";
        assert_eq!(answer.content.text(), expected);
    }
}
