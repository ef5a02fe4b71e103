//! What the hosts of a cluster ask each other.

use std::sync::Arc;

use bytes::Bytes;
use rpc_core::store::StoreError;
use rpc_core::{Json, Str};
use serde::{Deserialize, Serialize};

use super::Cluster;
use super::relay::Kind;
use crate::auth::{Address, AuthError, Signature};
use crate::frame::SessionState;
use crate::hub::Owner;
use crate::net::HostRuntime;
use crate::net::sessions::Sessions;

/// The question for the status of a session.
#[derive(Serialize, Deserialize)]
struct Question {
    session_id: Str,
    /// Who asks: an address, the empty text for unsigned callers, nothing for callers that have
    /// proved nothing.
    asker: Option<Str>,
}

impl Cluster {
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
        let question = Question {
            session_id: session_id.into(),
            asker: asker.map(|asker| match asker {
                Owner::Unsigned => Str::from_static(""),
                Owner::Key(address) => address.to_string().into(),
            }),
        };
        let question = serde_json::to_vec(&question).ok()?;
        let asked = node.relays.ask(&owner, Kind::Question, 0, question.into());
        let answer = asked.await.ok()?;
        Json::string(std::str::from_utf8(&answer).ok()?)
            .parse()
            .ok()
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

/// Answers the question of another host. `None` if it does not decode.
pub(super) fn answer(runtime: &HostRuntime, question: &[u8]) -> Option<Bytes> {
    let question: Question = serde_json::from_slice(question).ok()?;
    let asker = match question.asker.as_deref() {
        None => None,
        Some("") => Some(Owner::Unsigned),
        Some(address) => Some(Owner::Key(Address::parse(address).ok()?)),
    };
    let status = runtime.read(|hub| hub.status(asker, Some(&question.session_id)));
    Some(Bytes::copy_from_slice(status.status.name().as_bytes()))
}
