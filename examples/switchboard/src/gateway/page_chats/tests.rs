//! How long an answer of the page continues.

use futures_util::StreamExt as _;
use rpc_core::store::MemoryStore;

use super::*;
use crate::gateway::config::AgentConfig;
use crate::gateway::engine::EngineParts;
use crate::gateway::store::{GatewayStore, GatewayStoreConfig};
use crate::gateway::tool::Tools;
use crate::model::{ChatModel, ChatRequest, Deltas, ModelError};

const CHAT: &str = "00000000000000000000000000000001";

/// A model that says when it is asked, and thinks without end.
#[derive(Debug, Default)]
struct Thinking(Arc<Notify>);

#[async_trait]
impl ChatModel for Thinking {
    async fn stream(&self, _: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        self.0.notify_one();
        Ok(stream::pending().boxed())
    }
}

/// Chats, and what says when their model is asked.
async fn chats() -> (Chats, Arc<Notify>) {
    let config = GatewayStoreConfig::default();
    let store = GatewayStore::open(Arc::new(MemoryStore::new()), config, unix_seconds).await;
    let model = Thinking::default();
    let is_asked = Arc::clone(&model.0);
    let (agent, model) = (AgentConfig::default(), Arc::new(model));
    let parts = EngineParts::new(agent, model, Tools::new(), store.unwrap());
    let chats = Chats::new(Arc::new(Engine::new(parts)));
    (chats, is_asked)
}

/// Asks, and waits for the model to be asked. Meanwhile a blocking task keeps the paused clock from moving.
async fn ask(chats: &Chats, is_asked: &Notify) {
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let still = tokio::task::spawn_blocking(move || ended.recv());
    let body = json!({ "id": CHAT, "content": "think" }).to_string();
    let asked = chats.ask(CHAT, &body.into()).await;
    assert_eq!(asked.status(), StatusCode::ACCEPTED);
    is_asked.notified().await;
    drop(end);
    assert!(still.await.unwrap().is_err());
}

/// Waits until the store has the answer as one that was stopped: its writer is another thread.
async fn until_stopped(chats: &Chats) {
    let session = Chat::new(CHAT).session.clone();
    loop {
        let turns = chats.engine.kept(&session, 9).await.unwrap();
        let mark = turns.first().and_then(|turn| turn.mark.as_ref());
        if mark.is_some_and(|mark| mark.to_string() == "stopped") {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_viewers_continues_for_two_minutes() {
    let (chats, is_asked) = chats().await;
    ask(&chats, &is_asked).await;
    sleep(ALONE - Duration::from_secs(1)).await;
    assert!(chats.open.find(CHAT).is_some_and(|chat| chat.is_running()));
    sleep(Duration::from_secs(9)).await;
    assert!(chats.open.find(CHAT).is_none(), "nothing is left of it");
    until_stopped(&chats).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_viewers_continues_until_the_gateway_ends() {
    let (chats, is_asked) = chats().await;
    let page = chats.follow(CHAT, None);
    ask(&chats, &is_asked).await;
    sleep(10 * ALONE).await;
    assert!(chats.open.find(CHAT).is_some_and(|chat| chat.is_running()));
    assert_eq!(chats.close().await, 1);
    until_stopped(&chats).await;
    drop(page);
    assert!(chats.open.find(CHAT).is_none(), "nothing is left of it");
}
