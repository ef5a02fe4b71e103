//! A registry with a clock, for tests.

use std::time::Duration;

use crate::auth::Address;
use crate::frame::SessionState;
use crate::replay::{Entry, Next};
use crate::session::event::{ConnectError, Joined};
use crate::session::{
    Accepted, ConnId, Finished, InputError, Owner, Prompt, RegistryConfig, Removed, RunId,
    SessionRegistry, SessionRequest,
};
use rpc_core::Instant;

pub const ALICE: Owner = Owner::Key(Address::from_bytes([1; 32]));
pub const BOB: Owner = Owner::Key(Address::from_bytes([2; 32]));
pub const MINUTE: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);

/// Hands the prompt of a socket to its session.
pub fn input_at(
    registry: &mut SessionRegistry,
    conn: ConnId,
    prompt: Prompt,
    now: Instant,
) -> Result<Accepted, InputError> {
    let id = registry.session_of(conn).cloned();
    registry.input_to(&id.ok_or(InputError::NotConnected)?, prompt, now)
}

/// A registry with a clock, and what it told so far.
pub struct HostRuntime {
    pub registry: SessionRegistry,
    pub now: Instant,
    pub sockets: u64,
    pub random: u128,
}

impl HostRuntime {
    pub fn new() -> Self {
        Self::with(RegistryConfig::default())
    }

    pub fn with(config: RegistryConfig) -> Self {
        let now = Instant::now();
        Self {
            registry: SessionRegistry::new(config, now),
            now,
            sockets: 0,
            random: 0,
        }
    }

    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        self.registry.handle_timeout(self.now);
    }

    pub fn try_connect(
        &mut self,
        request: SessionRequest<'_>,
    ) -> Result<(ConnId, Joined), ConnectError> {
        self.sockets += 1;
        self.random += 1;
        let conn = ConnId(self.sockets);
        let connected = self
            .registry
            .connect(conn, request, self.random, self.now)?;
        Ok((conn, connected))
    }

    pub fn connect(&mut self, request: SessionRequest<'_>) -> (ConnId, Joined) {
        self.try_connect(request).unwrap()
    }

    /// A session of Alice and a socket at it.
    pub fn alice(&mut self) -> (ConnId, String) {
        let (conn, connected) = self.connect(SessionRequest::new(ALICE));
        (conn, connected.session_id.to_string())
    }

    pub fn back(&mut self, id: &str) -> (ConnId, Joined) {
        self.connect(SessionRequest::new(ALICE).with_session_id(Some(id)))
    }

    pub fn input(&mut self, conn: ConnId, prompt: &str) -> Result<Accepted, InputError> {
        let input = Prompt::new(prompt);
        input_at(&mut self.registry, conn, input, self.now)
    }

    pub fn start(&mut self, conn: ConnId) -> RunId {
        match self.input(conn, "hello") {
            Ok(Accepted::Started(run)) => run,
            other => panic!("{other:?}"),
        }
    }

    pub fn event(&mut self, run: RunId, id: &str) {
        let entry = Entry::event(id.into()).with_id(id);
        self.registry.event(run, entry, self.now).unwrap();
    }

    pub fn finish(&mut self, run: RunId) {
        let finish = self.registry.finish(run, "OUTPUT".into(), self.now);
        assert_eq!(finish, Ok(Finished::Done));
    }

    pub fn fail(&mut self, run: RunId) -> Vec<Prompt> {
        let unread = self.registry.fail(run, "ERROR".into(), self.now);
        unread.unwrap()
    }

    /// What a socket can take now.
    pub fn frames(&mut self, conn: ConnId) -> Vec<String> {
        let next = || self.registry.next_frame(conn);
        let frames = std::iter::from_fn(next).map(|next| match next {
            Next::Event(text) | Next::Closing(text) => text.as_str().to_owned(),
            Next::Gap(gap) => format!("gap {}", gap.missed),
        });
        frames.collect()
    }

    pub fn removed(&mut self) -> Option<(String, Removed, Vec<ConnId>, Option<RunId>)> {
        let removed = self.registry.poll_removed()?;
        let session_id = removed.session_id.to_string();
        Some((session_id, removed.why, removed.sockets, removed.run))
    }

    pub fn status(&self, id: &str) -> Option<SessionState> {
        self.registry.status(Some(ALICE), id)
    }
}

impl<'a> SessionRequest<'a> {
    pub fn new(owner: Owner) -> Self {
        Self {
            owner,
            session_id: None,
            last_msg_id: None,
            stored_owner: None,
        }
    }

    pub fn with_session_id(mut self, id: Option<&'a str>) -> Self {
        self.session_id = id;
        self
    }

    pub fn with_last_msg_id(mut self, id: Option<&'a str>) -> Self {
        self.last_msg_id = id;
        self
    }

    pub fn with_stored_owner(mut self, owner: Option<Owner>) -> Self {
        self.stored_owner = owner;
        self
    }
}

/// A configuration with these changes.
pub fn config(set: impl FnOnce(&mut RegistryConfig)) -> RegistryConfig {
    let mut config = RegistryConfig::default();
    set(&mut config);
    config
}
