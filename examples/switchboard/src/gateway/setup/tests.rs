//! What a gateway is set up with, by its effect.
#![allow(clippy::unwrap_used, reason = "tests")]

use exoclaw_proto::frame::SessionRef;
use futures_util::StreamExt as _;
use rpc_core::Str;
use snek_proto::llm::chat::ChatMessage;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use super::*;
use crate::gateway::config::Origin;
use crate::model::http::tests::testing::{Does, Provider as Fake};
use crate::model::{ChatModel, ChatRequest, Delta, ModelError};

const FIRST: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
const SILENCE: Duration = Duration::from_secs(45);

/// The model of a gateway whose provider is here.
async fn model(url: &str) -> Arc<dyn ChatModel> {
    let mut config = Config::default();
    config.agent.model.provider = Some(crate::model::provider::Provider::OpenAi);
    config.agent.model.model = Some("toy".to_owned());
    config.agent.model.key = Some(Secret::from("sk-hunter2"));
    let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| url.to_owned());
    let prepared = prepare(&config, &Overrides::default(), &env).await;
    prepared.unwrap().model.model.unwrap()
}

#[tokio::test]
async fn a_provider_that_is_silent_for_45_seconds_times_out() {
    let provider = Fake::start(&[Does::Hangs(FIRST)]).await;
    let model = model(&provider.url).await;
    let question = ChatMessage::user("hello");
    let deltas = model.stream(ChatRequest::new(vec![&question])).await;
    let mut deltas = deltas.unwrap();
    let first = deltas.next().await.unwrap().unwrap();
    assert_eq!(first, Delta::Text("hi".to_owned()));
    tokio::time::pause();
    let error = deltas.next().await.unwrap().unwrap_err();
    let (what, after) = ("stream idle timeout", SILENCE);
    assert_eq!(error, ModelError::TimedOut { what, after });
}

#[tokio::test]
async fn a_provider_that_does_not_begin_to_answer_within_45_seconds_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let model = model(&url).await;
    let asked = tokio::spawn(async move {
        let question = ChatMessage::user("hello");
        let deltas = model.stream(ChatRequest::new(vec![&question])).await;
        deltas.unwrap().next().await.unwrap().unwrap_err()
    });
    let (mut socket, _) = listener.accept().await.unwrap();
    assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
    tokio::time::pause();
    let (what, after) = ("request timed out", SILENCE);
    assert_eq!(asked.await.unwrap(), ModelError::TimedOut { what, after });
}

#[test]
fn every_member_of_a_binding_counts_and_other_chats_go_to_the_agent_or_fail() {
    let members = ["channel", "account_id", "peer_id", "guild_id", "team_id"];
    let bindings =
        members.map(|member| format!("[[bindings]]\nagent_id = {member:?}\n{member} = \"x\"\n"));
    let routed = |agent: &str| {
        let text = format!("[agent]\n{agent}\n{}", bindings.concat());
        let read = Config::parse(&text, &Origin::default());
        router(&read.unwrap()).unwrap()
    };
    let caught = routed("id = \"else\"");
    let nowhere = SessionRef {
        peer: Some("".into()),
        ..SessionRef::new("", "")
    };
    let at = |change: fn(&mut SessionRef, Str)| {
        let mut chat = nowhere.clone();
        change(&mut chat, "x".into());
        chat
    };
    for (route, agent) in [
        (at(|it, x| it.channel = x), "channel"),
        (at(|it, x| it.account = x), "account_id"),
        (at(|it, x| it.peer = Some(x)), "peer_id"),
        (at(|it, x| it.guild = Some(x)), "guild_id"),
        (at(|it, x| it.team = Some(x)), "team_id"),
        (nowhere.clone(), "else"),
    ] {
        assert_eq!(caught.resolve(&route), Ok(agent));
    }
    assert!(routed("catch_all = false").resolve(&nowhere).is_err());
}
