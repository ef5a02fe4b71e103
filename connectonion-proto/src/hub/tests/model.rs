//! The hub against a naive model, under random schedules.

use std::time::Duration;

use crate::auth::Address;
use crate::hub::{ConnId, HubEvent, Owner, Prompt, Reply, RunId};
use proptest::prelude::*;

use super::naive::{
    GRACE, IDLE, IDS, MAX_RUNNING, MAX_SESSIONS, MAX_SOCKETS, Model, NAMES, Op, STUCK,
};
use super::play::{Accepted, Ask, Play, config, shown};

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
        2 => conn.clone().prop_map(Op::Touch),
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

/// The hub, told the same and asked what happened.
struct Real {
    play: Play,
    /// The runs, in the order in which they began.
    runs: Vec<RunId>,
    lines: Vec<String>,
}

impl Real {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// The run that the model gives this number.
    fn run(&self, number: u64) -> RunId {
        let place = usize::try_from(number).ok();
        let run = place.and_then(|place| self.runs.get(place));
        run.copied().unwrap_or(RunId(u64::MAX))
    }

    fn number(&self, run: RunId) -> usize {
        self.runs.iter().position(|it| *it == run).unwrap()
    }

    /// Writes down what has happened.
    fn look(&mut self) {
        while let Some(event) = self.play.reported.pop_front() {
            let line = match event {
                HubEvent::Start { run, .. } => {
                    self.runs.push(run);
                    format!("started {}", self.runs.len() - 1)
                }
                HubEvent::Told(run) => format!("queued {}", self.number(run)),
                HubEvent::Cancel(run) => format!("cancelled {}", self.number(run)),
                other => panic!("{other:?}"),
            };
            self.line(line);
        }
        let removed = std::mem::take(&mut self.play.removed).into_iter();
        let noted = std::mem::take(&mut self.play.noted).into_iter();
        self.lines.extend(removed.map(|id| format!("removed {id}")));
        self.lines
            .extend(noted.map(|inputs| format!("noted {inputs}")));
        while let Some((conn, reply)) = self.play.replies.pop_front() {
            match reply {
                Reply::Frame(text) if shown(text.as_str()) == "ERROR" => {
                    self.line(format!("told {}", conn.0));
                }
                Reply::Refuse(error) => self.line(format!("refused {}", error.message)),
                _ => {}
            }
        }
    }

    fn step(&mut self, op: Op, frames_so_far: impl Fn(u64) -> usize) {
        let over = "over".to_owned();
        let play = &mut self.play;
        match op {
            Op::Connect {
                conn,
                owner,
                name,
                last,
            } => {
                let ask = Ask::new(Owner::Key(Address::from_bytes([owner; 32])))
                    .with_session_id(NAMES[name])
                    .with_last_msg_id(last.map(|id| IDS[id]));
                let joined = play.connect_at(ConnId(conn), ask);
                play.replies.clear();
                self.line(match joined {
                    Ok(it) => {
                        let (status, failed) = (it.status.name(), it.failure.is_some());
                        format!("connected {} {status} {failed}", it.session_id)
                    }
                    Err(error) => format!("refused {error}"),
                });
            }
            Op::Disconnect(conn) => play.disconnect(ConnId(conn)),
            Op::Touch(conn) => play.touch(ConnId(conn)),
            Op::Input(conn) => {
                play.hub
                    .input(ConnId(conn), Prompt::new("text"), None, play.now);
                play.settle();
            }
            Op::Answer(conn, named) => {
                let conn = ConnId(conn);
                let session = play.hub.session_of(conn).cloned();
                let session = session.and_then(|id| play.hub.sessions.get(id.as_str()));
                let run = session.and_then(|session| session.run.as_ref());
                let first = run.and_then(|run| Some(run.requests.first()?.0.to_string()));
                let named = named.then(|| first.unwrap_or("none".to_owned()));
                let line = match play.answer(conn, named.as_deref()) {
                    Ok((run, id)) => {
                        assert!(named.is_none_or(|named| id == *named));
                        format!("answered {}", self.number(run))
                    }
                    Err(error) => format!("answer {error}"),
                };
                self.line(line);
            }
            Op::Event(run, id) => {
                let text = format!("event {}", frames_so_far(run));
                let run = self.run(run);
                let kind = crate::frame::Thinking::new(text);
                let kind = crate::frame::EventKind::Thinking(kind);
                let play = &mut self.play;
                if play.hub.emit(run, kind, Some(IDS[id]), play.now).is_err() {
                    self.line(over);
                }
            }
            Op::Ask(run) => {
                if self.play.ask(self.run(run)).is_err() {
                    self.line(over);
                }
            }
            Op::Take(run) => {
                let run = self.run(run);
                let taken = self.play.hub.next_inputs(run, self.play.now);
                self.line(taken.map_or(over, |taken| format!("took {}", taken.len())));
            }
            Op::Finish(run) => match self.play.try_finish(self.run(run)) {
                Ok(more) if more.is_empty() => {}
                Ok(more) => self.line(format!("more {}", more.len())),
                Err(_) => self.line(over),
            },
            Op::Fail(run) => {
                if self.play.fail(self.run(run)).is_err() {
                    self.line(over);
                }
            }
            Op::Read(conn, frames) => {
                for _ in 0..frames {
                    let Some(text) = play.hub.next_frame(ConnId(conn), play.now) else {
                        break;
                    };
                    self.lines.push(format!("frame {}", shown(text.as_str())));
                }
            }
            Op::Wait(seconds) => play.wait(Duration::from_secs(seconds)),
        }
        self.look();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_registry_agrees_with_the_model(ops in ops()) {
        let config = config(|it| {
            it.idle_timeout = Duration::from_secs(IDLE);
            it.grace = Duration::from_secs(GRACE);
            it.stuck_timeout = Duration::from_secs(STUCK);
            (it.max_sessions, it.max_sockets) = (MAX_SESSIONS, MAX_SOCKETS);
            it.max_running = MAX_RUNNING;
        });
        let mut real = Real {
            play: Play::with(config),
            runs: Vec::new(),
            lines: Vec::new(),
        };
        let start = real.play.now.instant;
        let mut model = Model::default();
        for op in ops {
            let op = op.meaning(model.runs);
            real.step(op, |run| {
                let session = model.sessions.iter().find(|it| it.run == Some(run));
                session.map_or(0, |it| it.frames.len())
            });
            model.step(op);
            // Frames have an order, and what else happens at once has none.
            if !matches!(op, Op::Read(..)) {
                real.lines.sort();
                model.lines.sort();
            }
            prop_assert_eq!(&real.lines, &model.lines, "after {:?}", op);
            real.lines.clear();
            model.lines.clear();
            let hub = &mut real.play.hub;
            prop_assert_eq!(hub.sessions(), model.sessions.len());
            let running = model.sessions.iter().filter(|it| it.run.is_some()).count();
            prop_assert_eq!(hub.running(), running);
            let ends = model.sessions.iter().map(|it| it.ends).min();
            let ends = ends.map(|ends| start + Duration::from_secs(ends));
            prop_assert_eq!(hub.poll_timeout(), ends);
            // Whoever has frames to take was told so, or has begun to take them.
            while let Some(conn) = hub.poll_ready() {
                prop_assert!(model.attached.iter().any(|entry| entry.0 == conn.0));
            }
            // Nothing is kept that everyone has.
            if model.sessions.iter().all(|it| it.run.is_none() && it.sockets.is_empty()) {
                prop_assert_eq!(hub.log_bytes(), 0);
            }
        }
    }

    #[test]
    fn every_frame_is_announced(ops in ops()) {
        let mut play = Play::new();
        let (conn, id) = play.connect(Ask::new(Owner::Unsigned));
        let id = id.session_id;
        let (mut read, mut written) = (0, 0);
        let mut run = None;
        for op in ops {
            match (op, run) {
                (Op::Input(_), None) => {
                    if let Ok(Accepted::Started(started)) = play.input(conn, "text") {
                        run = Some(started);
                        written += 1;
                    }
                }
                (Op::Event(..) | Op::Take(_), Some(run)) => {
                    play.event(run, "e");
                    written += 1;
                }
                (Op::Fail(_), Some(failed)) => {
                    play.fail(failed).unwrap();
                    run = None;
                    written += 1;
                }
                (Op::Connect { .. }, None) => {
                    let same = Ask::new(Owner::Unsigned).with_session_id(Some(id.as_str()));
                    play.connect_at(conn, same).unwrap();
                }
                (Op::Read(..) | Op::Wait(_) | Op::Touch(_), _) => {
                    // Read only when told to, and then all.
                    while play.hub.poll_ready().is_some() {
                        while play.hub.next_frame(conn, play.now).is_some() {
                            read += 1;
                        }
                    }
                    prop_assert_eq!(read, written);
                }
                _ => {}
            }
        }
    }
}
