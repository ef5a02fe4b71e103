//! The server under faults, over real sockets.

mod subject;

use std::time::Instant;

use rpc_core::testing::conformance;
use smarthole_proto::server::{ServerConfig, ServerConn};
use switchboard_testing::faults::server as faults;

use subject::Subject;

#[tokio::test]
async fn a_peer_that_asks_for_nothing_is_hung_up_on() {
    faults::a_peer_that_asks_for_nothing::<Subject>().await;
}

#[tokio::test]
async fn a_request_that_trickles_is_hung_up_on() {
    faults::a_request_that_trickles::<Subject>().await;
}

#[tokio::test]
async fn a_cut_before_the_upgrade_leaves_nothing_behind() {
    faults::a_cut_before_the_upgrade::<Subject>().await;
}

#[tokio::test]
async fn a_stranger_that_says_nothing_is_dismissed() {
    faults::a_stranger_that_says_nothing::<Subject>().await;
}

#[tokio::test]
async fn a_peer_that_answers_no_ping_is_given_up() {
    faults::a_peer_that_answers_no_ping::<Subject>().await;
}

#[tokio::test]
async fn a_half_open_line_is_given_up_in_every_state() {
    faults::a_half_open_line::<Subject>().await;
}

#[tokio::test]
async fn a_peer_that_reads_nothing_is_given_up() {
    faults::a_peer_that_reads_nothing::<Subject>().await;
}

#[tokio::test]
async fn a_peer_that_writes_slowly_is_served_unless_it_seems_dead() {
    faults::a_peer_that_writes_slowly::<Subject>().await;
}

#[tokio::test]
async fn a_cut_in_every_state_leaves_nothing_behind() {
    faults::a_cut_in_every_state::<Subject>().await;
}

#[tokio::test]
async fn an_end_inside_a_frame_leaves_nothing_behind() {
    faults::an_end_inside_a_frame::<Subject>().await;
}

#[tokio::test]
async fn a_flood_of_messages_ends_with_1008() {
    faults::a_flood_of_messages::<Subject>().await;
}

#[tokio::test]
async fn a_flood_of_pings_is_answered_or_given_up() {
    faults::a_flood_of_pings::<Subject>().await;
}

#[tokio::test]
async fn oversized_frames_end_with_1009() {
    faults::oversized_frames::<Subject>().await;
}

#[tokio::test]
async fn oversized_answers_are_refused() {
    faults::oversized_answers::<Subject>().await;
}

#[tokio::test]
async fn invalid_utf8_ends_with_1007() {
    faults::invalid_utf8::<Subject>().await;
}

#[tokio::test]
async fn deep_json_hurts_nobody() {
    faults::deep_json::<Subject>().await;
}

#[tokio::test]
async fn a_frame_without_a_mask_ends_with_1002() {
    faults::a_frame_without_a_mask::<Subject>().await;
}

#[tokio::test]
async fn broken_framing_ends_with_1002() {
    faults::broken_framing::<Subject>().await;
}

#[tokio::test]
async fn a_panicking_handler_ends_its_request_only() {
    faults::a_panicking_handler::<Subject>().await;
}

#[tokio::test]
async fn a_handler_that_never_returns_holds_nothing_up() {
    faults::a_handler_that_never_returns::<Subject>().await;
}

#[tokio::test]
async fn a_drain_in_the_middle_of_everything_ends_in_time() {
    faults::a_drain_ends_everything_in_time::<Subject>().await;
}

#[tokio::test]
async fn a_peer_that_ignores_the_close_does_not_hold_up_the_end() {
    faults::a_drain_past_a_peer_that_ignores_the_close::<Subject>(tokio::time::pause).await;
}

#[tokio::test]
async fn a_drain_without_time_cuts_what_is_left() {
    faults::a_drain_without_time_cuts_what_is_left::<Subject>().await;
}

#[test]
fn a_clock_that_jumps_gives_one_fresh_grace() {
    let config = ServerConfig::default();
    let mut conn = ServerConn::new(config, Instant::now());
    conformance::a_late_deadline_gives_one_fresh_grace(&mut conn);
}
