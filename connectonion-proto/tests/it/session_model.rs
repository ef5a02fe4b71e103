//! The registry against a naive model, under random schedules.

use std::time::{Duration, Instant};

use connectonion_proto::replay::{Entry, Next};
use connectonion_proto::session::{
    Accepted, ConnId, Connect, Finish, Owner, RegistryConfig, RegistryEvent, Removed, RequestKind,
    RunId, RuntimeInput, SessionRegistry,
};
use proptest::prelude::*;

const IDLE: u64 = 600;
const GRACE: u64 = 300;
const STUCK: u64 = 3600;
const MAX_SESSIONS: usize = 4;
const MAX_SOCKETS: usize = 3;
const MAX_RUNNING: usize = 2;
const NAMES: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];
const IDS: [&str; 3] = ["x", "y", "z"];

#[derive(Clone, Copy, Debug)]
enum Op {
    Connect {
        conn: u64,
        owner: u8,
        name: usize,
        last: Option<usize>,
    },
    Disconnect(u64),
    Heard(u64),
    Input(u64),
    Answer(u64, bool),
    Event(u64, usize),
    Ask(u64),
    Take(u64),
    Finish(u64),
    Fail(u64),
    Read(u64, usize),
    Wait(u64),
}

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

impl Op {
    /// With the number of the run that is meant.
    fn meaning(self, runs: u64) -> Self {
        // Of a run that never was, too.
        let number = |back: u64| runs.wrapping_sub(back + 1);
        match self {
            Self::Event(back, id) => Self::Event(number(back), id),
            Self::Ask(back) => Self::Ask(number(back)),
            Self::Take(back) => Self::Take(number(back)),
            Self::Finish(back) => Self::Finish(number(back)),
            Self::Fail(back) => Self::Fail(number(back)),
            other => other,
        }
    }
}

struct Session {
    name: String,
    owner: u8,
    sockets: Vec<u64>,
    run: Option<u64>,
    used: bool,
    /// Every frame there ever was: its text, and its id if it is an event.
    frames: Vec<(String, Option<&'static str>)>,
    run_from: usize,
    inputs: usize,
    asked: usize,
    failure: Option<usize>,
    ends: u64,
    left: Option<u64>,
}

/// Everything in lists, looked through from the front.
struct Model {
    now: u64,
    sessions: Vec<Session>,
    /// Which session a socket is at, by name, and how many of its frames it has.
    seats: Vec<(u64, String, usize)>,
    runs: u64,
    lefts: u64,
    random: u128,
    /// What is expected.
    lines: Vec<String>,
}

impl Model {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn seat(&mut self, conn: u64) -> Option<(usize, usize)> {
        let seat = self.seats.iter().position(|seat| seat.0 == conn)?;
        let name = &self.seats[seat].1;
        let session = self.sessions.iter().position(|it| it.name == *name)?;
        Some((seat, session))
    }

    fn at_run(&mut self, run: u64) -> Option<usize> {
        self.sessions.iter().position(|it| it.run == Some(run))
    }

    fn rest(&mut self, at: usize) {
        let session = &mut self.sessions[at];
        let wait = match (session.run, session.sockets.is_empty()) {
            (Some(_), _) => STUCK,
            (None, true) => GRACE,
            (None, false) => IDLE,
        };
        session.ends = self.now + wait;
        if session.run.is_some() || !session.sockets.is_empty() {
            session.left = None;
        } else if session.left.is_none() {
            session.left = Some(self.lefts);
            self.lefts += 1;
        }
    }

    fn remove(&mut self, at: usize, why: &str) {
        let session = self.sessions.remove(at);
        self.seats.retain(|seat| seat.1 != session.name);
        let (sockets, run, unread) = (session.sockets, session.run, session.inputs);
        let name = session.name;
        self.line(format!("removed {name} {why} {sockets:?} {run:?} {unread}"));
    }

    fn sit(&mut self, conn: u64, at: usize, last: Option<&str>, is_new: bool) {
        let known = self.seat(conn).map(|(seat, _)| self.seats[seat].2);
        let session = &mut self.sessions[at];
        let mut place = known.unwrap_or(session.frames.len());
        let mut failure = None;
        let status = if session.run.is_some() {
            let run = session.frames.iter().enumerate().skip(session.run_from);
            let mut shown = run.filter(|(_, frame)| frame.1.is_some() && frame.1 == last);
            place = shown.next().map_or(session.run_from, |(at, _)| at + 1);
            "running"
        } else {
            if known.is_none() {
                failure = session.failure.take();
            }
            if is_new { "new" } else { "connected" }
        };
        if !session.sockets.contains(&conn) {
            session.sockets.push(conn);
        }
        let name = session.name.clone();
        self.seats.retain(|seat| seat.0 != conn);
        self.seats.push((conn, name.clone(), place));
        let failed = failure.is_some();
        self.line(format!("connected {name} {status} {failed}"));
        self.rest(at);
    }

    fn connect(&mut self, conn: u64, owner: u8, name: Option<&str>, last: Option<&str>) {
        self.random += 1;
        let own = format!("00000000-0000-4000-8000-{:012x}", self.random);
        if let Some((_, at)) = self.seat(conn) {
            let session = &self.sessions[at];
            let same = name.map_or(!session.used, |name| session.name == name);
            if session.owner == owner && same {
                self.sit(conn, at, last, false);
            } else {
                self.line("refused AlreadyConnected");
            }
            return;
        }
        let theirs = |name: &&str| {
            let mut all = self.sessions.iter();
            all.all(|it| it.name != *name || it.owner == owner)
        };
        let name = name.filter(theirs).map_or(own, str::to_owned);
        if let Some(at) = self.sessions.iter().position(|it| it.name == name) {
            if self.sessions[at].sockets.len() >= MAX_SOCKETS {
                self.line("refused TooManySockets");
            } else {
                self.sit(conn, at, last, false);
            }
            return;
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let left = |at: &usize| self.sessions[*at].left;
            let places = (0..self.sessions.len()).filter(|at| left(at).is_some());
            let Some(oldest) = places.min_by_key(left) else {
                self.line("refused TooManySessions");
                return;
            };
            self.remove(oldest, "Evicted");
        }
        self.sessions.push(Session {
            name,
            owner,
            sockets: Vec::new(),
            run: None,
            used: false,
            frames: Vec::new(),
            run_from: 0,
            inputs: 0,
            asked: 0,
            failure: None,
            ends: 0,
            left: None,
        });
        self.sit(conn, self.sessions.len() - 1, last, true);
    }

    fn input(&mut self, conn: u64) {
        let Some((_, at)) = self.seat(conn) else {
            return self.line("input NotConnected");
        };
        let running = self.sessions.iter().filter(|it| it.run.is_some()).count();
        let session = &mut self.sessions[at];
        if let Some(run) = session.run {
            session.inputs += 1;
            self.line(format!("queued {run}"));
        } else if running >= MAX_RUNNING {
            return self.line("input TooManyRuns");
        } else {
            let run = self.runs;
            self.runs += 1;
            session.run = Some(run);
            session.used = true;
            session.failure = None;
            session.run_from = session.frames.len();
            self.line(format!("started {run}"));
        }
        self.rest(at);
    }

    fn end(&mut self, at: usize, text: &str) {
        let session = &mut self.sessions[at];
        session.frames.push((text.to_owned(), None));
        session.run = None;
        session.inputs = 0;
        session.asked = 0;
        self.rest(at);
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Connect {
                conn,
                owner,
                name,
                last,
            } => self.connect(conn, owner, NAMES[name], last.map(|id| IDS[id])),
            Op::Disconnect(conn) => {
                let Some((seat, at)) = self.seat(conn) else {
                    return self.line("left None");
                };
                self.seats.remove(seat);
                let session = &mut self.sessions[at];
                session.sockets.retain(|one| *one != conn);
                let line = format!("left {}", session.name);
                if session.sockets.is_empty() && session.run.is_none() {
                    self.rest(at);
                }
                self.line(line);
            }
            Op::Heard(conn) => {
                if let Some((_, at)) = self.seat(conn) {
                    self.rest(at);
                }
            }
            Op::Input(conn) => self.input(conn),
            Op::Answer(conn, named) => {
                let Some((_, at)) = self.seat(conn) else {
                    return self.line("answer NotConnected");
                };
                let session = &mut self.sessions[at];
                // The questions of a run are called 0, 1 ..; the first one is named.
                let line = match (session.run, session.asked, named) {
                    (None, ..) | (_, 0, _) => "answer stale".to_owned(),
                    (_, 2.., false) => "answer request_id_required".to_owned(),
                    (Some(run), ..) => {
                        session.asked -= 1;
                        format!("answered {run}")
                    }
                };
                self.line(line);
            }
            Op::Event(run, id) => match self.at_run(run) {
                Some(at) => {
                    let session = &mut self.sessions[at];
                    let text = format!("event {}", session.frames.len());
                    session.frames.push((text, Some(IDS[id])));
                    self.rest(at);
                }
                None => self.line("over"),
            },
            Op::Ask(run) => match self.at_run(run) {
                Some(at) => self.sessions[at].asked += 1,
                None => self.line("over"),
            },
            Op::Take(run) => match self.at_run(run) {
                Some(at) => {
                    let taken = std::mem::take(&mut self.sessions[at].inputs);
                    self.line(format!("took {taken}"));
                }
                None => self.line("over"),
            },
            Op::Finish(run) => match self.at_run(run) {
                Some(at) if self.sessions[at].inputs > 0 => {
                    let more = std::mem::take(&mut self.sessions[at].inputs);
                    self.line(format!("more {more}"));
                }
                Some(at) => self.end(at, "OUTPUT"),
                None => self.line("over"),
            },
            Op::Fail(run) => match self.at_run(run) {
                Some(at) => {
                    let unread = self.sessions[at].inputs;
                    self.line(format!("failed {unread}"));
                    self.end(at, "ERROR");
                    self.sessions[at].failure = Some(self.sessions[at].frames.len());
                }
                None => self.line("over"),
            },
            Op::Read(conn, frames) => {
                let Some((seat, at)) = self.seat(conn) else {
                    return;
                };
                for _ in 0..frames {
                    let place = self.seats[seat].2;
                    let Some((text, _)) = self.sessions[at].frames.get(place).cloned() else {
                        break;
                    };
                    self.seats[seat].2 += 1;
                    if self.sessions[at].failure == Some(place + 1) {
                        self.sessions[at].failure = None;
                    }
                    self.line(format!("frame {text}"));
                }
            }
            Op::Wait(seconds) => {
                self.now += seconds;
                // The earliest first; equal ones in the order in which they got their time, which
                // the model does not know: the lines are sorted.
                let mut lines = std::mem::take(&mut self.lines);
                while let Some(at) = self.sessions.iter().position(|it| it.ends <= self.now) {
                    let stuck = self.sessions[at].run.is_some();
                    self.remove(at, if stuck { "Stuck" } else { "Idle" });
                }
                self.lines.sort();
                lines.append(&mut self.lines);
                self.lines = lines;
            }
        }
    }
}

/// The registry, told the same and asked what happened.
struct Real {
    registry: SessionRegistry,
    now: Instant,
    random: u128,
    events: usize,
    asked: u64,
    lines: Vec<String>,
}

impl Real {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn removed(&mut self, sort: bool) {
        let mut lines = Vec::new();
        while let Some(RegistryEvent::Removed {
            session_id,
            why,
            sockets,
            run,
            unread,
            ..
        }) = self.registry.poll_event()
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
                let request = Connect::new(Owner::Key([owner; 32]))
                    .with_session_id(NAMES[name])
                    .with_last_msg_id(last.map(|id| IDS[id]));
                let result = self
                    .registry
                    .connect(ConnId(conn), request, self.random, now);
                self.removed(false);
                self.line(match result {
                    Ok(it) => {
                        assert!(it.gap.is_none());
                        let (status, failed) = (it.status.as_str(), it.failure.is_some());
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
                let input = RuntimeInput::new("i", "text");
                let line = match self.registry.input(ConnId(conn), input, now) {
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
                    state.requests().next().map(|(id, _)| id.to_owned())
                });
                let named = named.then(|| first.unwrap_or("none".to_owned()));
                let kind = RequestKind::Approval;
                let line = match self.registry.answer(conn, kind, named.as_deref()) {
                    Ok((run, id)) => {
                        assert!(named.is_none_or(|named| id == *named));
                        format!("answered {}", run.0)
                    }
                    Err(error) => match error {
                        connectonion_proto::session::AgentError::Answer(error) => {
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
                self.events += 1;
            }
            Op::Ask(run) => match self.registry.run_mut(RunId(run)) {
                Ok(state) => {
                    self.asked += 1;
                    let id = self.asked.to_string();
                    state.ask(RequestKind::Approval, &id).unwrap();
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
                Ok(Finish::Done) => {}
                Ok(Finish::More(inputs)) => self.line(format!("more {}", inputs.len())),
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
        let config = RegistryConfig::default()
            .with_idle_timeout(Duration::from_secs(IDLE))
            .with_grace(Duration::from_secs(GRACE))
            .with_stuck_timeout(Duration::from_secs(STUCK))
            .with_max_sessions(MAX_SESSIONS)
            .with_max_sockets(MAX_SOCKETS)
            .with_max_running(MAX_RUNNING);
        let mut real = Real {
            registry: SessionRegistry::new(config, start),
            now: start,
            random: 0,
            events: 0,
            asked: 0,
            lines: Vec::new(),
        };
        let mut model = Model {
            now: 0,
            sessions: Vec::new(),
            seats: Vec::new(),
            runs: 0,
            lefts: 0,
            random: 0,
            lines: Vec::new(),
        };
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
        let mut registry = SessionRegistry::new(RegistryConfig::default(), now);
        let conn = ConnId(0);
        let connected = registry.connect(conn, Connect::new(Owner::Unsigned), 1, now).unwrap();
        let id = connected.session_id;
        let mut read = 0;
        let mut written = 0;
        let mut run = None;
        for op in ops {
            match op {
                Op::Input(_) => {
                    let input = RuntimeInput::new("i", "text");
                    if let Ok(Accepted::Started(started)) = registry.input(conn, input, now) {
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
                    let same = Connect::new(Owner::Unsigned).with_session_id(Some(id.as_str()));
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
