//! The future methods of the specification that are served, and `memory.forget`.

use std::time::Duration;

use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{
    BudgetStatus, BudgetUse, Cleared, Fact, MemorySearch, Method, Session, SessionRef, Turn,
};
use exoclaw_proto::session::SessionKey;
use rpc_core::text::beginning;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::{Engine, unavailable, unreadable};
use crate::gateway::memory::{self, Entity, Words};
use crate::gateway::store::Forget;

/// Most items of a list, and the default number.
const MAX_ITEMS: usize = 1000;
const ITEMS: usize = 50;

/// Most bytes of a query whose words count.
const MAX_QUERY: usize = 256;

/// How long a history waits for the end of a turn.
const ENDING: Duration = Duration::from_secs(2);

/// The method that forgets what is known, and its parameters. Its answer says whether it was known.
pub const MEMORY_FORGET: &str = "memory.forget";

/// The parameters of [`MEMORY_FORGET`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// The session.
    #[serde(flatten)]
    pub session: SessionRef,
    /// The subject.
    pub subject: String,
    /// The relation.
    pub relation: String,
}

impl Engine {
    /// Returns the last turns of a session, oldest first, as the answer to `chat.history`. Waits up to 2 s
    /// for a turn that has not ended yet: the caller may be the client that has just left it.
    ///
    /// # Errors
    /// [`RpcError`]: no such session's agent, or the store cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn history(
        &self,
        session: &SessionRef,
        limit: Option<u64>,
    ) -> Result<Vec<Turn>, RpcError> {
        self.ended(session).await?;
        let turns = self.kept(session, bound(limit)).await?.into_iter();
        let turns = turns.map(|turn| Turn {
            user: turn.user.into(),
            assistant: turn.assistant.into(),
            at: turn.at,
            mark: turn.mark.map(|mark| mark.to_string().into()),
        });
        Ok(turns.collect())
    }

    /// Waits up to 2 s for the end of a session's turn.
    ///
    /// # Errors
    /// [`RpcError`]: no such session's agent.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ended(&self, session: &SessionRef) -> Result<(), RpcError> {
        let key = self.session(session, Method::ChatHistory)?;
        let ended = async {
            drop(self.turns.enter(&key).await);
            if let Err(error) = self.store.ended(key.as_str()).await {
                tracing::debug!(%error, "the end of a turn cannot be seen");
            }
        };
        let _ = timeout(ENDING, ended).await;
        Ok(())
    }

    /// Returns the last turns of a session as they are stored now, oldest first.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn kept(
        &self,
        session: &SessionRef,
        max: usize,
    ) -> Result<Vec<memory::Turn>, RpcError> {
        let key = self.session(session, Method::ChatHistory)?;
        let recalled = self.store.recall(key.as_str(), None, max).await;
        recalled.map_err(unreadable)
    }

    /// Begins a session with the turns of another one that come before the one with this name, unless there is one
    /// already.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Dropping the future leaves it either done or not done.
    pub async fn copy(
        &self,
        from: &SessionRef,
        before: &str,
        to: &SessionRef,
    ) -> Result<(), RpcError> {
        let from = self.session(from, Method::ChatHistory)?;
        let to = self.session(to, Method::ChatSend)?;
        let (from, to) = (from.as_str(), to.as_str());
        let copied = self.store.copy(from, before, to, self.now());
        copied.await.map_err(unreadable)
    }

    /// Forgets all of a session but its usage, once its turn has ended.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Dropping the future leaves it either done or not done.
    pub async fn delete(&self, session: &SessionRef) -> Result<(), RpcError> {
        let key = self.session(session, Method::SessionClear)?;
        let _turn = self.enter(&key).await?;
        let forgotten = self.store.forget(key.as_str(), Forget::All).await;
        forgotten.map(drop).map_err(unreadable)
    }

    /// Returns the most recently used sessions, newest first.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn sessions(&self) -> Result<Vec<Session>, RpcError> {
        let sessions = self.store.sessions(MAX_ITEMS).await.map_err(unreadable)?;
        let sessions = sessions.into_iter().map(|it| Session {
            key: it.session.into(),
            turns: it.kept,
            last_active: it.active,
        });
        Ok(sessions.collect())
    }

    /// Forgets the turns of a session and what is known from them. Not while a turn runs, which would be written down
    /// afterwards.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Dropping the future leaves it either done or not done.
    pub async fn clear(&self, session: &SessionRef) -> Result<Cleared, RpcError> {
        let key = self.session(session, Method::SessionClear)?;
        let _turn = self.enter(&key).await?;
        let turns = self.store.recall(key.as_str(), None, usize::MAX).await;
        let turns = turns.map_err(unreadable)?.len();
        let entities = self.store.entities(key.as_str(), None).await;
        let facts = entities.map_err(unreadable)?.len();
        let forgotten = self.store.forget(key.as_str(), Forget::Turns).await;
        forgotten.map_err(unreadable)?;
        Ok(Cleared {
            turns: turns as u64,
            facts: facts as u64,
        })
    }

    /// Returns what is known of a session, and what its user has said, as far as it is stored and has a word of the
    /// query, oldest first: the last of more than the limit. Without a word, what is known.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn search(&self, asked: &MemorySearch) -> Result<Vec<Fact>, RpcError> {
        let key = self.session(&asked.session, Method::MemorySearch)?;
        let recalled = self.store.recall(key.as_str(), None, usize::MAX).await;
        let turns = recalled.map_err(unreadable)?.into_iter();
        let words = Words::of(beginning(&asked.query, MAX_QUERY));
        let turns = turns.filter(|turn| words.are_in(&turn.user));
        let turns = turns.map(|turn| Fact {
            text: turn.user.into(),
            at: turn.at,
            ..Fact::default()
        });
        let known = self.entities(&asked.session).await?.into_iter();
        let known = known.filter(|it| words.is_empty() || words.are_in(&it.sentence()));
        let known = known.map(|it| Fact {
            text: it.sentence().into(),
            at: it.at,
            subject: Some(it.subject.into()),
            relation: Some(it.relation.into()),
        });
        let mut found: Vec<_> = known.chain(turns).collect();
        found.sort_by_key(|fact| fact.at);
        let surplus = found.len().saturating_sub(bound(asked.limit));
        found.drain(..surplus);
        Ok(found)
    }

    /// Returns what is known from the turns of a session, oldest first.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn entities(&self, session: &SessionRef) -> Result<Vec<Entity>, RpcError> {
        let key = self.session(session, Method::MemorySearch)?;
        let entities = self.store.entities(key.as_str(), None).await;
        entities.map_err(unreadable)
    }

    /// Forgets what is known of this relation of a subject. Returns whether it was known.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Dropping the future leaves it either done or not done.
    pub async fn forget(&self, asked: &Forgotten) -> Result<bool, RpcError> {
        let key = self.session(&asked.session, Method::MemorySearch)?;
        let what = Forget::Entity(&asked.subject, &asked.relation);
        let forgotten = self.store.forget(key.as_str(), what).await;
        forgotten.map_err(unreadable)
    }

    /// Returns the use of the token budgets, and of a session's if one is named.
    ///
    /// # Errors
    /// As for [`history`](Self::history).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn budgets(&self, session: Option<&SessionRef>) -> Result<BudgetStatus, RpcError> {
        let named = |session| self.session(session, Method::BudgetStatus);
        let key = session.map(named).transpose()?;
        let used = self.store.used(key.as_ref().map(SessionKey::as_str)).await;
        let (in_session, in_day, in_month) = used.map_err(|error| unavailable(&error))?;
        let budgets = self.store.budgets();
        let of = |used, limit| BudgetUse { used, limit };
        Ok(BudgetStatus {
            session: key.map(|_| of(in_session, budgets.session)),
            daily: of(in_day, budgets.daily),
            monthly: of(in_month, budgets.monthly),
        })
    }
}

fn bound(limit: Option<u64>) -> usize {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    limit.unwrap_or(ITEMS).min(MAX_ITEMS)
}
