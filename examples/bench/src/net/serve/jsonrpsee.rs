//! jsonrpsee's server: methods, and a subscription of as many items as its parameter says.

use jsonrpsee::core::SubscriptionResult;
use jsonrpsee::server::{RpcModule, Server, ServerConfig};
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::to_raw_value;

use super::{CHUNK, CONNECTIONS, OnListen};
use crate::net::values::{Event, Said};
use crate::text;

pub(super) async fn serve(on_listen: OnListen) {
    let config = ServerConfig::builder()
        .max_connections(CONNECTIONS as u32)
        .max_subscriptions_per_connection(4_096)
        .build();
    let server = Server::builder()
        .set_config(config)
        .build("127.0.0.1:0")
        .await
        .unwrap();
    on_listen(server.local_addr().unwrap());
    server.start(module()).stopped().await;
}

fn module() -> RpcModule<String> {
    let mut module = RpcModule::new(text::words(CHUNK));
    module.register_method("ping", |_, _, _| "pong").unwrap();
    module
        .register_method("echo", |params, _, _| {
            let said: Said<String> = params.one()?;
            Ok::<_, ErrorObjectOwned>(said)
        })
        .unwrap();
    module
        .register_subscription(
            "subscribe",
            "chat",
            "unsubscribe",
            |params, pending, words, _| async move {
                let count: usize = params.one()?;
                let sink = pending.accept().await?;
                for _ in 0..count {
                    let event = Event::Text(&**words);
                    sink.send(to_raw_value(&event)?).await?;
                }
                let done = Event::<&str>::Done;
                sink.send(to_raw_value(&done)?).await?;
                SubscriptionResult::Ok(())
            },
        )
        .unwrap();
    module
}
