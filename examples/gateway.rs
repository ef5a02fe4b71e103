//! A gateway of the Exoclaw protocol: `cargo run -p examples --bin gateway -- --bind 127.0.0.1:7200`, then
//! `cargo run -p switchboard -- gateway chat`, or any other client.
//!
//! It streams answers, runs a tool, keeps sessions and budgets, and asks for a token if `EXOCLAW_TOKEN` has one.
//!
//! Left out: sessions end with the program, and the model is [`think`] of `src/lib.rs`. A gateway that serves other
//! machines needs TLS in front, and a token.
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use examples::{Failure, Step, cannot, options, stopped, think, tokens, tool};
use exoclaw_proto::Json;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::binding::Bindings;
use exoclaw_proto::budget::{Budgets, Ledger};
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{
    BudgetStatus, ChatSend, Cleared, Method, Plugin, Session, SessionRef, Status, StreamEvent,
    ToolResult, ToolUse, Turn, Usage,
};
use exoclaw_proto::net::{AppError, Backend, ChatReply, Peer, Server, ServerOptions, SessionTurns};
use exoclaw_proto::session::SessionKey;

/// How many sessions are kept; the one that was used least recently goes first.
const MAX_SESSIONS: usize = 1_000;
/// How many turns of a session are kept.
const MAX_TURNS: usize = 100;
/// How many steps a model may take for one answer.
const MAX_STEPS: usize = 8;
/// The tokens of a day, over all sessions.
const DAILY_TOKENS: u64 = 1_000_000;

/// The application behind the server.
pub(crate) struct Gateway {
    /// Which agent gets which chat.
    router: Bindings,
    /// One turn of a session at a time: the second of two messages knows the first.
    turns: SessionTurns,
    ledger: Ledger,
    sessions: Mutex<HashMap<SessionKey, Conversation>>,
}

/// What a session has said.
#[derive(Default)]
struct Conversation {
    turns: Vec<Turn>,
    used_at: u64,
}

impl Gateway {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self {
            router: Bindings::new(Vec::new(), Some("default".to_owned()))?,
            turns: SessionTurns::default(),
            ledger: Ledger::new(Budgets {
                daily: Some(DAILY_TOKENS),
                ..Budgets::default()
            }),
            sessions: Mutex::default(),
        })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionKey, Conversation>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a turn, and forgets what is too old.
    fn store(&self, session: SessionKey, turn: Turn) {
        let mut sessions = self.sessions();
        let at = turn.at;
        let conversation = sessions.entry(session).or_default();
        conversation.used_at = at;
        conversation.turns.push(turn);
        if conversation.turns.len() > MAX_TURNS {
            conversation.turns.remove(0);
        }
        if sessions.len() > MAX_SESSIONS {
            let oldest = sessions.iter().min_by_key(|(_, it)| it.used_at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                sessions.remove(&oldest);
            }
        }
    }
}

impl Backend for Gateway {
    async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        // The errors of routes, turns and budgets become answers.
        let session = self.router.session(&chat.session)?;
        let _turn = self.turns.enter(&session).await?;
        let asked = tokens(&chat.content);
        let mut budget = self.ledger.reserve(&session, asked, now())?;

        // A real model gets the turns of the session as well.
        let (mut answer, mut results) = (String::new(), Vec::new());
        for step in 0..MAX_STEPS {
            match think(&chat.content, &results) {
                Step::Say(pieces) => {
                    for piece in pieces {
                        reply.text(&piece).await?; // fails when the client has left
                        answer.push_str(&piece);
                    }
                    break;
                }
                Step::Tool { name, argument } => {
                    let id = format!("call-{step}");
                    let call = ToolUse::new(&*id, name, Json::string(&argument));
                    reply.event(&StreamEvent::ToolUse(call)).await?;
                    let (result, is_error) = match tool(name, &argument) {
                        Ok(result) => (result, false),
                        Err(why) => (why, true), // the model is told, and may try again
                    };
                    let told = ToolResult::new(&*id, &*result, is_error);
                    reply.event(&StreamEvent::ToolResult(told)).await?;
                    results.push(result);
                }
            }
        }

        let usage = Usage::new(asked, tokens(&answer));
        budget.record(usage.total());
        reply.usage(usage).await?;
        let turn = Turn {
            user: chat.content,
            assistant: answer.into(),
            at: now(),
            mark: None,
        };
        self.store(session, turn);
        Ok(()) // `done` is sent by the server
    }

    async fn status(&self, _: &Arc<Peer>) -> Status {
        let sessions = self.sessions().len() as u64;
        Status::new(env!("CARGO_PKG_VERSION"), 1, sessions)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        vec![Plugin::new("roll")]
    }

    /// The methods beyond the required ones that the hello names.
    fn extensions(&self) -> &[Method] {
        &[
            Method::SessionList,
            Method::SessionClear,
            Method::BudgetStatus,
        ]
    }

    async fn session_list(&self, _: &Arc<Peer>) -> Result<Vec<Session>, RpcError> {
        let sessions = self.sessions();
        let listed = sessions.iter().map(|(key, it)| Session {
            key: key.as_str().into(),
            turns: it.turns.len() as u64,
            last_active: it.used_at,
        });
        Ok(listed.collect())
    }

    async fn session_clear(&self, _: &Arc<Peer>, session: SessionRef) -> Result<Cleared, RpcError> {
        let session = self.router.session(&session)?;
        let _turn = self.turns.enter(&session).await?;
        let removed = self.sessions().remove(&session);
        let turns = removed.map_or(0, |it| it.turns.len() as u64);
        Ok(Cleared {
            turns,
            ..Cleared::default()
        })
    }

    async fn budget_status(
        &self,
        _: &Arc<Peer>,
        session: Option<SessionRef>,
    ) -> Result<BudgetStatus, RpcError> {
        let session = session.map(|it| self.router.session(&it)).transpose()?;
        Ok(self.ledger.status(session.as_ref(), now()))
    }
}

/// The seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let [address] = options(include_str!("gateway.rs"), [("--bind", "127.0.0.1:7200")]);
    let auth = match std::env::var("EXOCLAW_TOKEN") {
        Ok(token) => Auth::token(token)?,
        Err(_) => Auth::open(), // this machine only: `bind` refuses other addresses
    };
    let server = Server::bind(&address, Gateway::new()?, ServerOptions::new(auth)).await;
    let server = server.map_err(cannot("listen on", address))?;
    println!("gateway at {}", server.url());
    server.run_until(stopped()?, Duration::from_secs(5)).await;
    Ok(())
}
