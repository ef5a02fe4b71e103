//! Ten thousand sessions, a thousand of them running, and storms of reconnects.

use std::time::Duration;

use crate::auth::Address;
use crate::frame::SessionState;
use crate::replay::Entry;
use crate::session::{
    Accepted, ConnId, Finished, Owner, Prompt, RegistryConfig, RunId, SessionRegistry,
    SessionRequest,
};
use rpc_core::Instant;

const SESSIONS: usize = 10_000;
const RUNNING: usize = 1_000;
const EVENTS: usize = 20;

struct Crowd {
    registry: SessionRegistry,
    now: Instant,
    /// The session ids, and the socket that each client has now.
    clients: Vec<(String, ConnId)>,
    sockets: u64,
}

fn owner(client: usize) -> Owner {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&client.to_le_bytes());
    Owner::Key(Address::from_bytes(key))
}

impl Crowd {
    fn new() -> Self {
        let now = Instant::now();
        let mut registry = SessionRegistry::new(RegistryConfig::default(), now);
        let clients = (0..SESSIONS).map(|client| {
            let conn = ConnId(client as u64);
            let random = client as u128 + 1;
            let connected = registry.connect(conn, SessionRequest::new(owner(client)), random, now);
            (connected.unwrap().session_id.to_string(), conn)
        });
        Self {
            clients: clients.collect(),
            registry,
            now,
            sockets: SESSIONS as u64,
        }
    }

    fn start(&mut self) -> Vec<RunId> {
        let (registry, now) = (&mut self.registry, self.now);
        let runs = self.clients.iter().step_by(SESSIONS / RUNNING);
        let start = |(_, conn): &(String, ConnId)| {
            let input = Prompt::new("hello");
            match super::clocked::input_at(registry, *conn, input, now) {
                Ok(Accepted::Started(run)) => run,
                other => panic!("{other:?}"),
            }
        };
        runs.map(start).collect()
    }

    /// Everybody is cut off and comes back at once.
    fn storm(&mut self) -> (usize, usize) {
        for (_, conn) in &self.clients {
            self.registry.disconnect(*conn, self.now).unwrap();
        }
        let (mut running, mut frames) = (0, 0);
        for (client, (id, conn)) in self.clients.iter_mut().enumerate() {
            *conn = ConnId(self.sockets);
            self.sockets += 1;
            let request = SessionRequest::new(owner(client)).with_session_id(Some(id));
            let connected = self.registry.connect(*conn, request, 0, self.now).unwrap();
            assert_eq!(connected.session_id.as_str(), id);
            assert_ne!(connected.status, SessionState::New);
            running += usize::from(connected.status == SessionState::Running);
            while self.registry.next_frame(*conn).is_some() {
                frames += 1;
            }
        }
        while self.registry.poll_ready().is_some() {}
        (running, frames)
    }
}

#[test]
fn a_crowd_runs_is_cut_off_and_comes_back() {
    let mut crowd = Crowd::new();
    let runs = crowd.start();
    let text = rpc_core::Text::from("x".repeat(200));
    for _ in 0..EVENTS {
        for run in &runs {
            let entry = Entry::event(text.clone());
            crowd.registry.event(*run, entry, crowd.now).unwrap();
        }
    }
    for _ in 0..5 {
        assert_eq!(crowd.storm(), (RUNNING, RUNNING * EVENTS));
    }
    assert_eq!(crowd.registry.log_bytes(), RUNNING * EVENTS * 200);
    for run in runs {
        let finish = crowd.registry.finish(run, "OUTPUT".into(), crowd.now);
        assert_eq!(finish, Ok(Finished::Done));
    }
    assert_eq!(crowd.storm(), (0, 0));
    assert_eq!(crowd.registry.log_bytes(), 0);
    assert_eq!(crowd.registry.len(), SESSIONS);
    crowd.now += Duration::from_secs(600);
    crowd.registry.handle_timeout(crowd.now);
    assert!(crowd.registry.len() == 0);
}

#[test]
fn who_answers_stays_and_who_does_not_goes() {
    let mut crowd = Crowd::new();
    for minute in 0..30 {
        crowd.now += Duration::from_secs(60);
        for (_, conn) in crowd.clients.iter().take(SESSIONS / 2) {
            assert!(crowd.registry.heard(*conn, crowd.now), "minute {minute}");
        }
        crowd.registry.handle_timeout(crowd.now);
    }
    assert_eq!(crowd.registry.len(), SESSIONS / 2);
}
