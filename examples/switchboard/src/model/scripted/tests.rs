//! What the rules say to which words.

use futures_util::FutureExt as _;
use serde_json::json;
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

fn said(messages: &[ChatMessage]) -> ChatMessage {
    let (answer, outcome) = asked_of(&Scripted::default(), messages, Tools::new().definitions());
    assert_eq!(outcome, Ok(()));
    answer.into_message()
}

fn asked(text: &str) -> ChatMessage {
    said(&[ChatMessage::user(format!("Alice: {text}"))])
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
fn orders_become_calls_of_the_tools_that_are_offered() {
    let with_file = "Read the file.\n\n<system-reminder>The user uploaded:\n- /a/1_b.txt\nUse read";
    for (text, tool, arguments) in [
        ("read a b.txt", "file-read", json!({ "path": "a b.txt" })),
        (
            "Search fn main",
            "file-search",
            json!({ "query": "fn main" }),
        ),
        ("list all files", "file-find", json!({})),
        (
            "edit a.txt: one -> two",
            "file-edit",
            json!({ "path": "a.txt", "find": "one", "replace": "two" }),
        ),
        (
            "create a.txt: hello",
            "file-create",
            json!({ "path": "a.txt", "content": "hello\n" }),
        ),
        (
            "run echo hi!",
            "shell-run",
            json!({ "command": "echo hi!" }),
        ),
        (
            "What is 2 * (3 + 4)?",
            "calculate",
            json!({ "expression": "2 * (3 + 4)" }),
        ),
        ("List your files.", "list_files", json!({})),
        (
            "read notes/a.txt",
            "read_file",
            json!({ "path": "notes/a.txt" }),
        ),
        (with_file, "read_file", json!({ "path": "/a/1_b.txt" })),
        (
            "write buy milk to notes.txt",
            "write_file",
            json!({ "path": "notes.txt", "text": "buy milk" }),
        ),
        (
            "ask me which colour I like (red, green)",
            "ask_user",
            json!({ "question": "Which colour I like?", "options": ["red", "green"] }),
        ),
        (
            "Ask me my name",
            "ask_user",
            json!({ "question": "My name?", "options": [] }),
        ),
        ("echo hi", "echo", json!({ "message": "hi" })),
    ] {
        let is_coder = tool.contains('-');
        let offered = |name: &str| name == tool || is_coder && name == "file-read";
        let expected = vec![(tool.to_owned(), arguments.to_string())];
        assert_eq!(words::wanted(text, &offered), expected, "{text}");
    }
    for text in [
        "",
        "hello",
        "what is this",
        "read this",
        "write it",
        "ask",
        "edit a.txt",
    ] {
        assert_eq!(
            words::wanted(text, &|name| name != "file-read"),
            [],
            "{text}"
        );
    }
}

#[test]
fn a_plan_shows_its_list_before_each_step() {
    let mut results = Vec::new();
    let mut seen = Vec::new();
    let said = loop {
        match plan::next("plan: read a; think; run b", &results).unwrap() {
            Ok((tool, arguments)) if tool == "checklist" => {
                let arguments: Value = serde_json::from_str(&arguments).unwrap();
                seen.push(arguments["items"].as_str().unwrap().to_owned());
                results.push(("listed".to_owned(), false));
            }
            Ok((tool, _)) => {
                results.push((format!("{tool} said"), tool == "shell-run"));
                seen.push(tool);
            }
            Err(said) => break said,
        }
    };
    let expected = [
        "[~] read a\n[ ] think\n[ ] run b",
        "file-read",
        "[x] read a\n[~] think\n[ ] run b",
        "[x] read a\n[x] think\n[~] run b",
        "shell-run",
        "[x] read a\n[x] think\n[!] run b",
    ];
    assert_eq!(seen, expected);
    assert_eq!(
        said,
        "file-read said; shell-run said; not all could be done"
    );
}

#[test]
fn it_repeats_the_results_of_tools() {
    let question = ChatMessage::user("Alice: time?");
    let mut messages = vec![question, asked("time?")];
    messages.push(ChatMessage::tool("call_0", "it is 01:02:03 UTC"));
    assert_eq!(said(&messages).content.text(), "it is 01:02:03 UTC");
    messages.push(ChatMessage::tool("call_1", r#"{"found":["a","b"]}"#));
    let answer = said(&messages);
    assert!(answer.content.text().ends_with("I found «a», «b»"));
}

#[test]
fn repeats_known_facts() {
    let facts = "You help.\n\nKnown facts:\n- user name: Bo\n- user lives in Oslo\n";
    let question = ChatMessage::user("what do you know?");
    let answer = said(&[ChatMessage::system(facts), question.clone()]);
    let expected = "I know: user name: Bo; user lives in Oslo";
    assert_eq!(answer.content.text(), expected);
    assert_eq!(said(&[question]).content.text(), HELP);
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
fn it_describes_images_in_either_format() {
    let url = "http://h/a.png";
    let images = [Image::new(url, b"12345".as_slice())];
    let text = format!("Alice: and this {url}");
    for format in [ImageFormat::OpenAi, ImageFormat::DeepSeek] {
        let answer = said(&[format.message(&text, &images)]);
        let expected = "I see an image of type image/png with 5 bytes";
        assert_eq!(answer.content.text(), expected);
    }
}

#[test]
fn commands_order_calls() {
    let (answer, outcome) = ordered("!tool a {\"x\": 1}\nwords\n !tool b\n!tool c  not json");
    assert_eq!(
        (answer.finish(), outcome),
        (Some(&Finish::ToolCalls), Ok(()))
    );
    let calls = answer.into_message().tool_calls;
    let calls: Vec<_> = calls
        .iter()
        .map(|call| (&*call.name, &*call.arguments))
        .collect();
    assert_eq!(calls, [("a", "{\"x\": 1}"), ("b", "{}"), ("c", "not json")]);
}

#[test]
fn fails_as_ordered() {
    let error = ModelError::broken("it hurts".to_owned());
    assert_eq!(ordered("!fail it hurts").1, Err(error));
    let (answer, outcome) = ordered("!break");
    assert_eq!(
        (answer.text(), outcome),
        ("so far so good", Err(ModelError::Cut))
    );
    let (answer, outcome) = ordered("!slow 3 0");
    assert_eq!((answer.text(), outcome), ("1 2 3", Ok(())));
    let (answer, outcome) = ordered("!think yes");
    assert_eq!((answer.text(), outcome), ("yes", Ok(())));
}

#[test]
fn commands_are_words_unless_the_model_follows_them() {
    for text in ["!fail", "!tool x", "!slow 100 100"] {
        assert_eq!(
            said(&[ChatMessage::user(text)]).content.text(),
            HELP,
            "{text}"
        );
    }
}
