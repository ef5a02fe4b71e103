//! What the registry of sessions should do, as simply as it can be said.

pub const IDLE: u64 = 600;
pub const GRACE: u64 = 300;
pub const STUCK: u64 = 3600;
pub const MAX_SESSIONS: usize = 4;
pub const MAX_SOCKETS: usize = 3;
pub const MAX_RUNNING: usize = 2;
pub const NAMES: [Option<&str>; 4] = [None, Some("a"), Some("b"), Some("c")];
pub const IDS: [&str; 3] = ["x", "y", "z"];

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Connect {
        conn: u64,
        owner: u8,
        name: usize,
        last: Option<usize>,
    },
    Disconnect(u64),
    Touch(u64),
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

impl Op {
    /// With the number of the run that is meant.
    pub fn meaning(self, runs: u64) -> Self {
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

pub struct Session {
    pub name: String,
    pub owner: u8,
    pub sockets: Vec<u64>,
    pub run: Option<u64>,
    pub used: bool,
    /// Every frame there ever was: its text, and its id if it is an event.
    pub frames: Vec<(String, Option<&'static str>)>,
    pub run_from: usize,
    pub inputs: usize,
    pub asked: usize,
    pub failure: Option<usize>,
    pub ends: u64,
    pub left: Option<u64>,
}

/// Everything in lists, looked through from the front.
#[derive(Default)]
pub struct Model {
    pub now: u64,
    pub sessions: Vec<Session>,
    /// Which session a socket is at, by name, and how many of its frames it has.
    pub attached: Vec<(u64, String, usize)>,
    pub runs: u64,
    pub lefts: u64,
    pub random: u128,
    /// What is expected.
    pub lines: Vec<String>,
}

impl Model {
    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn find(&mut self, conn: u64) -> Option<(usize, usize)> {
        let entry = self.attached.iter().position(|entry| entry.0 == conn)?;
        let name = &self.attached[entry].1;
        let session = self.sessions.iter().position(|it| it.name == *name)?;
        Some((entry, session))
    }

    fn at_run(&mut self, run: u64) -> Option<usize> {
        self.sessions.iter().position(|it| it.run == Some(run))
    }

    fn evict_if_idle(&mut self, at: usize) {
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

    fn remove(&mut self, at: usize) {
        let session = self.sessions.remove(at);
        self.attached.retain(|entry| entry.1 != session.name);
        self.line(format!("removed {}", session.name));
        if let Some(run) = session.run {
            self.line(format!("cancelled {run}"));
            self.line(format!("noted {}", session.inputs));
            let sockets = session.sockets.iter();
            let reported: Vec<_> = sockets.map(|conn| format!("told {conn}")).collect();
            self.lines.extend(reported);
        }
    }

    fn sit(&mut self, conn: u64, at: usize, last: Option<&str>, is_new: bool) {
        let known = self.find(conn).map(|(entry, _)| self.attached[entry].2);
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
        self.attached.retain(|entry| entry.0 != conn);
        self.attached.push((conn, name.clone(), place));
        let failed = failure.is_some();
        self.line(format!("connected {name} {status} {failed}"));
        self.evict_if_idle(at);
    }

    fn connect(&mut self, conn: u64, owner: u8, name: Option<&str>, last: Option<&str>) {
        self.random += 1;
        let own = format!("00000000-0000-4000-8000-{:012x}", self.random);
        if let Some((_, at)) = self.find(conn) {
            let session = &self.sessions[at];
            let same = name.map_or(!session.used, |name| session.name == name);
            if session.owner == owner && same {
                self.sit(conn, at, last, false);
            } else {
                self.line("refused already authenticated: open a new connection");
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
                self.line("refused too many connections to this session");
            } else {
                self.sit(conn, at, last, false);
            }
            return;
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let left = |at: &usize| self.sessions[*at].left;
            let places = (0..self.sessions.len()).filter(|at| left(at).is_some());
            let Some(oldest) = places.min_by_key(left) else {
                self.line("refused too many sessions");
                return;
            };
            self.remove(oldest);
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
        let Some((_, at)) = self.find(conn) else {
            return self.line("refused authenticate first (send CONNECT)");
        };
        self.evict_if_idle(at);
        let running = self.sessions.iter().filter(|it| it.run.is_some()).count();
        let session = &mut self.sessions[at];
        if let Some(run) = session.run {
            session.inputs += 1;
            self.line(format!("queued {run}"));
        } else if running >= MAX_RUNNING {
            return self.line("refused too many agents are running");
        } else {
            self.begin(at);
        }
        self.evict_if_idle(at);
    }

    /// Begins a run, which reports its prompt.
    fn begin(&mut self, at: usize) {
        let run = self.runs;
        self.runs += 1;
        let session = &mut self.sessions[at];
        session.run = Some(run);
        session.used = true;
        session.failure = None;
        session.run_from = session.frames.len();
        session.frames.push(("user_input".to_owned(), None));
        self.line(format!("started {run}"));
    }

    /// The agent reads what waits.
    fn take(&mut self, at: usize) -> usize {
        let session = &mut self.sessions[at];
        let taken = std::mem::take(&mut session.inputs);
        for _ in 0..taken {
            session.frames.push(("user_input".to_owned(), None));
        }
        if taken > 0 {
            self.evict_if_idle(at);
        }
        taken
    }

    fn end(&mut self, at: usize, text: &str) {
        let session = &mut self.sessions[at];
        session.frames.push((text.to_owned(), None));
        session.run = None;
        session.inputs = 0;
        session.asked = 0;
        self.evict_if_idle(at);
    }

    pub fn step(&mut self, op: Op) {
        match op {
            Op::Connect {
                conn,
                owner,
                name,
                last,
            } => self.connect(conn, owner, NAMES[name], last.map(|id| IDS[id])),
            Op::Disconnect(conn) => {
                let Some((entry, at)) = self.find(conn) else {
                    return;
                };
                self.attached.remove(entry);
                let session = &mut self.sessions[at];
                session.sockets.retain(|one| *one != conn);
                if session.sockets.is_empty() && session.run.is_none() {
                    self.evict_if_idle(at);
                }
            }
            Op::Touch(conn) => {
                if let Some((_, at)) = self.find(conn) {
                    self.evict_if_idle(at);
                }
            }
            Op::Input(conn) => self.input(conn),
            Op::Answer(conn, named) => {
                let Some((_, at)) = self.find(conn) else {
                    return self.line("answer authenticate first (send CONNECT)");
                };
                self.evict_if_idle(at);
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
                    self.evict_if_idle(at);
                }
                None => self.line("over"),
            },
            Op::Ask(run) => match self.at_run(run) {
                Some(at) => {
                    let session = &mut self.sessions[at];
                    session.asked += 1;
                    session.frames.push(("approval_needed".to_owned(), None));
                    self.evict_if_idle(at);
                }
                None => self.line("over"),
            },
            Op::Take(run) => match self.at_run(run) {
                Some(at) => {
                    let taken = self.take(at);
                    self.line(format!("took {taken}"));
                }
                None => self.line("over"),
            },
            Op::Finish(run) => match self.at_run(run) {
                Some(at) if self.sessions[at].inputs > 0 => {
                    let said = ("assistant".to_owned(), None);
                    self.sessions[at].frames.push(said);
                    let more = self.take(at);
                    self.line(format!("more {more}"));
                }
                Some(at) => self.end(at, "OUTPUT"),
                None => self.line("over"),
            },
            Op::Fail(run) => match self.at_run(run) {
                Some(at) => {
                    let unread = self.sessions[at].inputs;
                    self.end(at, "ERROR");
                    self.sessions[at].failure = Some(self.sessions[at].frames.len());
                    // What was not read begins another run.
                    if let Some(waiting) = unread.checked_sub(1) {
                        self.begin(at);
                        self.sessions[at].inputs = waiting;
                        self.evict_if_idle(at);
                    }
                }
                None => self.line("over"),
            },
            Op::Read(conn, frames) => {
                let Some((entry, at)) = self.find(conn) else {
                    return;
                };
                for _ in 0..frames {
                    let place = self.attached[entry].2;
                    let Some((text, _)) = self.sessions[at].frames.get(place).cloned() else {
                        break;
                    };
                    self.attached[entry].2 += 1;
                    if self.sessions[at].failure == Some(place + 1) {
                        self.sessions[at].failure = None;
                    }
                    self.line(format!("frame {text}"));
                }
            }
            Op::Wait(seconds) => {
                self.now += seconds;
                while let Some(at) = self.sessions.iter().position(|it| it.ends <= self.now) {
                    self.remove(at);
                }
            }
        }
    }
}
