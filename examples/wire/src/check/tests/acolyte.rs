//! Acolyte: a server whose agent echoes, uses a tool, fails, or works until it is aborted.

use acolyte_proto::auth::{ApiKey, Auth};
use acolyte_proto::error::AppError;
use acolyte_proto::event::{Event, ToolCall, ToolResult, Usage};
use acolyte_proto::frame::{ChatRequest, Reply, Status};
use acolyte_proto::net::{Agent, ChatReply, Server, ServerOptions};
use rpc_core::Json;

use rpc_core::testing::Side;

use super::{Protocol, Setup, Suite, conforms, serve};

struct Worker;

impl Agent for Worker {
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        match &*request.message {
            "use a tool" => {
                let call = ToolCall::new("call_1", "ls", Json::new("{}").unwrap());
                run.emit(&Event::ToolCall(call)).await.unwrap();
                let result = ToolResult::ok("call_1", "ls");
                run.emit(&Event::ToolResult(result)).await.unwrap();
            }
            "fail" => return Err(AppError::failed("no provider")),
            "work" => run.cancelled().await,
            _ => {}
        }
        // Whoever has left or aborted gets nothing.
        let _ = run.text(&request.message).await;
        let _ = run.emit(&Event::Usage(Usage::new(3, 4))).await;
        Ok(Reply::new(request.message, "echo"))
    }

    async fn status(&self) -> Status {
        Status::new("echo", "")
    }
}

fn server(auth: Auth, token: Option<&'static str>) -> Setup {
    let (server, service) = Server::mount(Worker, ServerOptions::new(auth));
    tokio::spawn(server.run());
    let mut variables = vec![
        ("tool_prompt", "use a tool"),
        ("failing_prompt", "fail"),
        ("long_prompt", "work"),
    ];
    variables.extend(token.map(|token| ("token", token)));
    Setup {
        peer: serve(service),
        variables,
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_with_one_fault_fails_one_row() {
    let suite = Suite::load(Protocol::Acolyte, Side::Server).unwrap();
    let setups = [
        server(Auth::open(), None),
        server(
            Auth::key(ApiKey::new("a-long-s3cret-key").unwrap()),
            Some("a-long-s3cret-key"),
        ),
    ];
    conforms(&suite, &setups).await;
}
