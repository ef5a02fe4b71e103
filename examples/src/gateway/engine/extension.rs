//! The future methods of the specification: those that only read, and `session.clear`.

use std::time::Duration;

use exoclaw_proto::binding::Route;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{
    BudgetStatus, BudgetUse, Call, Cleared, Fact, Method, Session, SessionRef, Turn,
};
use exoclaw_proto::session::SessionKey;
use rpc_core::Json;
use serde::Serialize;
use tokio::time::timeout;

use super::Engine;
use super::records::Records;
#[cfg(feature = "nats")]
use super::unavailable;
use crate::gateway::memory::search;

/// Most items of a list, and the default number.
const MAX_ITEMS: usize = 1000;
const ITEMS: usize = 50;

/// How long a history waits for the end of a turn.
const ENDING: Duration = Duration::from_secs(2);

impl Engine {
    /// Answers an extension.
    ///
    /// # Errors
    /// [`RpcError`]: unknown method, no agent for the session, or the store cannot be read.
    ///
    /// # Cancel safety
    /// Dropping the future leaves a `session.clear` either done or not done.
    pub async fn extension(&self, call: &Call) -> Result<Json, RpcError> {
        let method = call.method();
        let method = method.ok_or_else(|| RpcError::unknown_method(call.tag()))?;
        match call {
            Call::ChatHistory(it) => self.history(&it.session, bound(it.limit)).await,
            Call::SessionList => {
                let sessions = self.store.sessions(MAX_ITEMS).await.map_err(unreadable)?;
                let sessions = sessions.into_iter();
                let sessions = sessions.map(|it| Session {
                    key: it.session.into(),
                    turns: it.kept,
                    last_active: it.active,
                });
                answer(&sessions.collect::<Vec<_>>())
            }
            Call::SessionClear(session) => {
                let key = self.named(session, method)?;
                // The episodic memory; facts stay. Not while a turn runs, which would be written down afterwards.
                let turn = self.enter(&key).await?;
                let (agent, turn) = (key.agent(), Some(&turn));
                let before = self.store.recall(key.as_str(), &agent, turn, usize::MAX);
                let before = before.await;
                let turns = before.map_err(unreadable)?.turns.len();
                self.store.forget(key.as_str()).await.map_err(unreadable)?;
                answer(&Cleared {
                    turns: turns as u64,
                })
            }
            Call::BudgetStatus(of) => {
                let session = of.session.as_ref();
                let key = session.map(|it| self.named(it, method)).transpose()?;
                answer(&self.budget_status(key.as_ref()).await?)
            }
            Call::MemorySearch(it) => {
                let key = self.named(&it.session, method)?;
                let agent = key.agent();
                let recalled = self.store.recall(key.as_str(), &agent, None, 0).await;
                let facts = recalled.map_err(unreadable)?.facts;
                let found = search(&facts, &it.query, bound(it.limit)).into_iter();
                let found = found.map(|fact| Fact {
                    text: fact.sentence().into(),
                    at: fact.at,
                });
                answer(&found.collect::<Vec<_>>())
            }
            other => Err(RpcError::unknown_method(other.tag())),
        }
    }

    /// Returns the last turns of a session, oldest first, as the answer to `chat.history`. Waits up to 2 s
    /// for a turn that has not ended yet: whoever asks may be the client that has just left it.
    ///
    /// # Errors
    /// [`RpcError`]: no such session's agent, or the store cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn history(&self, session: &SessionRef, max: usize) -> Result<Json, RpcError> {
        let key = self.named(session, Method::ChatHistory)?;
        let agent = key.agent();
        let ended = async {
            drop(self.turns.enter(&key).await);
            self.store.ended(key.as_str()).await;
        };
        let _ = timeout(ENDING, ended).await;
        let recalled = self.store.recall(key.as_str(), &agent, None, max).await;
        let turns = recalled.map_err(unreadable)?.turns.into_iter();
        let turns = turns.map(|turn| Turn {
            user: turn.user.into(),
            assistant: turn.assistant.into(),
            at: turn.at,
            mark: turn.mark.map(|mark| mark.to_string().into()),
        });
        answer(&turns.collect::<Vec<_>>())
    }

    fn named(&self, session: &SessionRef, method: Method) -> Result<SessionKey, RpcError> {
        let route = Route {
guild: session.guild.as_deref(),
team: session.team.as_deref(),
..Route::new(&session.channel, &session.account, session.peer())
};
        self.session(&route, method)
    }

    #[allow(clippy::unused_async, reason = "without feature `nats` nothing waits")]
    async fn budget_status(&self, session: Option<&SessionKey>) -> Result<BudgetStatus, RpcError> {
        let now = self.now();
        let (budgets, in_session, in_day, in_month) = match &*self.store {
            Records::Own(_) => {
                let mut ledger = self.ledger();
                ledger.advance(now);
                let in_session = session.map_or(0, |key| ledger.session_used(key));
                let (in_day, in_month) = (ledger.daily_used(), ledger.monthly_used());
                (ledger.budgets(), in_session, in_day, in_month)
            }
            #[cfg(feature = "nats")]
            Records::Shared(cluster) => {
                let used = cluster.used(session.map(SessionKey::as_str)).await;
                let (in_session, in_day, in_month) = used.map_err(|error| unavailable(&error))?;
                (self.ledger().budgets(), in_session, in_day, in_month)
            }
        };
        let of = |used, limit| BudgetUse { used, limit };
        Ok(BudgetStatus {
            session: session.map(|_| of(in_session, budgets.session)),
            daily: of(in_day, budgets.daily),
            monthly: of(in_month, budgets.monthly),
        })
    }
}

fn bound(limit: Option<u64>) -> usize {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.unwrap_or(ITEMS).min(MAX_ITEMS)
}

fn answer(value: &impl Serialize) -> Result<Json, RpcError> {
    Json::of(value).map_err(unreadable)
}

/// Logs an error, and returns one without details for the client.
#[allow(
    clippy::needless_pass_by_value,
    reason = "it is a function for `map_err`"
)]
fn unreadable<E: std::fmt::Display>(error: E) -> RpcError {
    tracing::error!(%error, "an extension has failed");
    RpcError::new("internal error")
}
