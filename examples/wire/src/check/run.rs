//! [`run`]: the rows of a suite against a peer, several at once, each on connections of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Serialize;
use tokio::time::Instant;

use super::peer::{Client, Dial};
use super::play::Script;
use super::signed;
use super::suite::{Row, Suite};
use super::variables::{NEEDS, Variables};
use crate::Protocol;

/// Who is checked.
#[derive(Clone)]
pub(crate) enum Peer {
    /// A server: how it is reached, and its URL.
    Server(Arc<dyn Dial>, String),
    /// A client.
    Client(Arc<dyn Client>),
}

/// How rows are run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// How long a row waits for what it expects.
    pub timeout: Duration,
    /// How long silence has to last.
    pub quiet: Duration,
    /// How many rows run at once, at least 1.
    pub jobs: usize,
    /// What the scripts know: tokens, names, prompts.
    pub variables: Variables,
    /// How long the peer has taken for a step at most, in milliseconds: rows wait longer for a slow one.
    pub pace: Arc<AtomicU64>,
}

impl Settings {
    /// Returns how much longer than the usual time a row waits, to tell a slow peer from a silent one.
    pub(super) fn patience(&self) -> Duration {
        match self.pace.load(Ordering::Relaxed) {
            // Nothing is known of it yet.
            0 => self.timeout,
            pace => Duration::from_millis(pace).saturating_mul(5),
        }
    }

    /// Returns the settings in words. Values of variables may be secrets.
    pub(super) fn words(&self) -> String {
        let names = self.variables.names().join(", ");
        let (timeout, quiet) = (self.timeout.as_secs_f64(), self.quiet.as_secs_f64());
        format!(
            "timeout {timeout} s, silence {quiet} s, {} rows at once, set: {names}",
            self.jobs
        )
    }
}

/// What a row has found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// It holds.
    #[default]
    Pass,
    /// It does not hold.
    Fail {
        /// The step of the script that failed.
        step: String,
        /// Why.
        reason: String,
    },
    /// It holds, but took longer than it may.
    Late {
        /// The step that was late.
        step: String,
        /// How late.
        reason: String,
    },
    /// What has to come before it failed, so that it could not begin.
    Blocked {
        /// Why.
        reason: String,
    },
    /// It does not apply.
    NotApplicable {
        /// Why.
        reason: String,
    },
}

/// A frame of the evidence.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// When, from the start of the row.
    pub millis: u128,
    /// The connection, from 1.
    pub connection: u8,
    /// Whether the check sent it.
    pub sent: bool,
    /// What it was, with secrets replaced.
    pub text: String,
}

/// The outcome of a row.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// What was found.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// How long it took, in milliseconds.
    pub millis: u64,
    /// What was sent and received.
    pub evidence: Vec<Entry>,
    /// What the peer did against the shapes, the limits or the order of the protocol.
    #[serde(skip)]
    pub disorder: Option<String>,
    /// The protocol of the first frame of the peer, if it is another one.
    #[serde(skip)]
    pub foreign: Option<Protocol>,
}

/// Runs the rows of a suite, and reports each as soon as all before it have ended.
///
/// # Cancel safety
/// Dropping the future ends the rows that run, and their connections.
pub(crate) async fn run(
    suite: &Suite,
    peer: &Peer,
    settings: &Settings,
    mut tell: impl FnMut(&Row, &Outcome),
) -> Vec<Outcome> {
    let rows = suite
        .rows
        .iter()
        .map(|row| row_of(suite, row, peer, settings, prepared(suite, settings)));
    let mut outcomes = stream::iter(rows).buffered(settings.jobs.max(1));
    let mut all = Vec::with_capacity(suite.rows.len());
    let mut disorder = None;
    while let Some(mut outcome) = outcomes.next().await {
        if let Some(row) = suite.rows.get(all.len()) {
            disorder =
                disorder.or_else(|| Some(format!("{}: {}", row.id, outcome.disorder.as_ref()?)));
            if row.steps.is_empty() {
                outcome.verdict = in_order(&all, disorder.take());
            }
            tell(row, &outcome);
        }
        let is_foreign = outcome.foreign.is_some();
        all.push(outcome);
        if is_foreign {
            break;
        }
    }
    all
}

/// Judges the order of the frames of all rows.
fn in_order(all: &[Outcome], disorder: Option<String>) -> Verdict {
    let step = "in the row".to_owned();
    match disorder {
        Some(reason) => Verdict::Fail { step, reason },
        None if all
            .iter()
            .any(|it| matches!(it.verdict, Verdict::Pass | Verdict::Late { .. })) =>
        {
            Verdict::Pass
        }
        None => Verdict::NotApplicable {
            reason: "no row could be checked".to_owned(),
        },
    }
}

/// Returns what a script knows at its beginning, and what is wrong with it.
pub(super) fn prepared(suite: &Suite, settings: &Settings) -> (Variables, Result<(), String>) {
    let mut variables = settings.variables.clone();
    let nonce = nonce();
    variables.set("hex", rpc_core::text::beginning(&nonce, 6));
    variables.set("nonce", nonce);
    let signed = match suite.protocol == Protocol::ConnectOnion {
        true => signed::set_parts(&mut variables),
        false => Ok(()),
    };
    let mut lets = suite.lets.iter();
    let set = lets.try_for_each(|(name, value)| variables.set_part(name, value));
    (variables, set.and(signed))
}

pub(super) async fn row_of(
    suite: &Suite,
    row: &Row,
    peer: &Peer,
    settings: &Settings,
    (variables, set): (Variables, Result<(), String>),
) -> Outcome {
    let started = Instant::now();
    let missing = row.needs.iter().find(|name| !variables.has(name));
    let reason = match (missing, row.unless.iter().find(|name| variables.has(name))) {
        (Some(name), _) => Some(format!("{NEEDS}{name}=...")),
        (None, Some(name)) => Some(format!("only without {name}")),
        (None, None) => set.err(),
    };
    if let Some(reason) = reason {
        return Outcome {
            verdict: Verdict::NotApplicable { reason },
            ..Outcome::default()
        };
    }
    let mut script = Script::new(suite, peer, settings, variables);
    let verdict = script.run(row).await;
    Outcome {
        verdict,
        disorder: script.misshapen.or(script.disorder),
        foreign: script.foreign,
        evidence: script.evidence,
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// A text that no other row and no other run has.
fn nonce() -> String {
    use std::hash::BuildHasher as _;
    let random = std::hash::RandomState::new().hash_one(Instant::now());
    format!("{random:016x}")
}
