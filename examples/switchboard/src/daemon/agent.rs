//! The [`Worker`] as the agent of a server for Acolyte.

use acolyte_proto::error::AppError;
use acolyte_proto::event::Event;
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::limits::CAPABILITIES;
use acolyte_proto::net::{Agent, ChatReply};
use async_trait::async_trait;

use super::ask_first::ASK_FIRST;
use super::worker::{Watch, Worker};

/// The providers that known clients accept.
const PROVIDERS: [&str; 2] = ["anthropic", "openai"];

impl Agent for Worker {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        self.chat(&request, &run).await
    }

    async fn status(&self) -> Status {
        let mut status = Status::new(self.name.clone(), "");
        // Clients of some versions want them sorted.
        status.capabilities = format!("{ASK_FIRST}, {CAPABILITIES}").into();
        let known = PROVIDERS.into_iter().find(|it| *it == self.provider);
        match known {
            Some(provider) => {
                status.providers.push(provider.into());
                status.provider_auth.push(provider.into());
                status
            }
            None => status,
        }
    }
}

#[async_trait]
impl Watch for ChatReply {
    async fn emit(&self, event: Event) {
        // Nothing is sent of a chat without a client, and the abort is handled elsewhere.
        if let Err(error) = self.emit(&event).await {
            tracing::debug!(%error, "an event is not sent");
        }
    }

    async fn aborted(&self) {
        self.cancelled().await;
    }

    fn is_aborted(&self) -> bool {
        self.is_cancelled()
    }
}
