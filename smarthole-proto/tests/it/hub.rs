//! What a hub does with messages, as traces under virtual time.

use insta::assert_snapshot;
use smarthole_proto::hub::HubConfig;

use super::hub_play::{play, play_with};

#[test]
fn a_direct_message_goes_to_the_named_client_at_once() {
    assert_snapshot!(play(
        "join notes
         join Lights
         say LIGHTS, on
         ack Lights
         say notes: milk
         reject notes full
         say notes : milk
         choose Lights = milk!
         ack Lights"
    ));
}

#[test]
fn a_rejected_message_is_rerouted_with_the_reason() {
    assert_snapshot!(play(
        "join notes
         join lights
         join calendar
         say dentist at ten
         choose notes
         reject notes I only handle notes
         choose calendar ? it has a time
         ack calendar"
    ));
}

#[test]
fn every_copy_of_a_message_has_its_original_time() {
    let trace = play(
        "wait 1.5
         join notes
         join lights
         say milk
         wait 7
         choose lights
         wait 30
         choose notes",
    );
    let times = trace
        .lines()
        .filter_map(|line| line.split("\"timestamp\":\"").nth(1));
    let times: Vec<_> = times.filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(times, ["1970-01-01T00:00:01.500Z"; 2], "{trace}");
}

#[test]
fn silence_counts_as_a_rejection_after_thirty_seconds() {
    assert_snapshot!(play(
        "join notes
         join lights
         say milk
         choose lights
         wait 29.999
         wait 0.001
         choose notes
         wait 1
         notify notes
         wait 60"
    ));
}

#[test]
fn three_rejections_end_a_message() {
    assert_snapshot!(play(
        "join a
         join b
         join c
         join d
         say x
         choose a
         reject a
         choose b
         reject b not me
         choose c
         wait 30"
    ));
}

#[test]
fn without_further_candidates_a_message_ends() {
    assert_snapshot!(play(
        "join a
         join b
         say x
         choose a
         reject a no
         choose b
         reject b no"
    ));
}

#[test]
fn several_recipients_share_one_id_and_answer_separately() {
    assert_snapshot!(play(
        "join a
         join b
         join c
         say x
         choose a ; b ? why
         ack a
         reject b no
         choose c
         wait 31"
    ));
}

#[test]
fn an_ack_counts_despite_rejections_of_others() {
    assert_snapshot!(play(
        "join a
         join b
         say x
         choose a ; b
         ack a
         reject b no"
    ));
}

#[test]
fn rerouted_copies_never_reach_the_same_client() {
    assert_snapshot!(play(
        "join a
         join b
         join c
         join d
         say x
         choose a; b
         reject a one
         reject b two
         choose#2 c
         choose#3 c; d
         ack c
         ack d"
    ));
}

#[test]
fn a_stale_choice_is_requested_again() {
    assert_snapshot!(play(
        "join a
         join b
         join c
         join d
         say x
         choose a; b
         reject a one
         reject b two
         choose#2 c
         choose#3 c
         choose d
         ack c
         ack d"
    ));
}

#[test]
fn late_responses_are_recorded_without_effect() {
    assert_snapshot!(play(
        "join a
         join b
         say x
         choose a
         wait 30
         ack a
         choose b
         notify a Late|but here
         reject b no
         reject a after all
         history"
    ));
}

#[test]
fn a_client_may_reject_after_an_ack() {
    assert_snapshot!(play(
        "join a
         join b
         say x
         choose a
         ack a
         reject a broken
         choose b
         ack b
         history"
    ));
}

#[test]
fn a_rejected_direct_message_ends() {
    assert_snapshot!(play(
        "join a
         join b
         say a: x
         ack a
         reject a broken
         say a: x
         wait 30"
    ));
}

#[test]
fn a_rejected_direct_message_can_be_rerouted() {
    let config = HubConfig {
        reroute_direct: true,
        ..HubConfig::default()
    };
    assert_snapshot!(play_with(
        config,
        "join a
         join b
         say a: x
         reject a no
         choose b
         ack b"
    ));
}

#[test]
fn a_reconnected_client_can_still_answer() {
    assert_snapshot!(play(
        "join a
         join b
         say x
         choose a
         leave a
         wait 10
         join a
         ack a
         say y
         choose a
         leave a
         wait 30
         choose b
         ack b"
    ));
}

#[test]
fn clients_that_left_before_being_chosen_are_skipped() {
    assert_snapshot!(play(
        "join a
         join b
         join c
         say x
         leave a
         choose a; b
         ack b
         say y
         leave b
         choose b
         choose c
         ack c"
    ));
}

#[test]
fn a_message_ends_when_all_clients_have_left() {
    assert_snapshot!(play(
        "say x
         join a
         say x
         leave a
         choose a
         join a
         say y
         choose a
         leave a
         wait 30"
    ));
}

#[test]
fn vanishing_clients_use_up_the_routing_limit() {
    assert_snapshot!(play(
        "join a
         join b
         join c
         join d
         say x
         leave a
         choose a
         leave b
         choose b
         leave c
         choose c"
    ));
}

#[test]
fn a_failing_router_ends_the_message() {
    assert_snapshot!(play(
        "join a
         join b
         say x
         fail no model
         say y
         choose a
         reject a no
         fail no model"
    ));
}

#[test]
fn a_newly_joined_client_can_be_chosen_on_rerouting() {
    assert_snapshot!(play(
        "join a
         say x
         join b
         choose a
         reject a no
         choose b
         ack b"
    ));
}

#[test]
fn unknown_responses_do_not_stop_the_deadline() {
    assert_snapshot!(play(
        "join a
         say a: x
         mumble a
         wait 30"
    ));
}

#[test]
fn deliveries_of_the_same_moment_end_in_their_order() {
    assert_snapshot!(play(
        "join a
         join b
         say a: 1
         say b: 2
         say a: 3
         wait 0.5
         say b: 4
         wait 29.5
         wait 0.5
         history"
    ));
}
