//! jsonrpsee's server: a method, and a subscription of as many items as its parameter says.

use jsonrpsee::core::SubscriptionResult;
use jsonrpsee::server::{RpcModule, Server, ServerConfig};
use serde::Serialize;

use super::{CHUNK, Tell};
use crate::text;

/// The same payload as the chat's.
#[derive(Serialize)]
struct Event<'a> {
    event: &'a str,
    data: &'a str,
}

pub(super) async fn serve(tell: Tell) {
    let config = ServerConfig::builder().max_connections(20_000).build();
    let server = Server::builder()
        .set_config(config)
        .build("127.0.0.1:0")
        .await
        .unwrap();
    tell(server.local_addr().unwrap());
    let mut module = RpcModule::new(text::words(CHUNK));
    module.register_method("ping", |_, _, _| "pong").unwrap();
    module
        .register_subscription(
            "subscribe",
            "chat",
            "unsubscribe",
            |params, pending, words, _| async move {
                let count: usize = params.one()?;
                let sink = pending.accept().await?;
                for _ in 0..count {
                    let event = Event {
                        event: "text",
                        data: &words,
                    };
                    sink.send(serde_json::value::to_raw_value(&event)?).await?;
                }
                SubscriptionResult::Ok(())
            },
        )
        .unwrap();
    server.start(module).stopped().await;
}
