//! The client under the faults of hosts, over real sockets.

use std::net::SocketAddr;

use async_trait::async_trait;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::net::{AgentOptions, ClientProtocol, RemoteAgent, connect_with, dialer};
use rpc_core::Limits;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, Link};
use serde_json::{Value, json};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Fault, Line, SharedEvents, Started, Terms, clock_jump, prove,
};

use crate::scripted::{client_key, connected, thinking};

/// A client whose calls are questions for a session. Runs outlast lines; see `net_resume`.
struct Questions;

fn options(terms: &Terms) -> AgentOptions {
    let limits = Limits::default().with_max_message_bytes(terms.max_message);
    let client = ClientConfig::new()
        .with_connect_timeout(Some(terms.handshake))
        .with_silence_timeout(Some(terms.silence))
        .with_answer_timeout(None)
        .with_max_sent_bytes(terms.max_message)
        .with_limits(limits);
    AgentOptions::default()
        .with_client(client)
        .with_link(terms.link.clone())
}

#[async_trait]
impl ClientUnderTest for Questions {
    type Protocol = ClientProtocol;
    type Handle = RemoteAgent;

    const STEPS: usize = 1;
    const CALLS: bool = true;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &options(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (agent, events, connection) = connect_with(dialer, client_key(), options(&terms));
        (agent, events, tokio::spawn(connection.run()))
    }

    fn link<'h>(&self, agent: &'h RemoteAgent) -> &'h Link<ClientProtocol> {
        agent.link()
    }

    async fn step(&self, line: &mut dyn Line, _: usize) -> Option<()> {
        assert_eq!(line.hear().await?["type"], "CONNECT");
        line.say(connected("new")).await
    }

    async fn call(&self, agent: &RemoteAgent, _: &SharedEvents<Self>) -> Ended {
        agent.status("s-1").await.into()
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let frame = line.hear().await?;
        assert_eq!(frame["type"], "SESSION_STATUS");
        Some(frame)
    }

    async fn progress(&self, _: &mut dyn Line, _: &Value) -> Option<()> {
        Some(())
    }

    async fn answer(&self, line: &mut dyn Line, _: &Value) -> Option<()> {
        line.say(json!({"type": "SESSION_STATUS", "session_id": "s-1", "status": "connected"}))
            .await
    }

    async fn load(&self, agent: &RemoteAgent, bytes: usize) -> Ended {
        agent.status("x".repeat(bytes)).await.into()
    }

    fn event(&self, number: usize) -> Value {
        thinking(&number.to_string())
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(
                r#"{{"type":"thinking","id":"t","ts":1.5,"session_id":"s-1","content":{json}}}"#
            ),
            format!(r#"{{"type":"other","id":"t","ts":1.5,"session_id":"s-1","more":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[tokio::test]
async fn a_server_that_never_upgrades_is_given_up_in_time() {
    prove(&Questions, Fault::SilentBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_handshake_that_stops_is_given_up_in_time() {
    prove(&Questions, Fault::SilentInTheHandshake).await;
}

#[tokio::test]
async fn a_half_open_line_is_found_out() {
    prove(&Questions, Fault::HalfOpen).await;
}

#[tokio::test]
async fn a_line_cut_before_the_upgrade_is_dialled_again() {
    prove(&Questions, Fault::CutBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_line_cut_in_the_upgrade_is_dialled_again() {
    prove(&Questions, Fault::CutInTheUpgrade).await;
}

#[tokio::test]
async fn the_status_of_a_refused_upgrade_is_believed() {
    prove(&Questions, Fault::UpgradeRefused).await;
}

#[tokio::test]
async fn a_line_cut_in_the_handshake_is_dialled_again() {
    prove(&Questions, Fault::CutInTheHandshake).await;
}

#[tokio::test]
async fn an_idle_line_that_is_cut_is_dialled_again() {
    prove(&Questions, Fault::CutWhileIdle).await;
}

#[tokio::test]
async fn a_call_on_a_line_that_is_cut_ends_at_once() {
    prove(&Questions, Fault::CutInACall).await;
}

#[tokio::test]
async fn half_a_frame_is_no_frame() {
    prove(&Questions, Fault::CutInAFrame).await;
}

#[tokio::test]
async fn a_line_cut_while_the_client_closes_is_closed() {
    prove(&Questions, Fault::CutWhileTheClientCloses).await;
}

#[tokio::test]
async fn a_server_that_never_reads_is_given_up() {
    prove(&Questions, Fault::SlowReader).await;
}

#[tokio::test]
async fn a_server_that_writes_byte_by_byte_is_waited_for() {
    prove(&Questions, Fault::SlowButSteady).await;
}

#[tokio::test]
async fn bytes_that_trickle_move_no_deadline() {
    prove(&Questions, Fault::SlowWriter).await;
}

#[tokio::test]
async fn a_flood_of_events_is_dropped_and_counted() {
    prove(&Questions, Fault::EventFlood).await;
}

#[tokio::test]
async fn a_flood_of_events_ends_the_line_where_that_is_wanted() {
    prove(&Questions, Fault::EventFloodThatCloses).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_1009() {
    prove(&Questions, Fault::OversizedIncoming).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_sent() {
    prove(&Questions, Fault::OversizedOutgoing).await;
}

#[tokio::test]
async fn text_that_is_no_utf8_is_refused_with_1007() {
    prove(&Questions, Fault::InvalidUtf8).await;
}

#[tokio::test]
async fn deep_json_is_survived() {
    prove(&Questions, Fault::DeepJson).await;
}

#[tokio::test]
async fn masked_frames_are_refused_with_1002() {
    prove(&Questions, Fault::MaskedFrames).await;
}

#[tokio::test]
async fn broken_frames_are_refused_with_1002() {
    prove(&Questions, Fault::BrokenFrames).await;
}

#[tokio::test]
async fn a_flood_of_pings_is_read_as_fast_as_its_pongs_are_taken() {
    prove(&Questions, Fault::PingFlood).await;
}

#[tokio::test]
async fn a_close_of_the_server_is_answered_and_told() {
    prove(&Questions, Fault::ServerCloses).await;
}

#[tokio::test]
async fn a_close_that_is_not_answered_ends_in_time() {
    prove(&Questions, Fault::UnansweredClose).await;
}

#[tokio::test]
async fn a_drain_waits_for_calls_and_counts_them() {
    prove(&Questions, Fault::DrainInACall).await;
}

#[tokio::test]
async fn a_shutdown_without_a_line_ends_at_once() {
    prove(&Questions, Fault::ShutdownWithoutALine).await;
}

#[tokio::test]
async fn a_close_ends_the_calls_in_flight() {
    prove(&Questions, Fault::CloseInACall).await;
}

#[tokio::test]
async fn nobody_waits_for_a_task_that_is_gone() {
    prove(&Questions, Fault::TaskDropped).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_gives_one_fresh_chance() {
    clock_jump(&Questions, tokio::time::advance).await;
}
