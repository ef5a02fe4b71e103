//! What the hosts of a cluster ask each other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::request::Parts;
use rpc_core::store::StoreError;
use rpc_core::{Instant, Str};
use serde::{Deserialize, Serialize};

use super::Cluster;
use crate::auth::{AuthError, Signature, unix_seconds};
use crate::frame::SessionState;
use crate::hub::Owner;
use crate::id::SessionId;
use crate::net::HostRuntime;
use crate::net::sessions::Sessions;
use crate::storage::{owner, owner_text};

/// What a host asks another one.
#[derive(Serialize, Deserialize)]
pub(super) enum Question {
    /// The status of a session.
    Status {
        session_id: SessionId,
        /// Who asks; nothing for callers that have proved nothing.
        #[serde(deserialize_with = "owner", serialize_with = "owner_text")]
        asker: Option<Owner>,
    },
    /// A ticket for a client.
    Ticket(Head),
    /// To give up a session that no one uses.
    Release { session_id: SessionId },
    /// To try a ticket of the host that asks.
    Dial(Str),
}

#[derive(Serialize, Deserialize)]
pub(super) enum Replied {
    Status(SessionState),
    /// The URL to dial, with the ticket.
    Ticket(Str),
    /// There is no room.
    Full,
    /// Whether the host does not have the session any more.
    Released(bool),
    Dialling,
}

/// The request with which a client has come to another host.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    /// The time there, in seconds since 1970.
    time: f64,
    peer: SocketAddr,
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
}

/// In the head of a connection that another host passes on: the time there when the client came, in seconds since
/// 1970, and when that was here.
#[derive(Clone, Copy, Debug)]
pub(in crate::net) struct Arrival(pub(in crate::net) f64, pub(in crate::net) Instant);

impl Head {
    pub(super) fn new(peer: SocketAddr, head: &Parts, now: SystemTime) -> Self {
        let headers = head.headers.iter();
        let texts = headers
            .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Self {
            time: unix_seconds(now),
            peer,
            method: head.method.to_string(),
            uri: head.uri.to_string(),
            headers: texts.collect(),
        }
    }

    /// Returns the client's address, and its request.
    pub(super) fn parts(&self) -> Option<(SocketAddr, Parts)> {
        let request = http::Request::builder()
            .method(self.method.as_str())
            .uri(self.uri.as_str())
            .extension(Arrival(self.time, rpc_core::net::time::now()));
        let headers = self.headers.iter();
        let request = headers.fold(request, |it, (name, value)| it.header(name, value));
        Some((self.peer, request.body(()).ok()?.into_parts().0))
    }
}

impl Cluster {
    /// Answers the question of another host, if there is an answer.
    pub(super) async fn answer(&self, runtime: &HostRuntime, asked: &Question) -> Option<Replied> {
        Some(match asked {
            Question::Status { session_id, asker } => {
                let status = runtime.read(|hub| hub.status(*asker, Some(session_id)));
                Replied::Status(status.status)
            }
            // It does not serve any more, and is about to leave.
            Question::Ticket(_) if runtime.is_closing() => return None,
            Question::Ticket(head) => self.ticket(head).map_or(Replied::Full, Replied::Ticket),
            Question::Release { session_id } => {
                let node = self.shared.member.current()?;
                let release = || runtime.with_hub(|hub, now| hub.release_idle(session_id, now));
                Replied::Released(node.claims.release_if(session_id, release).await.ok()?)
            }
            Question::Dial(_) => Replied::Dialling,
        })
    }

    /// Returns the status of a session that another host serves. `asker` is the identity that the
    /// caller has proved; `None` if it has proved none but must.
    pub(in crate::net) async fn status(
        &self,
        asker: Option<Owner>,
        session_id: &str,
    ) -> Option<SessionState> {
        let node = self.shared.member.current()?;
        let owner = node.claims.holder(session_id).await.ok().flatten()?;
        if owner == *node.id() {
            return None;
        }
        let question = Question::Status {
            session_id: session_id.into(),
            asker,
        };
        match node.ask(&owner, &question).await.ok()? {
            Replied::Status(status) => Some(status),
            _ => None,
        }
    }

    /// Returns the sessions that all hosts share.
    pub(in crate::net) fn sessions(&self) -> Arc<Sessions> {
        Arc::clone(&self.shared.sessions)
    }

    /// Counts a signature as used at all hosts. If the future is dropped, it may be used or not.
    ///
    /// # Errors
    /// [`AuthError::AlreadyUsed`], [`AuthError::ReplayProtectionUnavailable`].
    pub(in crate::net) async fn spend(&self, signature: &Signature) -> Result<(), AuthError> {
        let (key, value) = (signature.to_string(), Bytes::from_static(b"1"));
        let spent = self.shared.signatures.create(&key, value).await;
        spent.map(drop).map_err(|error| match error {
            StoreError::Conflict => AuthError::AlreadyUsed,
            _ => AuthError::ReplayProtectionUnavailable,
        })
    }
}
