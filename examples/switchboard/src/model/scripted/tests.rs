//! What the rules say to which words.

use futures_util::FutureExt as _;
use snek_proto::llm::image::{Image, ImageFormat};
use snek_proto::llm::tool::ToolDefinition;

use super::*;
use crate::assistant::tools::Tools;
use crate::model::Assembler;

/// The answer, as far as it came at once.
fn asked_of(
    model: &Scripted,
    messages: &[ChatMessage],
    tools: &[ToolDefinition],
) -> (Assembler, Result<(), ModelError>) {
    let request = ChatRequest::new(messages.iter().collect()).with_tools(tools);
    let mut answer = Assembler::default();
    let mut deltas = match model.stream(request).now_or_never().unwrap() {
        Ok(deltas) => deltas,
        Err(error) => return (answer, Err(error)),
    };
    while let Some(delta) = deltas.next().now_or_never().unwrap() {
        match delta {
            Ok(delta) => answer.push(&delta).unwrap(),
            Err(error) => return (answer, Err(error)),
        }
    }
    (answer, Ok(()))
}

fn answered(messages: &[ChatMessage]) -> ChatMessage {
    let (answer, outcome) = asked_of(&Scripted::default(), messages, Tools::new().definitions());
    assert_eq!(outcome, Ok(()));
    answer.into_message()
}

fn asked(text: &str) -> ChatMessage {
    answered(&[ChatMessage::user(format!("Alice: {text}"))])
}

fn ordered(text: &str) -> (Assembler, Result<(), ModelError>) {
    let model = Scripted::default().with_commands(true);
    asked_of(&model, &[ChatMessage::user(text)], &[])
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
fn reports_usage_first_and_before_the_end() {
    let question = ChatMessage::user("count");
    let request = ChatRequest::new(vec![&question]);
    let billed = billed(&request, spoken("1 2 3"));
    let prompt = estimate(&question) as u64;
    let usage = |completion| Delta::Usage(Usage { prompt, completion });
    assert_eq!(billed.first(), Some(&usage(0)));
    assert_eq!(billed[billed.len() - 2], usage(3));
}

#[test]
fn it_describes_images() {
    let images = [Image::new("http://h/a.png", b"12345".as_slice())];
    let answer = answered(&[ImageFormat::OpenAi.message("Alice: and this", &images)]);
    let expected = "I see an image of type image/png with 5 bytes";
    assert_eq!(answer.content.text(), expected);
}

#[test]
fn it_repeats_text_and_names_a_real_model_once() {
    let model = Scripted::default().with_echo(true);
    let mut messages = vec![ChatMessage::user("hello")];
    let (first, _) = asked_of(&model, &messages, &[]);
    assert_eq!(first.text(), "hello");
    let thoughts = |messages: &[ChatMessage]| {
        let request = ChatRequest::new(messages.iter().collect());
        let deltas = model.stream(request).now_or_never().unwrap().unwrap();
        let deltas: Vec<_> = deltas.collect().now_or_never().unwrap();
        deltas.contains(&Ok(Delta::Thought(HELP.to_owned())))
    };
    assert!(thoughts(&messages) && HELP.contains("--provider"));
    messages.push(first.into_message());
    messages.push(ChatMessage::user(" again\n"));
    assert_eq!(asked_of(&model, &messages, &[]).0.text(), "again");
    assert!(!thoughts(&messages));
}

#[test]
fn commands_order_calls_whose_results_are_repeated() {
    let text = "/call a {\"x\": 1}\nwords\n !call b\n/call c  not json";
    let (answer, outcome) = ordered(text);
    assert_eq!(
        (answer.finish(), outcome),
        (Some(&Finish::ToolCalls), Ok(()))
    );
    let message = answer.into_message();
    let calls: Vec<_> = message
        .tool_calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments))
        .collect();
    assert_eq!(calls, [("a", "{\"x\": 1}"), ("b", "{}"), ("c", "not json")]);
    let results = [("call_0", "one\n"), ("call_1", "Error: two")];
    let results = results.map(|(id, text)| ChatMessage::tool(id, text));
    let [first, second] = results;
    let answer = answered(&[ChatMessage::user(text), message, first, second]);
    assert_eq!(answer.content.text(), "one; two");
}

#[test]
fn fails_as_ordered() {
    let error = ModelError::broken("it hurts".to_owned());
    assert_eq!(ordered("/fail it hurts").1, Err(error));
    let (answer, outcome) = ordered("!break");
    assert_eq!(
        (answer.text(), outcome),
        ("so far so good", Err(ModelError::Cut))
    );
    let (answer, outcome) = ordered("/slow 3 0");
    assert_eq!((answer.text(), outcome), ("1 2 3", Ok(())));
    let (answer, outcome) = ordered("/think yes");
    assert_eq!((answer.text(), outcome), ("yes", Ok(())));
}

#[test]
fn commands_are_words_unless_the_model_follows_them() {
    for text in ["/fail", "/call x", "!slow 100 100"] {
        assert_eq!(
            answered(&[ChatMessage::user(text)]).content.text(),
            HELP,
            "{text}"
        );
    }
}

#[test]
fn it_remembers_only_what_it_is_told_to() {
    let model = Scripted::default().with_commands(true);
    let tools = [ToolDefinition::new(REMEMBER, "Remembers.")];
    let order = "/call remember {\"subject\":\"user\"}\n/call echo {}";
    let learns = |question: &str| {
        let turn = serde_json::json!({ "question": question, "reply": "ok" }).to_string();
        let (answer, outcome) = asked_of(&model, &[ChatMessage::user(turn)], &tools);
        assert_eq!(outcome, Ok(()));
        (
            answer.usage().unwrap().prompt > 0,
            answer.into_message().tool_calls,
        )
    };
    let (is_billed, calls) = learns(order);
    let arguments: Vec<_> = calls.iter().map(|call| &*call.arguments).collect();
    assert_eq!(
        (is_billed, arguments),
        (true, vec!["{\"subject\":\"user\"}"])
    );
    assert_eq!(learns("hello"), (false, Vec::new()));
    // In the turn itself nobody offers it.
    let (answer, _) = ordered("/call remember {}");
    assert_eq!(answer.text(), "noted");
    let calls = ordered(order).0.into_message().tool_calls;
    assert_eq!(calls.len(), 1);
}
