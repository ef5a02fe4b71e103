//! [`Script`]: a row that runs, step by step.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::conn::{self, Conn, Frame, Io, Request};
use super::expect::{found, is_status};
use super::http::split;
use super::peer::{Ended, Started};
use super::run::{Entry, Peer, Settings, Verdict};
use super::script::{self, Action, Awaited, Step};
use super::suite::{Row, Suite};
use super::variables::{NEEDS, Variables};
use crate::Protocol;
use crate::head::Head;
use crate::order::Order;
use crate::pattern::Pattern;

/// The time for a client to connect first.
const START_TIME: Duration = Duration::from_secs(30);

/// A row that runs.
pub(super) struct Script<'a> {
    pub(super) suite: &'a Suite,
    pub(super) peer: &'a Peer,
    pub(super) settings: &'a Settings,
    pub(super) variables: Variables,
    pub(super) conns: BTreeMap<u8, Conn>,
    pub(super) never: Vec<(u8, Pattern)>,
    pub(super) ignored: Vec<(u8, Pattern)>,
    /// The code of the last Close.
    pub(super) close: Option<u16>,
    /// The status of the last answer.
    pub(super) status: u16,
    /// The head of the last answer, or of a client's last request.
    pub(super) head: Head,
    pub(super) path: String,
    pub(super) client: Option<Started>,
    pub(super) ended: Option<Ended>,
    /// Connections that a client has opened.
    pub(super) opened: u32,
    pub(super) started: Instant,
    /// How long the step may take, and until when.
    pub(super) patience: Duration,
    pub(super) deadline: Instant,
    pub(super) evidence: Vec<Entry>,
    /// Whether something came that must not.
    pub(super) violated: bool,
    /// The order of the frames of each WebSocket, and what the peer has done against it.
    pub(super) orders: BTreeMap<u8, Order>,
    pub(super) disorder: Option<String>,
    /// The first frame of the peer that has another shape than its protocol, or is of another protocol.
    pub(super) misshapen: Option<String>,
    pub(super) foreign: Option<Protocol>,
    /// Whether a frame of the protocol has come.
    pub(super) is_known: bool,
    /// How much longer the step may take, if it only is late then.
    pub(super) grace: Duration,
    /// The first step that was late.
    pub(super) late: Option<(String, String)>,
    /// The text of the last message that was expected.
    pub(super) last: String,
}

impl<'a> Script<'a> {
    pub(super) fn new(
        suite: &'a Suite,
        peer: &'a Peer,
        settings: &'a Settings,
        variables: Variables,
    ) -> Self {
        Self {
            suite,
            peer,
            settings,
            variables,
            conns: BTreeMap::new(),
            never: Vec::new(),
            ignored: Vec::new(),
            close: None,
            status: 0,
            head: Head::default(),
            path: String::new(),
            client: None,
            ended: None,
            opened: 0,
            started: Instant::now(),
            patience: settings.timeout,
            deadline: Instant::now(),
            evidence: Vec::new(),
            violated: false,
            orders: BTreeMap::new(),
            disorder: None,
            misshapen: None,
            foreign: None,
            is_known: false,
            grace: Duration::ZERO,
            late: None,
            last: String::new(),
        }
    }

    /// Runs the scripts of a row.
    pub(super) async fn run(&mut self, row: &Row) -> Verdict {
        if let Peer::Client(client) = self.peer {
            match client.start(&self.suite.path, &self.variables).await {
                Ok(started) => self.client = Some(started),
                Err(error) => {
                    return Verdict::Blocked {
                        reason: format!("the client cannot be started: {error}"),
                    };
                }
            }
        }
        let preamble = row.before.iter().map(|step| (step, true));
        for (step, before) in preamble.chain(row.steps.iter().map(|step| (step, false))) {
            let is_skipped = |(name, is_set): &(String, bool)| self.variables.has(name) != *is_set;
            if step.only_if.as_ref().is_some_and(is_skipped) {
                continue;
            }
            let began = Instant::now();
            let mut outcome = self.step(step).await;
            let is_early = |time| began.elapsed() < time;
            if outcome.is_ok() && step.not_before.is_some_and(is_early) {
                self.violated = true;
                outcome = Err(format!(
                    "too early: after {} s",
                    began.elapsed().as_secs_f64()
                ));
            }
            let Err(mut reason) = outcome else {
                self.note_time(step, began.elapsed());
                continue;
            };
            // That something is not there may be fine, that it has another shape is not.
            if step.soft
                && !before
                && let Some(wrong) = &self.misshapen
            {
                self.violated = true;
                reason = wrong.clone();
            }
            let reason = self.redacted(&reason);
            return match (before, step.soft) {
                _ if reason.starts_with(NEEDS) => Verdict::NotApplicable { reason },
                (true, _) => Verdict::Blocked {
                    reason: format!("{}: {reason}", step.line),
                },
                (false, true) if !self.violated => Verdict::NotApplicable {
                    reason: format!("{}: {reason}", step.line),
                },
                (false, _) => Verdict::Fail {
                    step: step.line.clone(),
                    reason,
                },
            };
        }
        match self.late.take() {
            Some((step, reason)) => Verdict::Late { step, reason },
            None => Verdict::Pass,
        }
    }

    /// Notes how long the peer has taken for a step.
    fn note_time(&mut self, step: &Step, took: Duration) {
        if !matches!(
            step.action,
            Action::Expect { .. }
                | Action::Await(Awaited::Close(_) | Awaited::Pong(_), _)
                | Action::Open(..)
                | Action::Http(..)
        ) {
            return;
        }
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.settings
            .pace
            .fetch_max(millis.max(1), Ordering::Relaxed);
        if took > self.patience && step.within.is_none() {
            let reason = format!(
                "it took {:.1} s, more than {} s",
                took.as_secs_f64(),
                self.patience.as_secs_f64()
            );
            self.late.get_or_insert((step.line.clone(), reason));
        }
    }

    async fn step(&mut self, step: &Step) -> Result<(), String> {
        let number = step.connection;
        self.patience = step.within.unwrap_or(self.settings.timeout);
        self.grace = match step.within {
            None => self.settings.patience(),
            Some(_) => Duration::ZERO,
        };
        self.deadline = Instant::now() + self.patience + self.grace;
        if step.opens && !self.conns.contains_key(&number) {
            self.open(number, "", &[]).await?;
        }
        match &step.action {
            Action::Open(path, headers) => self.open(number, path, headers).await,
            Action::Refuse(status, path, headers) => self.refuse(status, path, headers).await,
            Action::Http(method, path, headers, body) => {
                self.http(number, method, path, headers, body).await
            }
            Action::Status(wanted) => is_status(wanted, self.status),
            Action::Header(name, regex) => self.header(name, regex),
            Action::Path(regex) => found(&self.variables.expand(regex)?, &self.path, "the path"),
            Action::Send(frame) => {
                let frame = match frame {
                    Frame::Text(text) => Frame::Text(self.variables.expand(text)?),
                    other => other.clone(),
                };
                let is_close = matches!(frame, Frame::Close(_));
                self.send(number, frame).await?;
                if let Some(conn) = self.conns.get_mut(&number).filter(|_| is_close) {
                    conn.finish(self.settings.quiet).await;
                }
                Ok(())
            }
            Action::Cut => {
                self.log(number, true, "(cut)");
                self.conn(number)?.cut();
                Ok(())
            }
            Action::Expect {
                pattern,
                skip,
                until,
            } => self.expect(number, pattern, *skip, until.as_deref()).await,
            Action::Await(frame, skips) => self.wait_for(number, frame, *skips).await,
            Action::Code(code) => match self.close {
                Some(found) if found == *code => Ok(()),
                found => Err(format!(
                    "the code is {}, expected {code}",
                    found.map_or("none".to_owned(), |f| f.to_string())
                )),
            },
            Action::Watch(text, is_forbidden) => {
                let pattern = script::parse(text, &self.variables)?;
                let list = match is_forbidden {
                    true => &mut self.never,
                    false => &mut self.ignored,
                };
                list.push((number, pattern));
                Ok(())
            }
            Action::Silence => self.silence(number).await,
            Action::Wait(time) => {
                sleep(crate::cli::duration(time)?).await;
                Ok(())
            }
            Action::Exit(wanted) => {
                let code = self.wait_for_end().await?.code;
                let code = code.map_or("none".to_owned(), |code| code.to_string());
                let other = wanted.strip_prefix('!');
                match other.map_or(code == *wanted, |other| code != other) {
                    true => Ok(()),
                    false => Err(format!("the exit code is {code}, expected {wanted}")),
                }
            }
            Action::Output(regex) => {
                let regex = self.variables.expand(regex)?;
                let output = self.wait_for_end().await?.output.clone();
                found(&regex, &output, "the output")
            }
            Action::Alone => self.alone().await,
            Action::Ordered => self.disorder.clone().map_or(Ok(()), Err),
            Action::Signed => super::signed::verify(&self.last),
        }
    }

    fn conn(&mut self, number: u8) -> Result<&mut Conn, String> {
        self.conns
            .get_mut(&number)
            .ok_or_else(|| format!("connection {number} is not open"))
    }

    async fn send(&mut self, number: u8, frame: Frame) -> Result<(), String> {
        self.log_frame(number, true, &frame);
        let Some(conn) = self.conns.get_mut(&number) else {
            return Ok(());
        };
        let sending = conn.send(frame);
        let sent = timeout(self.settings.timeout, sending).await;
        sent.map_err(|_| "the peer does not read".to_owned())
    }

    /// Opens a connection, or waits for the client's next one.
    async fn open(
        &mut self,
        number: u8,
        path: &str,
        headers: &[(String, String)],
    ) -> Result<(), String> {
        let io = match self.peer {
            Peer::Server(dial, url) => {
                let headers = self.expanded(headers)?;
                let path = self.variables.expand(path)?;
                let mut all = [&*path, split(url).2, &self.suite.path].into_iter();
                let asked = all.find(|it| !it.is_empty()).unwrap_or_default();
                let opened = self.ask(&**dial, url, None, asked, headers, "").await?;
                self.log(number, true, &format!("(open {path})"));
                let (101, io) = opened else {
                    return Err(format!("the upgrade is answered with {}", opened.0));
                };
                io
            }
            Peer::Client(_) => {
                let request = self.request(number).await?;
                let ws = request.accept(&conn::config()).await?;
                Io::WebSocket(Box::new(ws))
            }
        };
        self.orders.insert(number, Order::opened());
        self.conns.insert(number, Conn::new(io));
        Ok(())
    }

    /// The next request of the client.
    pub(super) async fn request(&mut self, number: u8) -> Result<Request, String> {
        let none = || "the client does not connect".to_owned();
        // Some programs need a while to start.
        let deadline = match self.opened {
            0 => self.deadline.max(self.started + START_TIME),
            _ => self.deadline,
        };
        loop {
            let client = self.client.as_mut().ok_or_else(none)?;
            let line = tokio::select! {
                biased;
                line = client.connections.recv() => line,
                ended = client.ended.as_mut(), if self.ended.is_none() => {
                    let why = ended.words();
                    self.ended = Some(ended);
                    return Err(why);
                }
                () = sleep_until(deadline) => return Err(none()),
            };
            let line = line.ok_or_else(none)?;
            let request = timeout_at(deadline, Request::read(line))
                .await
                .map_err(|_| "no upgrade comes")?;
            let request = request.map_err(|error| error.to_string())?;
            if request.head.method() == "GET" && request.head.header("upgrade").is_none() {
                self.get(number, request).await?;
                continue;
            }
            self.opened += 1;
            request.head.target().clone_into(&mut self.path);
            self.head = request.head.clone();
            let path = self.path.clone();
            self.log(number, false, &format!("(connects to {path})"));
            return Ok(request);
        }
    }

    /// Answers what a client asks over HTTP before it opens a WebSocket.
    async fn get(&mut self, number: u8, request: Request) -> Result<(), String> {
        let mut gets = self.suite.gets.iter();
        let (status, body) = match gets.find(|(path, _)| path == request.head.target()) {
            Some((_, body)) => {
                let authority = request.head.header("host").unwrap_or_default();
                self.variables.set("authority", authority);
                ("200", self.variables.expand(body)?)
            }
            None => ("404", String::new()),
        };
        self.log(number, false, &format!("GET {}", request.head.target()));
        self.log(number, true, format!("({status}) {body}").trim_end());
        // A client that does not wait for the answer may still open a WebSocket.
        let _ = timeout_at(self.deadline, request.end(status, &body)).await;
        Ok(())
    }
}
