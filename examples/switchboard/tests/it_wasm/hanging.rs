//! Plugins that do not come to an end, and those beside them.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::*;

/// What makes the plugin hang.
const FOR_EVER: &str = r#"{"long":true}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hung_calls_do_not_stall_others() {
    let tools = load([with_limits(entry("hang"), impatient()), entry("echo")]).await;
    let tools = Arc::new(tools);
    let mut hung = JoinSet::new();
    for _ in 0..2 {
        let tools = tools.clone();
        hung.spawn(async move { tools.call("hang", FOR_EVER).await });
    }
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let tools = tools.clone();
        calls.spawn(async move {
            let input = format!(r#"{{"message":"{number}"}}"#);
            (tools.call("repeat", &input).await, input)
        });
    }
    while let Some(done) = calls.join_next().await {
        let (output, input) = done.unwrap();
        assert_eq!(output, ToolOutput::new(input));
    }
    while let Some(output) = hung.join_next().await {
        assert_eq!(output.unwrap(), failed("timeout"));
    }
}

#[tokio::test]
async fn a_plugin_has_30_seconds_by_default() {
    let tools = load([entry("hang")]).await;
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    assert_eq!(tools.call("hang", FOR_EVER).await, failed("timeout"));
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_one_call_does_not_stop_another_of_the_same_plugin() {
    // It never ends by itself, so that only a call's own deadline ends it.
    let limits = PluginLimits::default().with_deadline(Duration::from_secs(600));
    let tools = Arc::new(load([with_limits(entry("hang"), limits)]).await);
    let mut kept = tokio::spawn({
        let tools = tools.clone();
        async move { tools.call("hang", FOR_EVER).await }
    });
    for _ in 0..3 {
        let mut gone = Box::pin(tools.call("hang", FOR_EVER));
        // Long enough to be running; if not, nothing is lost.
        let waited = tokio::time::timeout(Duration::from_millis(200), &mut gone).await;
        assert!(waited.is_err());
        drop(gone);
    }
    let waited = tokio::time::timeout(Duration::from_millis(200), &mut kept).await;
    assert!(waited.is_err(), "it is still running: {waited:?}");
    kept.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_plugin_is_busy_and_free_again_afterwards() {
    let limits = impatient().with_concurrency(1);
    let tools = Arc::new(load([with_limits(entry("hang"), limits)]).await);
    let mut calls = JoinSet::new();
    for _ in 0..20 {
        let tools = tools.clone();
        calls.spawn(async move { tools.call("hang", FOR_EVER).await });
    }
    let outputs = calls.join_all().await;
    let busy = outputs.iter().filter(|output| **output == failed("busy"));
    let timeout = outputs
        .iter()
        .filter(|output| **output == failed("timeout"));
    let (busy, timeout) = (busy.count(), timeout.count());
    assert_eq!(busy + timeout, 20);
    assert!(busy >= 1 && timeout >= 1, "{busy} busy, {timeout} timeout");
    // The place is free once the engine has taken notice.
    while tools.call("hang", "{}").await != ToolOutput::new("done") {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_its_caller_frees_its_place() {
    let limits = PluginLimits::default()
        .with_deadline(Duration::from_secs(600))
        .with_concurrency(1);
    let tools = load([with_limits(entry("hang"), limits)]).await;
    for _ in 0..3 {
        let call = tools.call("hang", FOR_EVER);
        let waited = tokio::time::timeout(Duration::from_millis(50), call).await;
        assert!(waited.is_err());
        // There is no other place, and the deadline is far.
        assert_eq!(tools.call("hang", "{}").await, ToolOutput::new("done"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_never_starts_is_omitted() {
    let limits = PluginLimits::default().with_deadline(Duration::from_millis(50));
    let texts = warnings(with_limits(entry("start"), limits)).await;
    assert_eq!(
        texts,
        [" is skipped: not a module that can run here: timeout"]
    );
}
