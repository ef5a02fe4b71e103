//! Our own programs pass every row, and broken in the way that `breaks/` has for a row, they fail that row alone.

mod acolyte;
mod between;
mod broken;
mod clients;
mod connectonion;
mod exoclaw;
mod smarthole;
mod snek;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use futures_util::{StreamExt as _, stream};
use rpc_core::net::DialError;
use rpc_core::net::server::{PeerAddr, Service};
use rpc_core::testing::Side;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use self::broken::Rules;
use super::*;
use crate::Protocol;
use crate::play::{BoxStream, Client, Dial, Ended, Frame, Peer, Settings, Started, Variables};

/// A server in memory.
struct Memory(mpsc::Sender<DuplexStream>);

#[async_trait]
impl Dial for Memory {
    async fn dial(&self) -> Result<BoxStream, DialError> {
        let (here, there) = tokio::io::duplex(256 * 1024);
        self.0.send(there).await.map_err(|_| DialError::Exhausted)?;
        Ok(Box::new(here))
    }
}

/// The connections of a server in memory.
struct Listener(mpsc::Receiver<DuplexStream>);

impl axum::serve::Listener for Listener {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(stream) => (stream, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serves a mounted server in memory.
fn serve(service: Service) -> Peer {
    let (sender, receiver) = mpsc::channel(64);
    let app = Router::new()
        .fallback_service(service)
        .layer(map_request(local));
    tokio::spawn(axum::serve(Listener(receiver), app).into_future());
    Peer::Server(Arc::new(Memory(sender)), "ws://localhost".to_owned())
}

async fn local(mut request: Request) -> Request {
    request
        .extensions_mut()
        .insert(PeerAddr(([127, 0, 0, 1], 4000).into()));
    request
}

/// A peer, and the variables with which it is checked.
struct Setup {
    peer: Peer,
    variables: Vec<(&'static str, &'static str)>,
}

impl Setup {
    fn settings(&self) -> Settings {
        let mut variables = Variables::default();
        for (name, value) in &self.variables {
            variables.set(*name, *value);
        }
        Settings {
            timeout: Duration::from_secs(20),
            quiet: Duration::from_secs(1),
            start: Settings::START,
            jobs: JOBS,
            variables,
            pace: Arc::default(),
        }
    }

    /// Returns the peer, broken by these rules.
    fn broken(&self, rules: &str) -> Peer {
        let rules = Rules::read(rules, &self.settings().variables).unwrap();
        between::broken(&self.peer, Arc::new(rules))
    }

    /// Runs a row with a peer that is broken by rules. Returns those that were noticed, too.
    async fn row(
        &self,
        suite: &Suite,
        row: &Row,
        settings: &Settings,
        rules: &str,
    ) -> (Outcome, Vec<String>) {
        let prepared = run::prepared(suite, settings);
        let rules = match Rules::read(rules, &prepared.0) {
            Ok(rules) => Arc::new(rules),
            Err(reason) => {
                let outcome = Outcome {
                    verdict: Verdict::NotApplicable,
                    reason: Some(reason),
                    ..Outcome::default()
                };
                return (outcome, Vec::new());
            }
        };
        let peer = between::broken(&self.peer, Arc::clone(&rules));
        let outcome = run::row_of(suite, row, &peer, settings, prepared).await;
        (outcome, rules.noticed())
    }
}

/// How many rows run at once.
const JOBS: usize = 16;

/// Returns the rules that break a peer for each row; the last one judges the others.
fn breaks(suite: &Suite) -> Vec<String> {
    let texts = [
        include_str!("breaks/acolyte-client.txt"),
        include_str!("breaks/acolyte-server.txt"),
        include_str!("breaks/connectonion-client.txt"),
        include_str!("breaks/connectonion-server.txt"),
        include_str!("breaks/exoclaw-client.txt"),
        include_str!("breaks/exoclaw-server.txt"),
        include_str!("breaks/smarthole-client.txt"),
        include_str!("breaks/smarthole-server.txt"),
        include_str!("breaks/snek-client.txt"),
        include_str!("breaks/snek-server.txt"),
    ];
    let mut rules: BTreeMap<&str, String> = BTreeMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        if let Some((id, rule)) = line.split_once(": ").filter(|_| !line.starts_with('#')) {
            *rules.entry(id).or_default() += &format!("{rule}\n");
        }
    }
    let rules = |row: &Row| rules.get(&*row.id).map(|it| it.trim().to_owned());
    let rows = suite.rows.iter();
    rows.map(|row| rules(row).unwrap_or_default()).collect()
}

/// Checks that without faults every row passes in one of the setups and fails in none, and that
/// each variant fails its own row and no other.
///
/// A row without anything that a rule applies to cannot notice the rule: a variant runs against all others.
async fn conforms_in_part(suite: &Suite, setups: &[Setup]) {
    // The row on the order judges the others.
    let rows = suite.rows.len() - 1;
    let broken = breaks(suite);
    let lines = broken.iter().flat_map(|rules| rules.lines());
    let watched: String = lines.map(|line| format!("watch {line}\n")).collect();
    let mut healthy = Vec::new();
    for setup in setups {
        let settings = setup.settings();
        let rows = suite.rows[..rows].iter();
        let running = rows.map(|row| setup.row(suite, row, &settings, &watched));
        let outcomes: Vec<_> = stream::iter(running).buffered(JOBS).collect().await;
        healthy.push(outcomes);
    }
    let is_failure = |outcome: &Outcome| outcome.verdict == Verdict::Fail;
    let failure = |at: usize| {
        let mut outcomes = healthy.iter().map(|outcomes| &outcomes[at].0);
        outcomes.find(|it| is_failure(it) || it.disorder.is_some())
    };
    let (mut problems, mut variants) = (Vec::new(), Vec::new());
    for (at, row) in suite.rows[..rows].iter().enumerate() {
        if broken[at].is_empty() {
            problems.push(format!("{}: no rule breaks it", row.id));
        }
        if let Some(failure) = failure(at) {
            let evidence = report::evidence(&failure.evidence);
            let verdict = &failure.verdict;
            problems.push(format!(
                "{} fails without a fault: {verdict:?}\n{evidence}",
                row.id
            ));
            continue;
        }
        let passes = |outcomes: &Vec<(Outcome, _)>| outcomes[at].0.verdict == Verdict::Pass;
        let Some(setup) = healthy.iter().position(passes) else {
            let verdicts: Vec<_> = healthy.iter().map(|it| &it[at].0.verdict).collect();
            problems.push(format!("{} passes nowhere: {verdicts:?}", row.id));
            continue;
        };
        let notices = |noticed: &Vec<String>| {
            (noticed.iter()).any(|rule| broken[at].lines().any(|it| it == rule))
        };
        let others = (0..rows).filter(|other| notices(&healthy[setup][*other].1));
        let settings = Arc::new(setups[setup].settings());
        let all: std::collections::BTreeSet<usize> = others.chain([at]).collect();
        variants.extend(
            all.into_iter()
                .map(|other| (at, other, setup, Arc::clone(&settings))),
        );
    }
    let running = variants.iter().map(async |(at, other, setup, settings)| {
        let row = &suite.rows[*other];
        let outcome = setups[*setup].row(suite, row, settings, &broken[*at]);
        (*at, *other, outcome.await.0)
    });
    // Those that wait for a heartbeat hold nobody up.
    let mut outcomes = stream::iter(running).buffer_unordered(JOBS);
    while let Some((at, other, outcome)) = outcomes.next().await {
        // A wrong shape is a failure of each row that meets it.
        let is_shape = outcome.verdict == Verdict::Fail && outcome.reason == outcome.disorder;
        if is_failure(&outcome) != (other == at) && failure(other).is_none() && !is_shape {
            let [id, other] = [at, other].map(|at| &suite.rows[at].id);
            let evidence = report::evidence(&outcome.evidence);
            problems.push(format!(
                "{id} broken, {other}: {:?}\n{evidence}",
                outcome.why()
            ));
        }
    }
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// As [`conforms_in_part`]; and what the last row has to find in the others is found there.
async fn conforms(suite: &Suite, setups: &[Setup]) {
    conforms_in_part(suite, setups).await;
    let broken = breaks(suite);
    let (rules, rows) = (broken.last().unwrap(), &suite.rows[..broken.len() - 1]);
    for rule in rules.lines() {
        let settings = setups[0].settings();
        let running = rows
            .iter()
            .map(|row| setups[0].row(suite, row, &settings, rule));
        let outcomes: Vec<_> = stream::iter(running).buffered(JOBS).collect().await;
        let is_found = outcomes.iter().any(|(it, _)| it.disorder.is_some());
        assert!(is_found, "no row meets {rule}");
    }
}
