//! ConnectOnion: a host whose agent echoes, uses a tool, asks, or works until it is spoken to.

use connectonion_proto::auth::{InviteCodes, Signer};
use connectonion_proto::frame::{
    ApprovalNeeded, AskUser, EventKind, ToolCall, ToolResult, ToolStatus,
};
use connectonion_proto::net::{
    Agent, AppError, Prompt, Reply, RuntimeOptions, Server, ServerOptions, Turn,
};
use connectonion_proto::trust::{AccessControl, TrustLevel};
use rpc_core::Json;

use rpc_core::testing::Side;

use super::{Protocol, Setup, Suite, conforms, conforms_in_part, serve};

struct Worker;

impl Agent for Worker {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        let arguments = Json::new("{}").unwrap();
        match &*prompt.text {
            "use a tool" => {
                turn.emit(EventKind::ToolCall(ToolCall::new("t1", "ls", arguments)))?;
                let result = ToolResult::new("t1", "ls", ToolStatus::Success, "a.txt");
                turn.emit(EventKind::ToolResult(result))?;
            }
            "ask" => {
                let _ = turn.ask_user(AskUser::new("Which?")).await;
            }
            "approve" => {
                let _ = turn
                    .approve(ApprovalNeeded::new("rm", arguments, "Remove?"))
                    .await;
            }
            "work" => {
                turn.emit(EventKind::Unknown {
                    tag: "working".into(),
                    raw: arguments,
                })?;
                turn.input_waits().await;
                turn.next_inputs()?;
                return Ok(Reply::new("stopped"));
            }
            _ => {}
        }
        Ok(Reply::new(format!("you said {}", prompt.text)))
    }
}

/// Returns a host, and its address.
fn host(level: TrustLevel) -> (super::Peer, &'static str) {
    let signer = Signer::generate().unwrap();
    let codes = InviteCodes::new(["open sesame"]).unwrap();
    let access = AccessControl::new(*signer.address(), level)
        .with_invites(codes)
        .require_signatures();
    let runtime = RuntimeOptions::with_access(access);
    let options = ServerOptions::with_runtime(runtime);
    let (server, service) = Server::mount(Worker, options);
    tokio::spawn(server.run());
    (serve(service), signer.address().to_string().leak())
}

#[tokio::test(start_paused = true)]
async fn a_host_with_one_fault_fails_one_row() {
    let mut suite = Suite::load(Protocol::ConnectOnion, Side::Server).unwrap();
    suite.rows.retain(|row| !row.id.contains(".onboard."));
    let (peer, address) = host(TrustLevel::Open);
    let variables = vec![
        ("address", address),
        ("strict", "yes"),
        ("tool_prompt", "use a tool"),
        ("ask_prompt", "ask"),
        ("approval_prompt", "approve"),
        ("long_prompt", "work"),
    ];
    conforms(&suite, &[Setup { peer, variables }]).await;
}

#[tokio::test(start_paused = true)]
async fn a_careful_host_with_one_fault_fails_one_row() {
    let mut suite = Suite::load(Protocol::ConnectOnion, Side::Server).unwrap();
    let is_kept = |id: &str| id.contains(".onboard.") || id.ends_with(".order");
    suite.rows.retain(|row| is_kept(&row.id));
    let (peer, address) = host(TrustLevel::Careful);
    let variables = vec![("address", address), ("invite", "open sesame")];
    conforms_in_part(&suite, &[Setup { peer, variables }]).await;
}
