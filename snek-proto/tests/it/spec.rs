//! Names and numbers, word for word: whoever changes one changes the protocol.

use std::time::Duration;

use rpc_core::{CallError, Refused};
use snek_proto::bot::{BotConfig, StreamConfig};
use snek_proto::error::BotError;
use snek_proto::llm::image::fetch::FetchConfig;
use snek_proto::llm::toolloop::ToolLoopConfig;
use snek_proto::net::ServerOptions;
use snek_proto::{client, server};

#[test]
fn error_names_match_the_specification() {
    let cause = || Box::new(CallError::Refused(Refused::Closed));
    let message = String::new;
    let errors = [
        BotError::ConnectionError {
            attempts: 3,
            cause: cause(),
        },
        BotError::AuthenticationError { message: message() },
        BotError::RpcError(cause()),
        BotError::ToolError {
            tool: message(),
            message: message(),
        },
        BotError::DatabaseError { message: message() },
        BotError::ValidationError {
            what: "x".into(),
            why: message(),
        },
        BotError::CircuitBreakerOpenError {
            retry_after: Duration::ZERO,
        },
    ];
    let names: Vec<_> = errors.iter().map(BotError::name).collect();
    assert_eq!(
        names,
        [
            "ConnectionError",
            "AuthenticationError",
            "RPCError",
            "ToolError",
            "DatabaseError",
            "ValidationError",
            "CircuitBreakerOpenError"
        ]
    );
}

#[test]
fn defaults_match_the_specification() {
    let seconds = Duration::from_secs;
    let client = client::ClientConfig::new("bot", "password");
    assert_eq!(client.call_timeout, seconds(190));
    assert_eq!(client.keep_alive.interval, Some(seconds(30)));
    let backoff = client::reconnect_policy().backoff;
    assert_eq!(backoff.initial, seconds(1));
    assert_eq!(backoff.max_attempts, Some(3));

    let server = server::ServerConfig::default();
    assert_eq!(server.keep_alive, client.keep_alive);
    assert_eq!(server.max_requests, 100);
    let options = ServerOptions::default();
    assert_eq!(options.shutdown_timeout, seconds(5));

    let bot = BotConfig::new("bot", "password");
    assert_eq!(bot.max_handlers, 100);
    assert_eq!(bot.typing_interval, seconds(1));
    assert_eq!(bot.shutdown_timeout, seconds(5));
    assert_eq!(bot.drive_base.as_deref(), Some("https://snek.molodetz.nl"));
    assert!(bot.auto_pong && bot.sanitize);
    assert_eq!(StreamConfig::default().interval, Duration::ZERO);

    let tools = ToolLoopConfig::default();
    assert_eq!((tools.max_rounds, tools.max_repeated), (25, 5));
    assert_eq!(tools.max_consecutive_errors, 3);

    let images = FetchConfig::default();
    assert_eq!(images.head_timeout, seconds(5));
    assert_eq!(images.timeout, seconds(30));
}
