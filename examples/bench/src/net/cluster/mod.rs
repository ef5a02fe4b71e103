//! What several nodes on NATS cost beside one: messages of Snek, connections that send now and then,
//! idle ones, and prompts of ConnectOnion. The time of the nodes counts, and that of `nats-server`
//! apart from it; the clients' does not.

mod capacity;
mod chat;
mod idle;
mod nats;
mod prompts;
mod serve;

use super::child::Child;
use super::{in_turn, ratios};
use crate::report::Report;

use nats::NatsServer;

/// The name of the section, for `--goals`.
const CLUSTER: &str = "cluster";
/// How often everything is measured.
const TIMES: usize = 5;

const ALONE: &str = "one node without NATS";
const ONE: &str = "one node";
const TWO: &str = "two nodes";
const THREE: &str = "three nodes";

pub(crate) fn table(report: &mut Report, quick: bool) {
    if !nats::is_installed() {
        report.missing(CLUSTER, "", "", "nats-server is not installed");
        return;
    }
    chat::table(report, quick);
    capacity::table(report, quick);
    idle::table(report, quick);
    prompts::table(report, quick);
}

/// Runs one end, as a child process of the table.
pub(super) async fn end(words: &[&str]) {
    let number = |text: &str| -> usize { text.parse().expect("a number") };
    match words {
        ["snek", nats, users] => serve::snek(nats, number(users)).await,
        ["onion", nats] => serve::onion(nats).await,
        ["chat", members, in_flight, messages, addresses] => {
            chat::load(
                number(members),
                number(in_flight),
                number(messages),
                addresses,
            )
            .await;
        }
        ["steady", users, seconds, addresses] => {
            capacity::load(number(users), number(seconds), addresses).await;
        }
        ["prompts", sessions, owner, through] => {
            prompts::load(number(sessions), owner, through).await;
        }
        other => panic!("unknown: {other:?}"),
    }
}

/// Some nodes, and the NATS server that they share.
struct Cluster {
    nodes: Vec<(Child, String)>,
    nats: Option<NatsServer>,
}

impl Cluster {
    /// Starts as many nodes as `way` says, one after the other.
    fn start(way: &str, kind: &str, more: &[&str]) -> Self {
        let nats = (way != ALONE).then(NatsServer::start);
        let count = match way {
            ALONE | ONE => 1,
            THREE => 3,
            _ => 2,
        };
        let url = nats
            .as_ref()
            .map_or(serve::ALONE.to_owned(), NatsServer::url);
        let nodes = (0..count).map(|_| {
            let words = [&["cluster", kind, url.as_str()], more].concat();
            let mut node = Child::start(super::OURS, &words);
            let address = node.line();
            (node, address)
        });
        Self {
            nodes: nodes.collect(),
            nats,
        }
    }

    fn addresses(&self) -> String {
        let all: Vec<&str> = self.nodes.iter().map(|(_, it)| it.as_str()).collect();
        all.join(",")
    }

    /// What everything has used until now.
    fn used(&self) -> Used {
        let nodes = self.nodes.iter().map(|(node, _)| cpu(node.id())).sum();
        let nats = self.nats.as_ref();
        Used {
            nodes,
            nats: nats.map_or(0.0, |nats| cpu(nats.id())),
            messages: nats.map_or([0.0; 2], |nats| nats.messages().map(|it| it as f64)),
        }
    }

    /// What a client makes the cluster use for each of `count`, and what it says at its end.
    fn cost(&self, words: &[&str], count: usize) -> (Used, String) {
        let mut client = Child::start(super::OURS, &[&["cluster"], words].concat());
        client.line();
        let before = self.used();
        client.go();
        let said = client.line();
        (self.used().since(before).of(count as f64), said)
    }
}

/// CPU time in nanoseconds, and messages that `nats-server` has received and sent.
#[derive(Clone, Copy)]
struct Used {
    nodes: f64,
    nats: f64,
    messages: [f64; 2],
}

/// A part of what is used.
type Part = fn(&Used) -> f64;

/// What is told of the CPU time.
const PARTS: [(&str, Part); 2] = [
    ("CPU of the nodes", |it| it.nodes),
    ("CPU of the nodes and nats-server", |it| it.nodes + it.nats),
];

impl Used {
    fn since(self, before: Self) -> Self {
        let [received, sent] = self.messages;
        Self {
            nodes: self.nodes - before.nodes,
            nats: self.nats - before.nats,
            messages: [received - before.messages[0], sent - before.messages[1]],
        }
    }

    fn of(self, count: f64) -> Self {
        Self {
            nodes: self.nodes / count,
            nats: self.nats / count,
            messages: self.messages.map(|it| it / count),
        }
    }
}

/// Nanoseconds that a process has run, with all threads that it ever had: some end meanwhile. In
/// steps of 10 ms.
fn cpu(pid: u32) -> f64 {
    const TICK: f64 = 1e7;
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = text.rsplit_once(") ").unwrap();
    // The fields after the name begin with the third.
    let times = fields.split(' ').skip(14 - 3).take(2);
    times.map(|it| it.parse::<f64>().unwrap()).sum::<f64>() * TICK
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures `ours` and the others in turn. Adds a row beside each of the others for the CPU of the
/// nodes and one for that of `nats-server` too, and the messages of all that use NATS.
fn beside(
    report: &mut Report,
    what: &str,
    ours: &str,
    others: &[super::Asked],
    measure: impl Fn(&str) -> Used,
) {
    let costs = in_turn(TIMES, ours, others, |way| {
        eprintln!("{what}: {way}");
        measure(way)
    });
    let Some((own, theirs)) = costs.split_first() else {
        return;
    };
    let micros =
        |costs: &[Used], cost: Part| format!("{:.0} µs", median(costs.iter().map(cost)) / 1e3);
    for (name, cost) in PARTS {
        for ((other, at_least), theirs) in others.iter().zip(theirs) {
            let all = ratios(own, theirs, cost);
            report.repeated(
                CLUSTER,
                &format!("{what}, {ours}, {name}"),
                micros(own, cost),
                (other, micros(theirs, cost)),
                (all, *at_least),
            );
        }
    }
    let ways = std::iter::once(ours).chain(others.iter().map(|(other, _)| *other));
    for (way, costs) in ways.zip(&costs) {
        let [received, sent] = [0, 1].map(|it| median(costs.iter().map(|used| used.messages[it])));
        if received > 0.0 {
            let what = format!("{what}, {way}, messages to NATS and from it");
            let found = format!("{received:.2} and {sent:.2}");
            report.figure(CLUSTER, &what, found);
        }
    }
}
