//! Connections that send at a fixed rate, on one node and twice as many on two.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::chat::{Board, log_in};
use super::serve::{MEMBERS, channel};
use super::{CLUSTER, Cluster, ONE, PARTS, TIMES, TWO, Used, median};
use crate::net::{in_turn, phase, ratios};
use crate::report::Report;

/// Two nodes carry at least so many times the connections of one.
const LEAST: f64 = 1.7;
/// The connections of one node.
const CONNECTIONS: usize = 300;
/// How often each sends.
const EVERY: Duration = Duration::from_secs(1);
/// From one sender to the next; divides no number of users.
const STRIDE: usize = 101;

pub(super) fn table(report: &mut Report, quick: bool) {
    let seconds = if quick { 4 } else { 10 };
    let costs = in_turn(TIMES, TWO, &[(ONE, None)], |way| {
        eprintln!("connections that send, {way}");
        measure(way, seconds)
    });
    let [two, one] = &costs[..] else { return };
    let each = format!("a message a second from each of {CONNECTIONS} connections per node");
    for (name, cost) in PARTS {
        let cost = |(used, _): &(Used, String)| cost(used);
        // As many times the connections as the same CPU of each node serves.
        let carried = ratios(two, one, cost);
        let carried = carried.into_iter().map(|ratio| 2.0 * ratio).collect();
        let text =
            |costs: &[(Used, String)]| format!("{:.0} µs", median(costs.iter().map(cost)) / 1e3);
        report.repeated(
            CLUSTER,
            &format!(
                "{each}, channels of {MEMBERS}, {name} per connection and second; the ratio is how \
                 many times the connections of one node two carry"
            ),
            format!("{TWO}: {}", text(two)),
            (ONE, text(one)),
            (carried, Some(LEAST)),
        );
    }
    for (way, costs) in [(TWO, two), (ONE, one)] {
        let [received, sent] =
            [0, 1].map(|it| median(costs.iter().map(|(used, _)| used.messages[it])));
        let what = format!("{each}, {way}, messages to NATS and from it per message");
        report.figure(CLUSTER, &what, format!("{received:.2} and {sent:.2}"));
        let said: Vec<&str> = costs.iter().map(|(_, said)| said.as_str()).collect();
        let what = format!("{each}, {way}, until all members have it, p50 and p99 of each run");
        report.figure(CLUSTER, &what, said.join("; "));
    }
}

/// The cost of a connection in a second, and the times until a message is with all.
fn measure(way: &str, seconds: usize) -> (Used, String) {
    let users = CONNECTIONS * if way == TWO { 2 } else { 1 };
    let users_text = users.to_string();
    let cluster = Cluster::start(way, "snek", &[&users_text]);
    let (seconds_text, addresses) = (seconds.to_string(), cluster.addresses());
    let words = ["steady", &users_text, &seconds_text, &addresses];
    cluster.cost(&words, users * seconds)
}

pub(super) async fn load(users: usize, seconds: usize, addresses: &str) {
    let board = Arc::new(Board::default());
    let clients = log_in(users, addresses, &board).await;
    let mut number = 0;
    let mut times = Vec::new();
    for (rounds, is_measured) in [(2, false), (seconds, true)] {
        if is_measured {
            phase("ready").await;
        }
        let (start, count) = (Instant::now(), rounds * users);
        let mut tasks = tokio::task::JoinSet::new();
        for sent in 0..count {
            sleep_until(start + EVERY * sent as u32 / users as u32).await;
            // Not all of one channel at once.
            let sender = sent * STRIDE % users;
            let (board, client) = (Arc::clone(&board), clients[sender].clone());
            tasks.spawn(async move {
                let channel = channel(sender);
                board.send(&client, &channel, number, MEMBERS).await
            });
            number += 1;
        }
        times = tasks.join_all().await;
    }
    times.sort_unstable();
    let at = |part: usize| times[times.len() * part / 100] as f64 / 1e6;
    phase(&format!("{:.1} and {:.1} ms", at(50), at(99))).await;
}
