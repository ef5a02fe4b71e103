//! Plays a script against a hub under virtual time, and writes down everything that happens.
//!
//! Inputs are behind `>`; what they lead to follows. Ids are numbered as they come: `m1`, `q1`.

use std::collections::HashMap;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

use rpc_core::Instant;
use smarthole_proto::frame::{Answer, Notification, Priority, Registration, Response};
use smarthole_proto::hub::{ConnId, Hub, HubConfig, HubEvent, Input, Outcome, RouteId};
use smarthole_proto::id::MessageId;
use smarthole_proto::router::{Choice, Rejection, RouterError};

/// How events look in a trace.
#[derive(Default)]
pub(crate) struct Names {
    messages: Vec<MessageId>,
}

impl Names {
    /// `m1` for the first message that is named, and so on.
    pub(crate) fn message(&mut self, id: &MessageId) -> String {
        let known = self.messages.iter().position(|one| one == id);
        let index = known.unwrap_or_else(|| {
            self.messages.push(id.clone());
            self.messages.len() - 1
        });
        format!("m{}", index + 1)
    }

    /// The id of `m1`.
    pub(crate) fn id(&self, name: &str) -> Option<&MessageId> {
        let number: usize = name.strip_prefix('m')?.parse().ok()?;
        self.messages.get(number - 1)
    }

    pub(crate) fn last(&self) -> &MessageId {
        self.messages.last().expect("no message yet")
    }

    /// One line for an event, and one more for each rejection that it tells of.
    pub(crate) fn line(&mut self, event: &HubEvent) -> String {
        match event {
            HubEvent::Registered { name, .. } => format!("registered {name}"),
            HubEvent::Left { name, .. } => format!("left {name}"),
            HubEvent::Route {
                message, request, ..
            } => {
                let candidates = request.candidates.iter().map(|one| one.name.as_str());
                let excluded = request.excluded.iter();
                format!(
                    "route {} {:?} to {}{}{}",
                    self.message(message),
                    request.text,
                    candidates.collect::<Vec<_>>().join(" | "),
                    excluded
                        .map(|one| format!(" not {one}"))
                        .collect::<String>(),
                    reasons(&request.rejections),
                )
            }
            HubEvent::Delivered { client, message } => {
                let metadata = &message.metadata;
                let how = if metadata.direct_routed {
                    " directly"
                } else {
                    ""
                };
                let reason = metadata.routing_reason.as_deref().unwrap_or("-");
                let (id, text) = (self.message(&message.id), &message.text);
                format!("delivered {id} to {client}{how} {text:?} ({reason})")
            }
            HubEvent::Acked {
                message,
                client,
                late,
            } => format!("acked {} by {client}{}", self.message(message), tag(*late)),
            HubEvent::Rejected {
                message,
                client,
                reason,
                timed_out,
                late,
            } => {
                let how = if *timed_out { "timed out" } else { "rejected" };
                let message = self.message(message);
                format!("{how} {message} by {client}{} ({reason})", tag(*late))
            }
            HubEvent::Notification {
                message,
                client,
                title,
                body,
                priority,
                late,
            } => format!(
                "notification {} by {client}{} {title:?} {body:?} {}",
                self.message(message),
                tag(*late),
                priority.name()
            ),
            HubEvent::Unroutable {
                message,
                text,
                why,
                tried,
            } => format!(
                "unroutable {} {text:?}: {why}{}",
                self.message(message),
                reasons(tried)
            ),
            HubEvent::Settled { message, outcomes } => {
                let mut line = format!("settled {}", self.message(message));
                for one in outcomes {
                    let _ = write!(line, ", {} {}", one.client, outcome(&one.outcome));
                }
                line
            }
            HubEvent::Ignored {
                message_id, why, ..
            } => {
                let id = MessageId::new(message_id.as_str());
                let known = self.messages.contains(&id);
                let name = if known {
                    self.message(&id)
                } else {
                    id.to_string()
                };
                format!("ignored {name}: {why}")
            }
            other => panic!("an event without a line: {other:?}"),
        }
    }
}

pub(crate) fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Acked => "acked",
        Outcome::Notified => "notified",
        Outcome::Rejected { .. } => "rejected",
        Outcome::TimedOut => "timed out",
        _ => "?",
    }
}

fn tag(late: bool) -> &'static str {
    if late { " late" } else { "" }
}

fn reasons(rejections: &[Rejection]) -> String {
    let mut list = String::new();
    for one in rejections {
        let _ = write!(list, "\n      {}: {}", one.client, one.reason);
    }
    list
}

struct Player {
    hub: Hub,
    start: Instant,
    now: Instant,
    names: Names,
    conns: HashMap<String, ConnId>,
    next_conn: u64,
    /// Open questions, oldest first.
    questions: Vec<(String, RouteId)>,
    asked: usize,
    trace: String,
}

/// Plays a script with the default configuration.
pub(crate) fn play(script: &str) -> String {
    play_with(HubConfig::default(), script)
}

/// Plays a script. Its verbs:
///
/// - `join NAME`, `leave NAME`
/// - `say TEXT`, `speak CONFIDENCE TEXT`
/// - `choose NAME [= TEXT] [? REASON]; ..`, `fail WHY`: the oldest open question, or `choose#2 ..`
/// - `ack NAME`, `reject NAME REASON`, `notify NAME [TITLE|BODY|PRIORITY]`, `mumble NAME`: the last
///   message, or `ack#m1 NAME`
/// - `wait SECONDS`, `history`
pub(crate) fn play_with(config: HubConfig, script: &str) -> String {
    let now = Instant::now();
    let mut player = Player {
        hub: Hub::new(config, 7, now),
        start: now,
        now,
        names: Names::default(),
        conns: HashMap::new(),
        next_conn: 1,
        questions: Vec::new(),
        asked: 0,
        trace: String::new(),
    };
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        player.write(&format!("> {line}"));
        player.perform(line);
        player.drain();
    }
    player.trace
}

impl Player {
    fn write(&mut self, line: &str) {
        let at = (self.now - self.start).as_millis();
        let _ = writeln!(self.trace, "{at:>6} {line}");
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + (self.now - self.start)
    }

    fn perform(&mut self, line: &str) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (verb, of) = verb.split_once('#').unwrap_or((verb, ""));
        let result = match verb {
            "join" => self.join(rest),
            "leave" => {
                let gone = self
                    .conns
                    .remove(rest)
                    .is_some_and(|conn| self.hub.disconnect(conn));
                gone.then_some(()).ok_or("not connected".to_owned())
            }
            "say" => self.submit(Input::text(rest)),
            "speak" => {
                let (sure, text) = rest.split_once(' ').expect("speak CONFIDENCE TEXT");
                self.submit(Input::voice(text, sure.parse().ok()))
            }
            "choose" => {
                let choices = rest.split(';').map(str::trim).filter(|one| !one.is_empty());
                let choices = choices.map(choice).collect();
                let question = self.question(of);
                let decided = self.hub.decide(question, choices, self.now);
                decided.map(drop).map_err(|error| error.to_string())
            }
            "fail" => {
                let question = self.question(of);
                let failed = self.hub.fail(question, RouterError::Failed(rest.into()));
                failed.map_err(|error| error.to_string())
            }
            "ack" | "reject" | "notify" | "mumble" => {
                let (name, words) = rest.split_once(' ').unwrap_or((rest, ""));
                self.respond(of, name, answer(verb, words))
            }
            "wait" => {
                self.wait(Duration::from_secs_f64(rest.parse().expect("wait SECONDS")));
                Ok(())
            }
            "history" => {
                let entries: Vec<_> = self.hub.history().collect();
                let lines = entries.into_iter().map(|entry| {
                    let message = self.names.message(&entry.message);
                    format!("{message} {}: {}", entry.client, outcome(&entry.outcome))
                });
                let lines: Vec<_> = lines.collect();
                lines
                    .iter()
                    .for_each(|line| self.write(&format!("    {line}")));
                Ok(())
            }
            other => panic!("no such verb: {other}"),
        };
        if let Err(error) = result {
            self.write(&format!("  refused: {error}"));
        }
    }

    fn join(&mut self, name: &str) -> Result<(), String> {
        let conn = ConnId(self.next_conn);
        self.next_conn += 1;
        let registration = Registration::new(name, format!("I am {name}."));
        let registered = self.hub.register(conn, &registration);
        registered.map_err(|error| error.to_string())?;
        self.conns.insert(name.to_owned(), conn);
        Ok(())
    }

    fn submit(&mut self, input: Input) -> Result<(), String> {
        let submitted = self.hub.submit(input, self.now, self.wall());
        let id = submitted.map_err(|error| error.to_string())?;
        self.names.message(&id);
        Ok(())
    }

    /// The question of this number, else the oldest one.
    fn question(&mut self, number: &str) -> RouteId {
        let name = format!("q{number}");
        let place = self.questions.iter().position(|(one, _)| *one == name);
        self.questions.remove(place.unwrap_or(0)).1
    }

    fn respond(&mut self, of: &str, name: &str, answer: Answer) -> Result<(), String> {
        let conn = *self.conns.get(name).ok_or("not connected")?;
        let id = self.names.id(of).unwrap_or_else(|| self.names.last());
        self.hub.respond(conn, Response::new(id.as_str(), answer));
        Ok(())
    }

    /// Lets time pass, from deadline to deadline.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut steps = 0;
        while let Some(at) = self.hub.poll_timeout().filter(|at| *at <= end) {
            steps += 1;
            assert!(steps < 100_000, "something is due again and again");
            self.now = self.now.max(at);
            self.hub.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
        self.hub.handle_timeout(end);
    }

    fn drain(&mut self) {
        while let Some((conn, frame)) = self.hub.poll_transmit() {
            let client = self.hub.clients().find(|client| client.conn == conn);
            let name = client.map_or("(gone)".to_owned(), |one| one.registration.name.to_string());
            let mut text = frame.as_str().to_owned();
            for id in self.names.messages.clone() {
                text = text.replace(id.as_str(), &self.names.message(&id));
            }
            self.write(&format!("  -> {name} {text}"));
        }
        while let Some(event) = self.hub.poll_event() {
            let mut line = self.names.line(&event);
            if let HubEvent::Route { route, .. } = event {
                self.asked += 1;
                let name = format!("q{}", self.asked);
                line = format!("{name} {line}");
                self.questions.push((name, route));
            }
            self.write(&format!("  {line}"));
        }
    }
}

fn choice(text: &str) -> Choice {
    let (text, reason) = match text.split_once('?') {
        Some((text, reason)) => (text, Some(reason.trim())),
        None => (text, None),
    };
    let (name, text) = match text.split_once('=') {
        Some((name, text)) => (name, Some(text.trim())),
        None => (text, None),
    };
    let mut choice = Choice::new(name.trim());
    if let Some(text) = text {
        choice.text = Some(text.into());
    }
    if let Some(reason) = reason {
        choice.reason = Some(reason.into());
    }
    choice
}

fn answer(verb: &str, words: &str) -> Answer {
    match verb {
        "ack" => Answer::Ack,
        "reject" => Answer::reject((!words.is_empty()).then(|| words.into())),
        "mumble" => Answer::Unknown {
            tag: "mumble".into(),
            content: None,
        },
        _ => {
            let mut fields = words.split('|');
            let mut field = || fields.next().filter(|text| !text.is_empty());
            let (title, body, priority) = (field(), field(), field());
            let mut shown = Notification::new(body.unwrap_or_default());
            if let Some(title) = title {
                shown.title = Some(title.into());
            }
            if let Some(priority) = priority.and_then(Priority::parse) {
                shown.priority = Some(priority);
            }
            Answer::Notification(shown)
        }
    }
}
