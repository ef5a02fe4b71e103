//! The client under the faults of servers, over real sockets.

use std::net::SocketAddr;

use async_trait::async_trait;
use rpc_core::Limits;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, Link};
use serde_json::{Value, json};
use snek_proto::client::ClientConfig;
use snek_proto::frame::Final;
use snek_proto::net::{Client, ClientProtocol, connect_with, dialer};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Fault, Line, SharedEvents, Started, Terms, clock_jump, prove,
};

/// A client whose calls are messages.
struct Messages;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig::new("mybot", "mypassword")
        .with_handshake_timeout(Some(terms.handshake))
        .with_keep_alive(terms.keep_alive())
        .with_limits(Limits::default().with_max_message_bytes(terms.max_message))
}

#[async_trait]
impl ClientUnderTest for Messages {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 3;
    const CALLS: bool = true;

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

    async fn step(&self, line: &mut dyn Line, step: usize) -> Option<()> {
        let frame = line.hear().await?;
        let steps = [
            ("login", json!({"username": "mybot"})),
            ("get_user", json!({"username": "mybot", "nick": "MyBot"})),
            (
                "get_channels",
                json!([{"uid": "ch1", "name": "general", "tag": "public"}]),
            ),
        ];
        let (method, data) = &steps[step];
        assert_eq!(frame["method"], *method);
        line.say(json!({"callId": frame["callId"], "data": data}))
            .await
    }

    async fn call(&self, client: &Client, _: &SharedEvents<Self>) -> Ended {
        client.send_message("ch1", "hi", Final::Yes).await.into()
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let mut frame = line.hear().await?;
        assert_eq!(frame["method"], "send_message");
        Some(frame["callId"].take())
    }

    async fn progress(&self, _: &mut dyn Line, _: &Value) -> Option<()> {
        Some(())
    }

    async fn answer(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        line.say(json!({"callId": id, "data": {}})).await
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        let text = "x".repeat(bytes);
        client.send_message("ch1", &text, Final::Yes).await.into()
    }

    fn event(&self, number: usize) -> Value {
        let data = json!({"channel_uid": "ch1", "color": format!("#{number:06x}")});
        json!({"event": "set_typing", "data": data})
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"event":"weather","data":{json}}}"#),
            format!(r#"{{"event":"message","message":{json}}}"#),
            format!(r#"{{"callId":"0000000000000000","data":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[tokio::test]
async fn a_server_that_never_upgrades_is_given_up_in_time() {
    prove(&Messages, Fault::SilentBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_handshake_that_stops_is_given_up_in_time() {
    prove(&Messages, Fault::SilentInTheHandshake).await;
}

#[tokio::test]
async fn a_half_open_line_is_found_out() {
    prove(&Messages, Fault::HalfOpen).await;
}

#[tokio::test]
async fn a_line_cut_before_the_upgrade_is_dialled_again() {
    prove(&Messages, Fault::CutBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_line_cut_in_the_upgrade_is_dialled_again() {
    prove(&Messages, Fault::CutInTheUpgrade).await;
}

#[tokio::test]
async fn the_status_of_a_refused_upgrade_is_believed() {
    prove(&Messages, Fault::UpgradeRefused).await;
}

#[tokio::test]
async fn a_line_cut_in_the_handshake_is_dialled_again() {
    prove(&Messages, Fault::CutInTheHandshake).await;
}

#[tokio::test]
async fn an_idle_line_that_is_cut_is_dialled_again() {
    prove(&Messages, Fault::CutWhileIdle).await;
}

#[tokio::test]
async fn a_call_on_a_line_that_is_cut_ends_at_once() {
    prove(&Messages, Fault::CutInACall).await;
}

#[tokio::test]
async fn half_a_frame_is_no_frame() {
    prove(&Messages, Fault::CutInAFrame).await;
}

#[tokio::test]
async fn a_line_cut_while_the_client_closes_is_closed() {
    prove(&Messages, Fault::CutWhileTheClientCloses).await;
}

#[tokio::test]
async fn a_server_that_never_reads_is_given_up() {
    prove(&Messages, Fault::SlowReader).await;
}

#[tokio::test]
async fn a_server_that_writes_byte_by_byte_is_waited_for() {
    prove(&Messages, Fault::SlowButSteady).await;
}

#[tokio::test]
async fn bytes_that_trickle_move_no_deadline() {
    prove(&Messages, Fault::SlowWriter).await;
}

#[tokio::test]
async fn a_flood_of_events_is_dropped_and_counted() {
    prove(&Messages, Fault::EventFlood).await;
}

#[tokio::test]
async fn a_flood_of_events_ends_the_line_where_that_is_wanted() {
    prove(&Messages, Fault::EventFloodThatCloses).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_1009() {
    prove(&Messages, Fault::OversizedIncoming).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_sent() {
    prove(&Messages, Fault::OversizedOutgoing).await;
}

#[tokio::test]
async fn text_that_is_no_utf8_is_refused_with_1007() {
    prove(&Messages, Fault::InvalidUtf8).await;
}

#[tokio::test]
async fn deep_json_is_survived() {
    prove(&Messages, Fault::DeepJson).await;
}

#[tokio::test]
async fn masked_frames_are_refused_with_1002() {
    prove(&Messages, Fault::MaskedFrames).await;
}

#[tokio::test]
async fn broken_frames_are_refused_with_1002() {
    prove(&Messages, Fault::BrokenFrames).await;
}

#[tokio::test]
async fn a_flood_of_pings_is_read_as_fast_as_its_pongs_are_taken() {
    prove(&Messages, Fault::PingFlood).await;
}

#[tokio::test]
async fn a_close_of_the_server_is_answered_and_told() {
    prove(&Messages, Fault::ServerCloses).await;
}

#[tokio::test]
async fn a_close_that_is_not_answered_ends_in_time() {
    prove(&Messages, Fault::UnansweredClose).await;
}

#[tokio::test]
async fn a_drain_waits_for_calls_and_counts_them() {
    prove(&Messages, Fault::DrainInACall).await;
}

#[tokio::test]
async fn a_shutdown_without_a_line_ends_at_once() {
    prove(&Messages, Fault::ShutdownWithoutALine).await;
}

#[tokio::test]
async fn a_close_ends_the_calls_in_flight() {
    prove(&Messages, Fault::CloseInACall).await;
}

#[tokio::test]
async fn nobody_waits_for_a_task_that_is_gone() {
    prove(&Messages, Fault::TaskDropped).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_gives_one_fresh_chance() {
    clock_jump(&Messages, tokio::time::advance).await;
}
