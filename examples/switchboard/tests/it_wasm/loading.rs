//! What is loaded, and what is left out.

use std::fs;

use serde_json::json;
use switchboard::gateway::tool::{PluginLimits, PostError, load as load_all};

use super::*;

#[tokio::test]
async fn a_tool_is_offered_as_it_describes_itself() {
    let tools = load([entry("plain"), entry("echo"), entry("adapter")]).await;
    assert_eq!(
        tools.names().collect::<Vec<_>>(),
        ["plain", "echo", "adapter"]
    );
    let [echo] = tools.definitions() else {
        panic!("only one has a schema: {:?}", tools.definitions());
    };
    let parameters = json!({
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    });
    let function = &echo.to_value()["function"];
    assert_eq!(function["name"], "repeat");
    assert_eq!(function["description"], "Repeats its input.");
    assert_eq!(function["parameters"], parameters);
    let input = r#"{"message":"hi"}"#;
    assert_eq!(tools.call("repeat", input).await, ToolOutput::new(input));
    assert_eq!(tools.call("plain", "{}").await, ToolOutput::new("plain"));
    let unknown = ToolOutput::error("unknown tool: echo");
    assert_eq!(tools.call("echo", "{}").await, unknown);
}

#[tokio::test]
async fn a_channel_adapter_is_listed_and_not_offered() {
    let tools = load([entry("adapter")]).await;
    assert_eq!(tools.definitions(), []);
    let unknown = ToolOutput::error("unknown tool: adapter");
    assert_eq!(tools.call("adapter", "{}").await, unknown);
    assert_eq!(tools.names().collect::<Vec<_>>(), ["adapter"]);
    assert_eq!(tools.adapters().collect::<Vec<_>>(), ["adapter"]);
}

#[tokio::test]
async fn a_channel_adapter_reads_webhooks_and_forms_answers() {
    let tools = load([entry("adapter")]).await;
    let adapter = tools.adapter("adapter").unwrap();
    let incoming = adapter.parse_incoming(b"anything").await.unwrap();
    let found = [&*incoming.content, &*incoming.account, &*incoming.peer];
    assert_eq!(found, ["hi", "acc", "bo"]);
    assert_eq!(adapter.format_outgoing("hi").await.unwrap(), b"ok");
    let denied = PostError::Denied {
        host: "example.org".to_owned(),
    };
    let posted = adapter.post("https://example.org/", Vec::new()).await;
    assert_eq!(posted.unwrap_err(), denied);
}

#[tokio::test]
async fn a_bad_module_is_omitted_with_a_reason() {
    for (name, why) in [
        ("no_such_file", ": cannot read "),
        (
            "nothing",
            ": the module exports neither handle_tool_call nor parse_incoming",
        ),
        ("needy", ": not a module that can run here: "),
        (
            "bad_json",
            ": describe failed: expected value at line 1 column 1",
        ),
        ("bad_name", r#": bad tool name "no such name": "#),
    ] {
        let [text] = &warnings(entry(name)).await[..] else {
            panic!("one warning for {name}");
        };
        let text = text.strip_prefix(" is skipped").expect("it is skipped");
        assert!(text.starts_with(why), "{name}: {text}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_a_module_gets_no_permissions() {
    let folder = std::env::temp_dir().join(format!("plugins-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let echo = entry("echo").path;
    let manifest = json!({"wasm": [{"path": echo}], "allowed_paths": {"/": "/"}}).to_string();
    for (file, bytes) in [
        ("manifest.json", manifest.as_bytes()),
        ("empty.wasm", b""),
        ("cut.wasm", b"\0asm\x01\0\0"),
        ("words.wat", b"(module (func"),
    ] {
        let path = folder.join(file);
        fs::write(&path, bytes).unwrap();
        let texts = warnings(PluginEntry::new("x", path.to_string_lossy())).await;
        let start = " is skipped: not a module that can run here: ";
        assert!(texts[0].starts_with(start), "{file}: {texts:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn capabilities_are_checked() {
    let capable = |texts: &[&str]| {
        with_capabilities(
            entry("plain"),
            texts.iter().map(ToString::to_string).collect(),
        )
    };
    let texts = warnings(capable(&["http:example.com", "store:notes"])).await;
    assert_eq!(texts, [r#": the capability "store:notes" has no effect"#]);
    let texts = warnings(capable(&["files:/"])).await;
    assert!(texts[0].starts_with(r#" is skipped: bad capability "files:/""#));
}

#[tokio::test]
async fn one_name_is_for_one_tool() {
    let mut second = entry("echo");
    second.name = "again".to_owned();
    let (tools, warnings) = load_all([entry("echo"), second]).await;
    assert_eq!(tools.names().collect::<Vec<_>>(), ["echo"]);
    let texts: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    let text = concat!(
        r#"plugin "again" is skipped: its tool "repeat" has the same name as "#,
        r#"the tool of plugin "echo""#
    );
    assert_eq!(texts, [text]);
}

#[tokio::test]
async fn a_module_that_needs_more_memory_than_it_may_have_is_omitted() {
    let limits = PluginLimits::default().with_memory(0);
    let texts = warnings(with_limits(entry("huge"), limits)).await;
    assert_eq!(texts.len(), 1, "{texts:?}");
}
