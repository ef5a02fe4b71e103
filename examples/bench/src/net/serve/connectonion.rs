//! Our ConnectOnion host, which admits every caller. Its agent repeats the prompt.

use connectonion_proto::auth::Signer;
use connectonion_proto::net::{Agent, AppError, Prompt, Reply, Server, ServerOptions, Turn};
use connectonion_proto::trust::TrustLevel;

use super::{CONNECTIONS, OnListen};

/// Answers at once with the prompt.
struct Echo;

impl Agent for Echo {
    async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        Ok(Reply::new(prompt.text))
    }
}

/// The key of the host, whose address clients sign.
pub(in crate::net) fn host_key() -> Signer {
    Signer::from_seed(&[1; 32])
}

pub(super) async fn serve(on_listen: OnListen) {
    let mut options = ServerOptions::new(&host_key(), TrustLevel::Open);
    options.connection.limits.max_message_rate = None;
    options.http.limits.max_connections = CONNECTIONS;
    let host = Server::bind("127.0.0.1:0", Echo, options).await.unwrap();
    on_listen(host.local_addr());
    host.run().await;
}
