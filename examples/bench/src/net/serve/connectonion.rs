//! Our ConnectOnion host, which lets everybody in. Its connections are idle, so its agent never works.

use std::sync::Arc;

use async_trait::async_trait;
use connectonion_proto::auth::Signer;
use connectonion_proto::net::{
    Agent, AgentError, Prompt, Reply, Server, ServerOptions, Turn, http_config,
};
use connectonion_proto::storage::MemoryStorage;
use connectonion_proto::trust::TrustLevel;
use rpc_core::net::server::ServerLimits;

use super::Tell;

struct Echo;

#[async_trait]
impl Agent for Echo {
    async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AgentError> {
        Ok(Reply::new(prompt.text))
    }
}

pub(super) async fn serve(tell: Tell) {
    let limits = ServerLimits::default().with_max_connections(20_000);
    let options = ServerOptions::new(&Signer::from_seed(&[1; 32]), TrustLevel::Open)
        .with_storage(Arc::new(MemoryStorage::new(20_000)))
        .with_http(http_config().with_limits(limits));
    let host = Server::bind("127.0.0.1:0", Echo, options).await.unwrap();
    tell(host.local_addr());
    host.run().await;
}
