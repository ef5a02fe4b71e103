//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use exoclaw_proto::frame::Method;
use exoclaw_proto::{client, server};

#[test]
fn method_names_match_the_specification() {
    let named = |keep: fn(&Method) -> bool| -> Vec<_> {
        let methods = Method::ALL.into_iter().filter(keep);
        methods.map(Method::name).collect()
    };
    assert_eq!(
        named(|method| !method.is_future()),
        ["ping", "status", "chat.send", "plugin.list"]
    );
    assert_eq!(
        named(|method| method.is_future()),
        [
            "chat.history",
            "session.list",
            "session.clear",
            "plugin.load",
            "plugin.unload",
            "budget.status",
            "memory.search"
        ]
    );
}

#[test]
fn unspecified_extensions_are_off_by_default() {
    let server = server::ServerConfig::default();
    assert!(server.extensions.is_empty() && !server.in_order && !server.echo_numbers);
    let client = client::ClientConfig::default();
    assert_eq!(client.chat_idle_timeout, Some(Duration::from_secs(60)));
}
