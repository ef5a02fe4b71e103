//! Our own programs pass every row, and broken in the way that stands beside a row, they fail that row alone.

mod acolyte;
mod clients;
mod connectonion;
mod exoclaw;
mod smarthole;
mod snek;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use rpc_core::net::DialError;
use rpc_core::net::server::{PeerAddr, Service};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::*;
use crate::wire::Protocol;

/// A server in memory.
struct Memory(mpsc::Sender<DuplexStream>);

#[async_trait]
impl Dial for Memory {
    async fn dial(&self) -> Result<Line, DialError> {
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
    fn settings(&self, broken: &str) -> Settings {
        let mut variables = Variables::default();
        for (name, value) in &self.variables {
            variables.set(*name, *value);
        }
        Settings {
            timeout: Duration::from_secs(20),
            quiet: Duration::from_secs(1),
            jobs: 16,
            variables,
            broken: broken.to_owned(),
        }
    }

    async fn verdicts(&self, suite: &Suite, broken: &str) -> Vec<Outcome> {
        run(suite, &self.peer, &self.settings(broken), |_, _| ()).await
    }
}

/// Checks that without faults every row passes in one of the setups and fails in none, and that
/// each variant fails its own row and no other.
async fn conforms(suite: &Suite, setups: &[Setup]) {
    let mut problems = Vec::new();
    let mut healthy = Vec::new();
    for setup in setups {
        healthy.push(setup.verdicts(suite, "").await);
    }
    let is_failure = |outcome: &Outcome| matches!(outcome.verdict, Verdict::Fail { .. });
    let failure = |at: usize| {
        healthy
            .iter()
            .map(|outcomes| &outcomes[at])
            .find(|it| is_failure(it))
    };
    for (at, row) in suite.rows.iter().enumerate() {
        if let Some(failure) = failure(at) {
            let evidence = report::evidence(&failure.evidence);
            let verdict = &failure.verdict;
            problems.push(format!(
                "{} fails without a fault: {verdict:?}\n{evidence}",
                row.id
            ));
            continue;
        }
        let verdicts: Vec<_> = healthy
            .iter()
            .map(|outcomes| &outcomes[at].verdict)
            .collect();
        let Some(setup) = verdicts.iter().position(|it| **it == Verdict::Pass) else {
            problems.push(format!("{} passes nowhere: {verdicts:?}", row.id));
            continue;
        };
        let outcomes = setups[setup].verdicts(suite, &row.broken).await;
        for (other, outcome) in outcomes.iter().enumerate() {
            if is_failure(outcome) != (other == at) && failure(other).is_none() {
                let (id, verdict) = (&suite.rows[other].id, &outcome.verdict);
                problems.push(format!("{} broken, {id}: {verdict:?}", row.id));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}
