//! Exoclaw: a gateway that echoes, works with a tool, or fails.

use std::sync::Arc;

use exoclaw_proto::auth::Auth;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, Plugin, Status, StreamEvent, ToolResult, ToolUse, Usage};
use exoclaw_proto::net::{AppError, Backend, ChatReply, Peer, Server, ServerOptions, SessionTurns};
use exoclaw_proto::session::SessionKey;
use rpc_core::Json;

use rpc_core::testing::Side;

use super::{Protocol, Setup, Suite, conforms, serve};

#[derive(Default)]
struct Gateway(SessionTurns);

impl Backend for Gateway {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        Status::new("1.2.3", 1, 2)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        vec![Plugin::new("echo")]
    }

    async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        let from = &chat.session;
        let key = SessionKey::new("default", &from.channel, &from.account, from.peer());
        let Ok(_turn) = self.0.enter(&key).await else {
            return Err(AppError::Refused(RpcError::new("busy")));
        };
        match chat.content.as_str() {
            prompt @ ("use a tool" | "fail a tool") => {
                let input = Json::new(r#"{"text":"hi"}"#).unwrap();
                reply
                    .event(&StreamEvent::ToolUse(ToolUse::new("call_1", "echo", input)))
                    .await?;
                reply
                    .event(&StreamEvent::ToolResult(ToolResult::new(
                        "call_1",
                        "hi",
                        prompt == "fail a tool",
                    )))
                    .await?;
            }
            "fail" => {
                reply.text("I ").await?;
                return Err(AppError::Failed(RpcError::provider("connection refused")));
            }
            _ => reply.text("hello").await?,
        }
        reply.usage(Usage::new(3, 4)).await?;
        Ok(())
    }
}

fn gateway(auth: Auth, token: Option<&'static str>) -> Setup {
    let options = ServerOptions::new(auth);
    let (server, service) = Server::mount(Gateway::default(), options);
    tokio::spawn(server.run());
    let mut variables = vec![
        ("tool_prompt", "use a tool"),
        ("failing_tool_prompt", "fail a tool"),
        ("failing_prompt", "fail"),
    ];
    variables.extend(token.map(|token| ("token", token)));
    Setup {
        peer: serve(service),
        variables,
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_with_one_fault_fails_one_row() {
    let suite = Suite::load(Protocol::Exoclaw, Side::Server).unwrap();
    let setups = [
        gateway(Auth::open(), None),
        gateway(
            Auth::token("a-long-s3cret-token").unwrap(),
            Some("a-long-s3cret-token"),
        ),
    ];
    conforms(&suite, &setups).await;
}
