//! [`run`]: the rows of a suite against a peer, several at once, each on connections of its own.

use futures_util::StreamExt as _;
use futures_util::stream;
use serde::Serialize;
use tokio::time::Instant;

use super::suite::{Row, Suite};
use crate::Protocol;
use crate::play::{Entry, NEEDS, Peer, Player, Settings, Variables, signed};

rpc_core::words! {
    /// What a row has found.
    #[derive(Default)]
    pub enum Verdict {
        /// It holds.
        #[default]
        "pass" => Pass,
        /// It does not hold.
        "fail" => Fail,
        /// It holds, but took longer than it may.
        "late" => Late,
        /// What has to come before it failed, so that it could not begin.
        "blocked" => Blocked,
        /// It does not apply.
        "not-applicable" => NotApplicable,
    }
}

/// The outcome of a row.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// What was found.
    pub verdict: Verdict,
    /// The step of the script that failed, or was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Why the row does not hold, was late, or was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
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
    mut report: impl FnMut(&Row, &Outcome),
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
                (outcome.verdict, outcome.step, outcome.reason) = in_order(&all, disorder.take());
            }
            report(row, &outcome);
        }
        let is_foreign = outcome.foreign.is_some();
        all.push(outcome);
        if is_foreign {
            break;
        }
    }
    all
}

/// What was found, the step that it is of, and why.
type Found = (Verdict, Option<String>, Option<String>);

/// Judges the order of the frames of all rows.
fn in_order(all: &[Outcome], disorder: Option<String>) -> Found {
    let holds = |it: &Outcome| matches!(it.verdict, Verdict::Pass | Verdict::Late);
    match disorder {
        Some(_) => (Verdict::Fail, Some("in the row".to_owned()), disorder),
        None if all.iter().any(holds) => (Verdict::Pass, None, None),
        None => {
            let why = "no row could be checked".to_owned();
            (Verdict::NotApplicable, None, Some(why))
        }
    }
}

/// Returns what a script knows at its beginning, and what is wrong with it.
pub(super) fn prepared(suite: &Suite, settings: &Settings) -> (Variables, Result<(), String>) {
    let mut variables = settings.variables.clone();
    // No other row and no other run has it.
    let nonce = format!("{:016x}", rpc_core::net::entropy());
    variables.set("hex", rpc_core::text::beginning(&nonce, 6));
    variables.set("nonce", nonce);
    let signed = match suite.protocol == Some(Protocol::ConnectOnion) {
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
    if reason.is_some() {
        return Outcome {
            verdict: Verdict::NotApplicable,
            reason,
            ..Outcome::default()
        };
    }
    let mut player = Player::new(suite, peer, settings, variables);
    let (verdict, step, reason) = verdict(&mut player, row).await;
    let found = player.found;
    Outcome {
        verdict,
        step,
        reason,
        disorder: found.misshapen.or(found.disorder),
        foreign: found.foreign,
        evidence: found.evidence,
        millis: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    }
}

/// Plays the steps of a row up to the first one that fails.
async fn verdict(player: &mut Player<'_>, row: &Row) -> Found {
    if let Err(reason) = player.start().await {
        return (Verdict::Blocked, None, Some(reason));
    }
    let preamble = row.before.iter().map(|step| (step, true));
    for (step, before) in preamble.chain(row.steps.iter().map(|step| (step, false))) {
        let Err(mut reason) = player.play(step).await else {
            continue;
        };
        // That something is not there may be fine, that it has another shape is not.
        if step.soft
            && !before
            && let Some(wrong) = &player.found.misshapen
        {
            player.found.violated = true;
            reason = wrong.clone();
        }
        let reason = player.redacted(&reason);
        let verdict = match before {
            _ if reason.starts_with(NEEDS) => return (Verdict::NotApplicable, None, Some(reason)),
            true => Verdict::Blocked,
            false if step.soft && !player.found.violated => Verdict::NotApplicable,
            false => Verdict::Fail,
        };
        return (verdict, Some(step.line.clone()), Some(reason));
    }
    match player.found.late.take() {
        Some((step, reason)) => (Verdict::Late, Some(step), Some(reason)),
        None => (Verdict::Pass, None, None),
    }
}
