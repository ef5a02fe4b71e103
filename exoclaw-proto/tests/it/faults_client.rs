//! The client under the faults of gateways, over real sockets.

use std::net::SocketAddr;

use async_trait::async_trait;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{Client, ClientProtocol, connect_with, dialer};
use rpc_core::Limits;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, Link};
use serde_json::{Value, json};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Fault, Line, SharedEvents, Started, Terms, clock_jump, prove,
};

/// A client with a token, whose calls are chats.
struct Chats;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig::new()
        .with_token("t")
        .with_hello_timeout(terms.handshake)
        .with_keep_alive(terms.keep_alive())
        .with_chat_idle_timeout(Some(terms.silence))
        .with_limits(Limits::default().with_max_message_bytes(terms.max_message))
}

#[async_trait]
impl ClientUnderTest for Chats {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 1;
    const CALLS: bool = true;
    // Known gateways answer a ping only between requests.
    const CALLS_OUTLAST_PINGS: bool = true;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &config(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (client, events, connection) = connect_with(dialer, config(&terms), terms.link);
        (client, events, tokio::spawn(connection.run()))
    }

    fn link<'h>(&self, client: &'h Client) -> &'h Link<ClientProtocol> {
        client.link()
    }

    async fn step(&self, line: &mut dyn Line, _: usize) -> Option<()> {
        assert_eq!(line.hear().await?, json!({"token": "t"}));
        line.say(json!({"ok": true, "version": "0.1.0"})).await
    }

    async fn call(&self, client: &Client, _: &SharedEvents<Self>) -> Ended {
        let mut chat = client.chat("hi").await;
        let mut ends = Vec::new();
        while let Some(step) = chat.next().await {
            match step {
                Ok(StreamEvent::Text(_)) => assert_eq!(ends, []),
                Ok(other) => panic!("{other:?}"),
                Err(error) => ends.push(Ended::from(Err::<(), _>(error))),
            }
        }
        assert!(ends.len() <= 1, "{ends:?}");
        assert!(chat.outcome().is_some());
        ends.pop().unwrap_or(Ended::Answered)
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let mut frame = line.hear().await?;
        assert_eq!(frame["method"], "chat.send");
        Some(frame["id"].take())
    }

    async fn progress(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        line.say(json!({"id": id, "event": "text", "data": "so far"}))
            .await
    }

    async fn answer(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        self.progress(line, id).await?;
        line.say(json!({"id": id, "event": "done"})).await
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        client.chat("x".repeat(bytes)).await.text().await.into()
    }

    fn event(&self, number: usize) -> Value {
        json!({"id": "0", "error": format!("parse error: {number}")})
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"ok":true,"version":{json}}}"#),
            format!(r#"{{"id":"1","result":{json}}}"#),
            format!(r#"{{"id":"1","event":"text","data":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[tokio::test]
async fn a_server_that_never_upgrades_is_given_up_in_time() {
    prove(&Chats, Fault::SilentBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_handshake_that_stops_is_given_up_in_time() {
    prove(&Chats, Fault::SilentInTheHandshake).await;
}

#[tokio::test]
async fn a_half_open_line_is_found_out() {
    prove(&Chats, Fault::HalfOpen).await;
}

#[tokio::test]
async fn a_line_cut_before_the_upgrade_is_dialled_again() {
    prove(&Chats, Fault::CutBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_line_cut_in_the_upgrade_is_dialled_again() {
    prove(&Chats, Fault::CutInTheUpgrade).await;
}

#[tokio::test]
async fn the_status_of_a_refused_upgrade_is_believed() {
    prove(&Chats, Fault::UpgradeRefused).await;
}

#[tokio::test]
async fn a_line_cut_in_the_handshake_is_dialled_again() {
    prove(&Chats, Fault::CutInTheHandshake).await;
}

#[tokio::test]
async fn an_idle_line_that_is_cut_is_dialled_again() {
    prove(&Chats, Fault::CutWhileIdle).await;
}

#[tokio::test]
async fn a_call_on_a_line_that_is_cut_ends_at_once() {
    prove(&Chats, Fault::CutInACall).await;
}

#[tokio::test]
async fn half_a_frame_is_no_frame() {
    prove(&Chats, Fault::CutInAFrame).await;
}

#[tokio::test]
async fn a_line_cut_while_the_client_closes_is_closed() {
    prove(&Chats, Fault::CutWhileTheClientCloses).await;
}

#[tokio::test]
async fn a_server_that_never_reads_is_given_up() {
    prove(&Chats, Fault::SlowReader).await;
}

#[tokio::test]
async fn a_server_that_writes_byte_by_byte_is_waited_for() {
    prove(&Chats, Fault::SlowButSteady).await;
}

#[tokio::test]
async fn bytes_that_trickle_move_no_deadline() {
    prove(&Chats, Fault::SlowWriter).await;
}

#[tokio::test]
async fn a_flood_of_events_is_dropped_and_counted() {
    prove(&Chats, Fault::EventFlood).await;
}

#[tokio::test]
async fn a_flood_of_events_ends_the_line_where_that_is_wanted() {
    prove(&Chats, Fault::EventFloodThatCloses).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_1009() {
    prove(&Chats, Fault::OversizedIncoming).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_sent() {
    prove(&Chats, Fault::OversizedOutgoing).await;
}

#[tokio::test]
async fn text_that_is_no_utf8_is_refused_with_1007() {
    prove(&Chats, Fault::InvalidUtf8).await;
}

#[tokio::test]
async fn deep_json_is_survived() {
    prove(&Chats, Fault::DeepJson).await;
}

#[tokio::test]
async fn masked_frames_are_refused_with_1002() {
    prove(&Chats, Fault::MaskedFrames).await;
}

#[tokio::test]
async fn broken_frames_are_refused_with_1002() {
    prove(&Chats, Fault::BrokenFrames).await;
}

#[tokio::test]
async fn a_flood_of_pings_is_read_as_fast_as_its_pongs_are_taken() {
    prove(&Chats, Fault::PingFlood).await;
}

#[tokio::test]
async fn a_close_of_the_server_is_answered_and_told() {
    prove(&Chats, Fault::ServerCloses).await;
}

#[tokio::test]
async fn a_close_that_is_not_answered_ends_in_time() {
    prove(&Chats, Fault::UnansweredClose).await;
}

#[tokio::test]
async fn a_drain_waits_for_calls_and_counts_them() {
    prove(&Chats, Fault::DrainInACall).await;
}

#[tokio::test]
async fn a_shutdown_without_a_line_ends_at_once() {
    prove(&Chats, Fault::ShutdownWithoutALine).await;
}

#[tokio::test]
async fn a_close_ends_the_calls_in_flight() {
    prove(&Chats, Fault::CloseInACall).await;
}

#[tokio::test]
async fn nobody_waits_for_a_task_that_is_gone() {
    prove(&Chats, Fault::TaskDropped).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_gives_one_fresh_chance() {
    clock_jump(&Chats, tokio::time::advance).await;
}
