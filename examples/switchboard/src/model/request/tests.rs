//! Any conversation gives an acceptable request, and an acceptable one stays as it is.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const ORIGIN: &str = "me";

fn of<'a>(messages: &'a [ChatMessage], tools: &'a [ToolDefinition]) -> ChatRequest<'a> {
    ChatRequest::new(messages.iter().collect()).with_tools(tools)
}

fn mended(messages: &[ChatMessage]) -> Vec<ChatMessage> {
    let tools = [
        ToolDefinition::new("echo", ""),
        ToolDefinition::new("file-read", ""),
    ];
    acceptable(&of(messages, &tools), ORIGIN)
}

fn asks(calls: &[(&str, &str, &str)]) -> ChatMessage {
    let calls = calls
        .iter()
        .map(|(id, name, arguments)| ToolCall::new(*id, *name, *arguments));
    ChatMessage::assistant("").with_tool_calls(calls.collect())
}

fn assert_acceptable(called: &[ChatMessage]) {
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        (1..=64).contains(&name.len()) && name.chars().all(is_part)
    };
    let (systems, rest) = called.split_at(usize::from(called[0].role == Role::System));
    assert!(
        systems.len() + rest.len() == called.len() && rest[0].role == Role::User,
        "{called:?}"
    );
    let mut open: Vec<&str> = Vec::new();
    let mut last = Role::System;
    for message in rest {
        match message.role {
            Role::Tool => assert_eq!(message.tool_call_id.as_deref(), Some(open.remove(0))),
            role => assert!(
                role != last && role != Role::System && open.is_empty(),
                "{called:?}"
            ),
        }
        assert!(
            message.role == Role::Tool
                || !is_blank(&message.content)
                || !message.tool_calls.is_empty()
        );
        for call in &message.tool_calls {
            assert!(
                is_name(&call.name) && is_object(&call.arguments),
                "{call:?}"
            );
            assert!(
                (1..=MAX_ID).contains(&call.id.len()) && !open.contains(&&*call.id),
                "{call:?}"
            );
            open.push(&call.id);
        }
        last = message.role;
    }
    assert!(open.is_empty());
}

#[test]
fn what_providers_refuse_is_mended() {
    let user = |text: &str| ChatMessage::user(text);
    let assistant = |text: &str| ChatMessage::assistant(text);
    let tool = |id: &str, text: &str| ChatMessage::tool(id, text);
    let lost = "Error: it was not run";
    let long = "i".repeat(41);
    let image = |kind: &str| vec![Block::ImageUrl(format!("data:{kind};base64,iVBORw0KGgo="))];
    for (given, meant) in [
        (vec![], vec![user(NOTHING)]),
        // Some give the calls of each answer the same ids.
        (
            vec![
                user("a"),
                asks(&[("x", "echo", "{}")]),
                tool("x", "1"),
                user("b"),
                asks(&[("x", "echo", "{}")]),
                tool("x", "2"),
            ],
            vec![
                user("a"),
                asks(&[("x", "echo", "{}")]),
                tool("x", "1"),
                user("b"),
                asks(&[("call_0", "echo", "{}")]),
                tool("call_0", "2"),
            ],
        ),
        (
            vec![
                user("a"),
                ChatMessage::system("s"),
                user(" "),
                assistant(""),
                user("b"),
                ChatMessage::system("t"),
            ],
            vec![ChatMessage::system("s\n\nt"), user("a\n\nb")],
        ),
        (
            vec![assistant("a"), assistant("b")],
            vec![user(NOTHING), assistant("a\n\nb")],
        ),
        (
            vec![
                user("a"),
                asks(&[
                    ("x", " echo\n", "[]"),
                    ("y", "functions.Echo", "{}"),
                    ("z", "FileRead", ""),
                ]),
                tool("y", "2"),
                user("b"),
                tool("x", "1"),
                tool("q", "3"),
            ],
            vec![
                user("a"),
                asks(&[
                    ("x", "echo", "{}"),
                    ("y", "echo", "{}"),
                    ("z", "FileRead", "{}"),
                ]),
                tool("x", "1"),
                tool("y", "2"),
                tool("z", lost),
                user("b"),
            ],
        ),
        (
            vec![
                user("a"),
                asks(&[
                    ("", "e\" a=\"b", "{}"),
                    (&long, "", "{}"),
                    ("call_0", "f", "{}"),
                ]),
                tool(&long, "2"),
                tool("call_0", "3"),
            ],
            vec![
                user("a"),
                asks(&[
                    ("call_0", "e__a__b", "{}"),
                    ("call_1", "_", "{}"),
                    ("call_2", "f", "{}"),
                ]),
                tool("call_0", lost),
                tool("call_1", "2"),
                tool("call_2", "3"),
            ],
        ),
        (
            vec![ChatMessage::user(image("image/jpeg"))],
            vec![ChatMessage::user(image("image/png"))],
        ),
        (
            vec![user("see"), ChatMessage::user(image("image/png"))],
            vec![ChatMessage::user(
                [vec![Block::Text("see".to_owned())], image("image/png")].concat(),
            )],
        ),
    ] {
        assert_eq!(mended(&given), meant);
        assert_acceptable(&meant);
    }
}

#[test]
fn what_a_provider_gave_goes_back_to_it_alone() {
    let mut answer = asks(&[("call_9", "echo", "{}")]);
    answer.extra = json!({ FROM: ORIGIN, "r": "so", "s": 1 })
        .as_object()
        .unwrap()
        .clone();
    answer.tool_calls[0].extra = json!({ ID: "own", "e": { "sig": "S" }, "function": { "s": 1 } })
        .as_object()
        .unwrap()
        .clone();
    let called = [
        ChatMessage::user("a"),
        answer,
        ChatMessage::tool("call_9", "1"),
    ];
    for (origin, members, of_call, id) in [
        (
            ORIGIN,
            json!({ "r": "so", "s": 1 }),
            json!({ "e": { "sig": "S" }, "function": { "s": 1 } }),
            "own",
        ),
        ("other", json!({}), json!({}), "call_9"),
        ("", json!({}), json!({}), "call_9"),
    ] {
        let got = acceptable(&of(&called, &[]), origin);
        assert_eq!(extra::sent(got[1].extra.clone()), members);
        assert_eq!(extra::sent(got[1].tool_calls[0].extra.clone()), of_call);
        assert_eq!(
            (&*got[1].tool_calls[0].id, got[2].tool_call_id.as_deref()),
            (id, Some(id))
        );
    }
}

#[test]
fn a_tool_is_found_by_its_letters() {
    let tools = ["echo", "file-read", "fileread"].map(|name| ToolDefinition::new(name, ""));
    for (called, meant) in [
        ("echo", Some("echo")),
        (" echo\n", Some("echo")),
        ("functions.echo", Some("echo")),
        ("default_api:ECHO", Some("echo")),
        ("functions.echo:0", Some("echo")),
        ("echo<|channel|>commentary", Some("echo")),
        ("mcp__server__echo", Some("echo")),
        ("\"echo\"", Some("echo")),
        ("file-read", Some("file-read")),
        // Either could be meant.
        ("file_read", None),
        ("echo\" path=\"a/echo", None),
        ("", None),
        ("ech", None),
    ] {
        assert_eq!(
            find_tool(&tools, called).map(ToolDefinition::name),
            meant,
            "{called}"
        );
    }
}

#[test]
fn calls_with_which_a_provider_gave_nothing_become_words() {
    let signed = |mut message: ChatMessage, proof: &str| {
        message.extra.insert(FROM.to_owned(), ORIGIN.into());
        let call = &mut message.tool_calls[0].extra;
        call.insert(ID.to_owned(), "own".into());
        call.extend((!proof.is_empty()).then(|| ("proof".to_owned(), proof.into())));
        message
    };
    let given = signed(asks(&[("b", "echo", "{}")]), "P");
    let messages = [
        ChatMessage::user("q"),
        signed(asks(&[("a", "echo", "{\"x\":1}")]), ""),
        ChatMessage::tool("a", "1"),
        given.clone(),
        ChatMessage::tool("b", "2"),
    ];
    let words = in_words(&of(&messages, &[]), ORIGIN).unwrap();
    assert_eq!(words[1].content.text(), "(called echo with {\"x\":1})");
    assert_eq!(words[1].tool_calls, []);
    assert_eq!(words[2], ChatMessage::user("(echo returned: 1)"));
    assert_eq!(words[3..], messages[3..]);
    // To another provider nothing of this goes.
    let words = in_words(&of(&messages, &[]), "other").unwrap();
    assert!(words.iter().all(|it| it.tool_calls.is_empty()));
    assert_eq!(in_words(&of(&messages[3..], &[]), ORIGIN), None);
}

#[test]
fn a_body_has_no_empty_members() {
    let tools = [ToolDefinition::new("echo", "")];
    let more = json!({ "max_tokens": 1, "temperature": null });
    for tools in [&tools[..], &[]] {
        let got = body("m", Vec::new(), tools, more.clone()).unwrap();
        let mut expected = json!({ "model": "m", "messages": [], "stream": true, "max_tokens": 1 });
        if !tools.is_empty() {
            expected["tools"] = json!([tools[0].to_value()]);
        }
        assert_eq!(serde_json::from_slice::<Value>(&got).unwrap(), expected);
    }
}

fn any_message() -> impl Strategy<Value = ChatMessage> {
    let word = prop::sample::select(vec![
        "",
        " ",
        "a",
        "call_0",
        "call_1",
        "functions.echo",
        "e\"x",
        "{}",
        "[1]",
        "{\"a\":1}",
    ]);
    let call = (word.clone(), word.clone(), word.clone(), any::<bool>()).prop_map(
        |(id, name, arguments, is_long)| {
            let id = if is_long {
                id.repeat(12)
            } else {
                id.to_owned()
            };
            ToolCall::new(id, name, arguments)
        },
    );
    let calls = prop::collection::vec(call, 0..4);
    (0..4_u8, word.clone(), word, calls, any::<bool>()).prop_map(
        |(role, text, id, calls, in_blocks)| {
            let role = [Role::System, Role::User, Role::Assistant, Role::Tool][usize::from(role)];
            let mut message = ChatMessage::new(role, text).with_tool_calls(calls);
            message.tool_call_id = Some(id.into());
            if in_blocks {
                message.content = vec![Block::Text(text.to_owned())].into();
            }
            message
        },
    )
}

proptest! {
    #[test]
    fn any_conversation_becomes_acceptable_and_then_stays(messages in prop::collection::vec(any_message(), 0..12)) {
        let once = mended(&messages);
        assert_acceptable(&once);
        prop_assert_eq!(mended(&once), once);
    }
}
