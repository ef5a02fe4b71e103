//! [`Clients`]: the registered clients, their names and their connections.

use std::collections::{BTreeMap, HashMap};

use rpc_core::Str;

use super::ConnId;
use crate::direct::Direct;
use crate::error::RegistrationError;
use crate::frame::Registration;
use crate::id::ClientId;
use crate::router::Candidate;
use crate::validate::{self, Side};

/// A registered client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisteredClient {
    /// Its connection.
    pub conn: ConnId,
    /// The client's id.
    pub id: ClientId,
    /// The client's registration.
    pub registration: Registration,
}

/// The registered clients.
#[derive(Default)]
pub(super) struct Clients {
    /// By number, which grows: the order of registration.
    by_number: BTreeMap<u64, RegisteredClient>,
    by_conn: HashMap<ConnId, u64>,
    by_name: HashMap<Str, u64>,
    next: u64,
    /// What routers are told of them.
    candidates: BTreeMap<u64, Candidate>,
}

impl Clients {
    /// Adds a client and returns its copy of its name. `id` is called only if the client is
    /// accepted.
    pub(super) fn register(
        &mut self,
        conn: ConnId,
        registration: &Registration,
        id: impl FnOnce() -> ClientId,
    ) -> Result<(ClientId, Str), RegistrationError> {
        if self.by_conn.contains_key(&conn) {
            return Err(RegistrationError::already_registered());
        }
        validate::registration(registration, Side::Server)?;
        if self.by_name.contains_key(&registration.name) {
            return Err(RegistrationError::duplicate_name(&registration.name));
        }
        let number = self.next;
        self.next += 1;
        let (id, registration) = (id(), registration.clone());
        let name = registration.name.clone();
        self.by_conn.insert(conn, number);
        self.by_name.insert(name.clone(), number);
        self.candidates.insert(number, Candidate::of(&registration));
        let client = RegisteredClient {
            conn,
            id: id.clone(),
            registration,
        };
        self.by_number.insert(number, client);
        Ok((id, name))
    }

    /// Removes the client of a connection.
    pub(super) fn remove(&mut self, conn: ConnId) -> Option<RegisteredClient> {
        let number = self.by_conn.remove(&conn)?;
        self.candidates.remove(&number);
        let client = self.by_number.remove(&number)?;
        self.by_name.remove(&client.registration.name);
        Some(client)
    }

    pub(super) fn of_conn(&self, conn: ConnId) -> Option<&RegisteredClient> {
        self.by_number.get(self.by_conn.get(&conn)?)
    }

    pub(super) fn of_name(&self, name: &str) -> Option<&RegisteredClient> {
        self.by_number.get(self.by_name.get(name)?)
    }

    /// Returns the client that a text is addressed to.
    pub(super) fn meant_by(&self, direct: &Direct<'_>) -> Option<&RegisteredClient> {
        self.of_name(direct.name).or_else(|| {
            let names = self.by_number.values().map(|one| &*one.registration.name);
            self.of_name(direct.client(names)?)
        })
    }

    /// Returns the clients in the order of registration.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &RegisteredClient> {
        self.by_number.values()
    }

    /// Returns the current candidates in the order of registration.
    pub(super) fn candidates(&self) -> impl ExactSizeIterator<Item = &Candidate> {
        self.candidates.values()
    }
}
