//! The client under the faults of routers, over real sockets. It is the router that asks here: a call is
//! a message that the client holds, and its end the response.

use std::net::SocketAddr;

use async_trait::async_trait;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, Link, LinkEvent};
use rpc_core::{Limits, Refused};
use serde_json::{Value, json};
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::Notification;
use smarthole_proto::net::{Client, ClientProtocol, Event, InboundMessage, connect_with, dialer};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Fault, Line, SharedEvents, Started, Terms, clock_jump, prove,
};

use crate::played::{acked, message, registration};

/// A client that responds to messages when the router asks a second time.
struct Responses;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig::new(registration())
        .unwrap()
        .with_registration_timeout(Some(terms.handshake))
        .with_keep_alive(terms.keep_alive())
        .with_limits(Limits::default().with_max_message_bytes(terms.max_message))
}

fn sent(done: Result<(), Refused>) -> Ended {
    done.map_or_else(Ended::Refused, |()| Ended::Answered)
}

#[async_trait]
impl ClientUnderTest for Responses {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 1;
    const CALLS: bool = false;

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
        assert_eq!(line.hear().await?["type"], "registration");
        let payload = json!({"success": true, "clientId": "c-1", "message": "welcome"});
        line.say(json!({"type": "registration_response", "payload": payload}))
            .await
    }

    async fn call(&self, client: &Client, events: &SharedEvents<Self>) -> Ended {
        let mut events = events.lock().await;
        while events.try_next().is_some() {}
        if !client.state().is_ready() {
            return Ended::Refused(Refused::NotConnected);
        }
        let mut held: Option<InboundMessage> = None;
        loop {
            match (events.next().await, &held) {
                (Some(LinkEvent::Event(Event::Message(message))), _) => held = Some(message),
                (Some(LinkEvent::Event(Event::Unknown { .. })), Some(message)) => {
                    return sent(message.ack().await);
                }
                (Some(LinkEvent::Event(_) | LinkEvent::Lagged(_)), _) => {}
                // The line is gone. The message itself would wait for the next one.
                (Some(_) | None, _) => return sent(client.ack("m-1").await),
            }
        }
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        line.say(message("m-1", "hi")).await?;
        Some(json!("m-1"))
    }

    async fn progress(&self, _: &mut dyn Line, _: &Value) -> Option<()> {
        Some(())
    }

    async fn answer(&self, line: &mut dyn Line, _: &Value) -> Option<()> {
        line.say(json!({"type": "now", "payload": {}})).await?;
        loop {
            // Rejections of a flood come first.
            let frame = line.hear().await?;
            if frame == acked("m-1") {
                return Some(());
            }
            assert_eq!(frame["payload"]["type"], "reject", "{frame}");
        }
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        let notification = Notification::new("x".repeat(bytes));
        sent(client.notify("m-0", notification).await)
    }

    fn event(&self, number: usize) -> Value {
        message(&format!("flood-{number}"), "hi")
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"type":"message","payload":{json}}}"#),
            format!(r#"{{"type":"other","payload":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[tokio::test]
async fn a_server_that_never_upgrades_is_given_up_in_time() {
    prove(&Responses, Fault::SilentBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_handshake_that_stops_is_given_up_in_time() {
    prove(&Responses, Fault::SilentInTheHandshake).await;
}

#[tokio::test]
async fn a_half_open_line_is_found_out() {
    prove(&Responses, Fault::HalfOpen).await;
}

#[tokio::test]
async fn a_line_cut_before_the_upgrade_is_dialled_again() {
    prove(&Responses, Fault::CutBeforeTheUpgrade).await;
}

#[tokio::test]
async fn a_line_cut_in_the_upgrade_is_dialled_again() {
    prove(&Responses, Fault::CutInTheUpgrade).await;
}

#[tokio::test]
async fn the_status_of_a_refused_upgrade_is_believed() {
    prove(&Responses, Fault::UpgradeRefused).await;
}

#[tokio::test]
async fn a_line_cut_in_the_handshake_is_dialled_again() {
    prove(&Responses, Fault::CutInTheHandshake).await;
}

#[tokio::test]
async fn an_idle_line_that_is_cut_is_dialled_again() {
    prove(&Responses, Fault::CutWhileIdle).await;
}

#[tokio::test]
async fn a_call_on_a_line_that_is_cut_ends_at_once() {
    prove(&Responses, Fault::CutInACall).await;
}

#[tokio::test]
async fn half_a_frame_is_no_frame() {
    prove(&Responses, Fault::CutInAFrame).await;
}

#[tokio::test]
async fn a_line_cut_while_the_client_closes_is_closed() {
    prove(&Responses, Fault::CutWhileTheClientCloses).await;
}

#[tokio::test]
async fn a_server_that_never_reads_is_given_up() {
    prove(&Responses, Fault::SlowReader).await;
}

#[tokio::test]
async fn a_server_that_writes_byte_by_byte_is_waited_for() {
    prove(&Responses, Fault::SlowButSteady).await;
}

#[tokio::test]
async fn bytes_that_trickle_move_no_deadline() {
    prove(&Responses, Fault::SlowWriter).await;
}

#[tokio::test]
async fn a_flood_of_events_is_dropped_and_counted() {
    prove(&Responses, Fault::EventFlood).await;
}

#[tokio::test]
async fn a_flood_of_events_ends_the_line_where_that_is_wanted() {
    prove(&Responses, Fault::EventFloodThatCloses).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_with_1009() {
    prove(&Responses, Fault::OversizedIncoming).await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_sent() {
    prove(&Responses, Fault::OversizedOutgoing).await;
}

#[tokio::test]
async fn text_that_is_no_utf8_is_refused_with_1007() {
    prove(&Responses, Fault::InvalidUtf8).await;
}

#[tokio::test]
async fn deep_json_is_survived() {
    prove(&Responses, Fault::DeepJson).await;
}

#[tokio::test]
async fn masked_frames_are_refused_with_1002() {
    prove(&Responses, Fault::MaskedFrames).await;
}

#[tokio::test]
async fn broken_frames_are_refused_with_1002() {
    prove(&Responses, Fault::BrokenFrames).await;
}

#[tokio::test]
async fn a_flood_of_pings_is_read_as_fast_as_its_pongs_are_taken() {
    prove(&Responses, Fault::PingFlood).await;
}

#[tokio::test]
async fn a_close_of_the_server_is_answered_and_told() {
    prove(&Responses, Fault::ServerCloses).await;
}

#[tokio::test]
async fn a_close_that_is_not_answered_ends_in_time() {
    prove(&Responses, Fault::UnansweredClose).await;
}

#[tokio::test]
async fn a_drain_waits_for_calls_and_counts_them() {
    prove(&Responses, Fault::DrainInACall).await;
}

#[tokio::test]
async fn a_shutdown_without_a_line_ends_at_once() {
    prove(&Responses, Fault::ShutdownWithoutALine).await;
}

#[tokio::test]
async fn a_close_ends_the_calls_in_flight() {
    prove(&Responses, Fault::CloseInACall).await;
}

#[tokio::test]
async fn nobody_waits_for_a_task_that_is_gone() {
    prove(&Responses, Fault::TaskDropped).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_gives_one_fresh_chance() {
    clock_jump(&Responses, tokio::time::advance).await;
}
