//! Plugins behind a gateway, as a client sees them.

use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::connect_lazy;
use switchboard::gateway::config::{Config, Origin};
use switchboard::gateway::setup::{Gateway, Overrides};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_works_in_its_sandbox_and_its_traps_reach_the_client() {
    let plugins = ["files", "trap", "echo"].map(|name| {
        let path = entry(name).path;
        format!("[[plugins]]\nname = {name:?}\npath = {path:?}\n")
    });
    let text = format!(
        "[gateway]\nport = 0\ndata_dir = \":memory:\"\n{}",
        plugins.concat()
    );
    let config = Config::parse(&text, &Origin::default()).unwrap();
    let gateway = Gateway::start(config, Overrides::default(), &|_| None)
        .await
        .unwrap();
    assert_eq!(gateway.warnings, [""; 0]);
    let (client, _, connection) = connect_lazy(&gateway.url(), ClientConfig::default()).unwrap();
    tokio::spawn(gateway.run());
    tokio::spawn(connection.run());
    client.ready().await.unwrap();
    let order = "/call files {}\n/call trap {}\n/call repeat {\"message\":\"hi\"}";
    let mut chat = client.chat(order).await;
    let (mut results, mut said) = (Vec::new(), String::new());
    while let Some(event) = chat.next().await {
        match event.unwrap() {
            StreamEvent::ToolResult(result) => {
                results.push((result.content.to_string(), result.is_error));
            }
            StreamEvent::Text(text) => said.push_str(&text),
            _ => {}
        }
    }
    let trap = failed("wasm trap: wasm `unreachable` instruction executed").content;
    let echo = "{\"message\":\"hi\"}".to_owned();
    assert_eq!(
        results,
        [("nothing".to_owned(), false), (trap, true), (echo, false)]
    );
    // The loop went on: the model has answered in words.
    assert!(!said.is_empty());
}
