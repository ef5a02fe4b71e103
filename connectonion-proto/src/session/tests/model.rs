//! The registry against a naive model, under random schedules.

use std::time::Duration;

use crate::auth::Address;
use crate::replay::{Entry, Next};
use crate::session::{
    Accepted, ConnId, Finished, Owner, Prompt, Removed, RemovedSession, RunId, SessionRegistry,
    SessionRequest,
};
use proptest::prelude::*;
use rpc_core::Instant;

use super::clocked::{config, input_at};
use super::naive::{
    GRACE, IDLE, IDS, MAX_RUNNING, MAX_SESSIONS, MAX_SOCKETS, Model, NAMES, Op, STUCK,
};

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let conn = 0..5_u64;
    // Counted from the newest run backwards.
    let run = prop_oneof![6 => Just(0_u64), 3 => Just(1), 1 => Just(2)];
    let owner = prop_oneof![4 => Just(1_u8), 1 => Just(2)];
    let name = prop_oneof![1 => Just(0_usize), 4 => Just(1), 2 => Just(2), 1 => Just(3)];
    let connect = (conn.clone(), owner, name, prop::option::of(0..3_usize));
    let op = prop_oneof![
        6 => connect.prop_map(|(conn, owner, name, last)| Op::Connect { conn, owner, name, last }),
        2 => conn.clone().prop_map(Op::Disconnect),
        2 => conn.clone().prop_map(Op::Heard),
        5 => conn.clone().prop_map(Op::Input),
        2 => (conn.clone(), any::<bool>()).prop_map(|(conn, named)| Op::Answer(conn, named)),
        6 => (run.clone(), 0..3_usize).prop_map(|(run, id)| Op::Event(run, id)),
        2 => run.clone().prop_map(Op::Ask),
        1 => run.clone().prop_map(Op::Take),
        3 => run.clone().prop_map(Op::Finish),
        2 => run.prop_map(Op::Fail),
        4 => (conn, 0..5_usize).prop_map(|(conn, frames)| Op::Read(conn, frames)),
        2 => prop_oneof![4 => 1..400_u64, 1 => 3000..4000_u64].prop_map(Op::Wait),
    ];
    prop::collection::vec(op, 1..120)
}

/// The registry, told the same and asked what happened.
struct Real {
    registry: SessionRegistry,
    now: Instant,
    random: u128,
    asked: u64,
    lines: Vec<String>,
}

impl Real {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn removed(&mut self, sort: bool) {
        let mut lines = Vec::new();
        while let Some(RemovedSession {
            session_id,
            why,
            sockets,
            run,
            unread,
            ..
        }) = self.registry.poll_removed()
        {
            let sockets: Vec<_> = sockets.iter().map(|conn| conn.0).collect();
            let run = run.map(|run| run.0);
            let why = match why {
                Removed::Idle => "Idle",
                Removed::Stuck => "Stuck",
                Removed::Evicted => "Evicted",
                other => panic!("{other:?}"),
            };
            let unread = unread.len();
            lines.push(format!(
                "removed {session_id} {why} {sockets:?} {run:?} {unread}"
            ));
        }
        if sort {
            lines.sort();
        }
        self.lines.append(&mut lines);
    }

    fn step(&mut self, op: Op, frames_so_far: impl Fn(u64) -> usize) {
        let now = self.now;
        let over = "over".to_owned();
        match op {
            Op::Connect {
                conn,
                owner,
                name,
                last,
            } => {
                self.random += 1;
                let request = SessionRequest::new(Owner::Key(Address::from_bytes([owner; 32])))
                    .with_session_id(NAMES[name])
                    .with_last_msg_id(last.map(|id| IDS[id]));
                let result = self
                    .registry
                    .connect(ConnId(conn), request, self.random, now);
                self.removed(false);
                self.line(match result {
                    Ok(it) => {
                        assert!(it.gap.is_none());
                        let (status, failed) = (it.status.name(), it.failure.is_some());
                        format!("connected {} {status} {failed}", it.session_id)
                    }
                    Err(error) => format!("refused {error:?}"),
                });
            }
            Op::Disconnect(conn) => {
                let left = self.registry.disconnect(ConnId(conn), now);
                let left = left.map_or("None".to_owned(), |id| id.to_string());
                self.line(format!("left {left}"));
            }
            Op::Heard(conn) => {
                self.registry.heard(ConnId(conn), now);
            }
            Op::Input(conn) => {
                let input = Prompt::new("text");
                let line = match input_at(&mut self.registry, ConnId(conn), input, now) {
                    Ok(Accepted::Started(run)) => format!("started {}", run.0),
                    Ok(Accepted::Queued(run)) => format!("queued {}", run.0),
                    Err(error) => format!("input {error:?}"),
                };
                self.line(line);
            }
            Op::Answer(conn, named) => {
                let conn = ConnId(conn);
                let session = self.registry.session_of(conn).cloned();
                let run = session.and_then(|id| self.registry.session(id.as_str())?.run);
                let first = run.and_then(|run| {
                    let state = self.registry.run_mut(run).ok()?;
                    state.requests.first().map(|(id, _)| id.to_string())
                });
                let named = named.then(|| first.unwrap_or("none".to_owned()));
                let kind = "APPROVAL_RESPONSE";
                let line = match self.registry.answer(conn, kind, named.as_deref()) {
                    Ok((run, id)) => {
                        assert!(named.is_none_or(|named| id == *named));
                        format!("answered {}", run.0)
                    }
                    Err(error) => match error {
                        crate::session::AgentError::Answer(error) => {
                            format!("answer {}", error.reason())
                        }
                        other => format!("answer {other:?}"),
                    },
                };
                self.line(line);
            }
            Op::Event(run, id) => {
                let text = format!("event {}", frames_so_far(run));
                let entry = Entry::event(text.into()).with_id(IDS[id]);
                if self.registry.event(RunId(run), entry, now).is_err() {
                    self.line(over);
                }
            }
            Op::Ask(run) => match self.registry.run_mut(RunId(run)) {
                Ok(state) => {
                    self.asked += 1;
                    let id = self.asked.to_string();
                    state.ask("APPROVAL_RESPONSE", &id).unwrap();
                }
                Err(_) => self.line(over),
            },
            Op::Take(run) => {
                let line = match self.registry.run_mut(RunId(run)) {
                    Ok(state) => format!("took {}", state.take_inputs().len()),
                    Err(_) => over,
                };
                self.line(line);
            }
            Op::Finish(run) => match self.registry.finish(RunId(run), "OUTPUT".into(), now) {
                Ok(Finished::Done) => {}
                Ok(Finished::More(inputs)) => self.line(format!("more {}", inputs.len())),
                Err(_) => self.line(over),
            },
            Op::Fail(run) => {
                let line = match self.registry.fail(RunId(run), "ERROR".into(), now) {
                    Ok(unread) => format!("failed {}", unread.len()),
                    Err(_) => over,
                };
                self.line(line);
            }
            Op::Read(conn, frames) => {
                for _ in 0..frames {
                    match self.registry.next_frame(ConnId(conn)) {
                        None => break,
                        Some(Next::Event(text) | Next::Closing(text)) => {
                            self.line(format!("frame {}", text.as_str()));
                        }
                        Some(Next::Gap(gap)) => panic!("{gap:?}"),
                    }
                }
            }
            Op::Wait(seconds) => {
                self.now += Duration::from_secs(seconds);
                self.registry.handle_timeout(self.now);
                self.removed(true);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_registry_does_what_the_model_does(ops in ops()) {
        let start = Instant::now();
        let config = config(|it| {
            it.idle_timeout = Duration::from_secs(IDLE);
            it.grace = Duration::from_secs(GRACE);
            it.stuck_timeout = Duration::from_secs(STUCK);
            (it.max_sessions, it.max_sockets) = (MAX_SESSIONS, MAX_SOCKETS);
            it.max_running = MAX_RUNNING;
        });
        let mut real = Real {
            registry: SessionRegistry::new(config, start),
            now: start,
            random: 0,
            asked: 0,
            lines: Vec::new(),
        };
        let mut model = Model::default();
        for op in ops {
            let op = op.meaning(model.runs);
            real.step(op, |run| {
                let session = model.sessions.iter().find(|it| it.run == Some(run));
                session.map_or(0, |it| it.frames.len())
            });
            model.step(op);
            prop_assert_eq!(&real.lines, &model.lines, "after {:?}", op);
            real.lines.clear();
            model.lines.clear();
            prop_assert_eq!(real.registry.len(), model.sessions.len());
            let running = model.sessions.iter().filter(|it| it.run.is_some()).count();
            prop_assert_eq!(real.registry.running(), running);
            let ends = model.sessions.iter().map(|it| it.ends).min();
            let ends = ends.map(|ends| start + Duration::from_secs(ends));
            prop_assert_eq!(real.registry.poll_timeout(), ends);
            // Whoever has frames to take was told so, or has begun to take them.
            while let Some(conn) = real.registry.poll_ready() {
                prop_assert!(model.seats.iter().any(|seat| seat.0 == conn.0));
            }
            // Nothing is kept that everybody has.
            if model.sessions.iter().all(|it| it.run.is_none() && it.sockets.is_empty()) {
                prop_assert_eq!(real.registry.log_bytes(), 0);
            }
        }
    }

    #[test]
    fn every_frame_is_announced(ops in ops()) {
        let now = Instant::now();
        let mut registry = SessionRegistry::new(config(|_| {}), now);
        let conn = ConnId(0);
        let connected = registry.connect(conn, SessionRequest::new(Owner::Unsigned), 1, now).unwrap();
        let id = connected.session_id;
        let mut read = 0;
        let mut written = 0;
        let mut run = None;
        for op in ops {
            match op {
                Op::Input(_) => {
                    let input = Prompt::new("text");
                    if let Ok(Accepted::Started(started)) = input_at(&mut registry, conn, input, now) {
                        run = Some(started);
                    }
                }
                Op::Event(..) | Op::Take(_) => {
                    if let Some(run) = run {
                        registry.event(run, Entry::event("e".into()), now).unwrap();
                        written += 1;
                    }
                }
                Op::Fail(_) => {
                    if let Some(run) = run.take() {
                        registry.fail(run, "ERROR".into(), now).unwrap();
                        written += 1;
                    }
                }
                Op::Connect { .. } => {
                    let same = SessionRequest::new(Owner::Unsigned).with_session_id(Some(id.as_str()));
                    if run.is_none() {
                        registry.connect(conn, same, 1, now).unwrap();
                    }
                }
                _ => {
                    // Read only when told to, and then all.
                    while registry.poll_ready().is_some() {
                        while registry.next_frame(conn).is_some() {
                            read += 1;
                        }
                    }
                    prop_assert_eq!(read, written);
                }
            }
        }
    }
}
