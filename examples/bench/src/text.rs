//! The frames that are read and written.

use std::fmt::Write;

/// Clean text of so many bytes, as a model writes it.
pub(crate) fn words(bytes: usize) -> String {
    repeated("The quick brown fox jumps over the lazy dog. ", bytes)
}

fn repeated(text: &str, bytes: usize) -> String {
    text.chars().cycle().take(bytes).collect()
}

/// Text with a line break or a quotation mark in every 40 bytes, as code has them.
pub(crate) fn code(bytes: usize) -> String {
    let lines = "    let greeting = \"hello\";\n    return greeting + name + other;\n";
    repeated(lines, bytes)
}

/// An Exoclaw `text` event.
pub(crate) fn exoclaw_text(text: &str) -> String {
    format!(
        r#"{{"id":"0f1e2d3c4b5a6978","event":"text","data":{}}}"#,
        json(text)
    )
}

/// A notification of a JSON-RPC subscription with this payload.
pub(crate) fn subscription(result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"chat","params":{{"subscription":81985529216486,"result":{result}}}}}"#
    )
}

/// A progress notification of the Model Context Protocol.
pub(crate) fn progress(text: &str) -> String {
    let text = json(text);
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"0f1e2d3c4b5a6978","progress":1,"message":{text}}}}}"#
    )
}

/// A log notification of the Model Context Protocol, whose data is any value.
pub(crate) fn logged(data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{data}}}}}"#
    )
}

/// A list of channels, 200 KB.
pub(crate) fn channels() -> String {
    list(2_000, |n| {
        format!(
            r#"{{"uid":"c0ffee00-0000-4000-8000-{n:012}","name":"channel number {n}","tag":"public"}}"#
        )
    })
}

/// A list of sessions, 200 KB.
pub(crate) fn sessions() -> String {
    list(2_000, |n| {
        format!(
            r#"{{"key":"default:websocket:account-{n:08}:the main conversation","turns":{n},"last_active":1770000000}}"#
        )
    })
}

fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    let mut text = String::from("[");
    for n in 0..count {
        let comma = if n == 0 { "" } else { "," };
        write!(text, "{comma}{}", item(n)).unwrap();
    }
    text.push(']');
    text
}

/// A call of Snek with its one argument.
pub(crate) const ECHO: &str = r#"{"method":"echo","args":[{"text":"The quick brown fox jumps over a lazy dog."}],"kwargs":{},"callId":"0f1e2d3c4b5a6978"}"#;

/// The text as JSON.
pub(crate) fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
