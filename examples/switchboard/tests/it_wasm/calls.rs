//! What a call gives, and what it cannot do.

use super::*;

#[tokio::test]
async fn nothing_is_left_from_one_call_to_the_next() {
    let tools = load([entry("count")]).await;
    for _ in 0..3 {
        assert_eq!(tools.call("count", "{}").await, ToolOutput::new("1"));
    }
}

#[tokio::test]
async fn a_failure_is_an_output() {
    let tools = load([entry("trap"), entry("fails"), entry("judged")]).await;
    assert_eq!(
        tools.call("trap", "{}").await,
        failed("wasm trap: wasm `unreachable` instruction executed")
    );
    assert_eq!(tools.call("fails", "{}").await, failed("no"));
    let output = tools.call("judged", "{}").await;
    assert_eq!(output, ToolOutput::error("no city"));
    // And the next call is not harmed.
    assert_eq!(tools.call("fails", "{}").await, failed("no"));
}

#[tokio::test]
async fn memory_tables_and_outputs_are_limited() {
    let limits = PluginLimits::default().with_memory(4 << 20);
    let tools = load([
        with_limits(entry("hog"), limits),
        with_limits(entry("tables"), limits),
        with_limits(entry("huge"), limits),
    ])
    .await;
    assert_eq!(tools.call("hog", "{}").await, failed("out of memory"));
    assert_eq!(tools.call("tables", "{}").await, ToolOutput::new("refused"));
    assert_eq!(
        tools.call("huge", "{}").await,
        failed("the output is larger than 1048576 bytes")
    );
}

#[tokio::test]
async fn a_large_output_passes_if_it_may() {
    let limits = PluginLimits::default().with_output(2 << 20);
    let tools = load([with_limits(entry("huge"), limits)]).await;
    let output = tools.call("huge", "{}").await;
    assert_eq!((output.content.len(), output.is_error), (2 << 20, false));
}

#[tokio::test]
async fn there_are_no_files_and_no_environment() {
    let tools = load([entry("files")]).await;
    assert_eq!(tools.call("files", "{}").await, ToolOutput::new("nothing"));
}

#[tokio::test]
async fn a_large_input_arrives_whole() {
    let tools = load([entry("echo")]).await;
    let input = format!(r#"{{"message":"{}"}}"#, "é".repeat(100_000));
    assert_eq!(tools.call("repeat", &input).await, ToolOutput::new(input));
    assert_eq!(tools.call("repeat", "").await, ToolOutput::new(""));
}
