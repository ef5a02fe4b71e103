//! The naive model of a hub: everything in lists, looked through from the front.

use std::fmt::Write;

pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "d", "A"];
pub(crate) const TIMEOUT: u64 = 30_000;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Open { deadline: u64 },
    Acked,
    Notified,
    Rejected,
    TimedOut,
}

#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) client: &'static str,
    pub(crate) attempt: u32,
    pub(crate) state: State,
    pub(crate) late: bool,
    pub(crate) forgotten: bool,
}

#[derive(Default)]
pub(crate) struct Message {
    pub(crate) text: String,
    pub(crate) direct: bool,
    pub(crate) got: Vec<Got>,
    pub(crate) rejections: Vec<(&'static str, &'static str)>,
    pub(crate) why: Option<&'static str>,
    pub(crate) settled: bool,
}

pub(crate) struct Question {
    pub(crate) number: usize,
    pub(crate) message: usize,
    pub(crate) attempt: u32,
    pub(crate) asked: Vec<&'static str>,
    pub(crate) reached: usize,
}

/// Everything in lists, looked through from the front.
pub(crate) struct Model {
    pub(crate) limit: u32,
    pub(crate) reroute_direct: bool,
    pub(crate) max_history: usize,
    pub(crate) now: u64,
    pub(crate) clients: Vec<&'static str>,
    pub(crate) messages: Vec<Message>,
    pub(crate) questions: Vec<Question>,
    pub(crate) asked: usize,
    /// Deliveries in the order of sending, and those that ended in the order of ending.
    pub(crate) sent: Vec<(usize, usize)>,
    pub(crate) history: Vec<(usize, usize)>,
    /// What is expected of the hub.
    pub(crate) lines: Vec<String>,
}

impl Message {
    pub(crate) fn has(&self, client: &str) -> bool {
        self.got.iter().any(|got| got.client == client)
    }

    pub(crate) fn reasons(&self) -> String {
        let mut list = String::new();
        for (client, reason) in &self.rejections {
            let _ = write!(list, "\n      {client}: {reason}");
        }
        list
    }
}

impl Model {
    pub(crate) fn line(&mut self, line: String) {
        self.lines.push(line);
    }

    pub(crate) fn join(&mut self, name: &'static str) -> bool {
        if self.clients.contains(&name) {
            return false;
        }
        self.clients.push(name);
        self.line(format!("registered {name}"));
        true
    }

    pub(crate) fn leave(&mut self, name: &'static str) -> bool {
        let before = self.clients.len();
        self.clients.retain(|one| *one != name);
        if self.clients.len() == before {
            return false;
        }
        self.line(format!("left {name}"));
        true
    }

    pub(crate) fn send(&mut self, to: Option<&str>, text: &str) -> bool {
        if self.clients.is_empty() {
            return false;
        }
        let similar = |to: &str, name: &str| name.eq_ignore_ascii_case(to);
        let named = to.and_then(|to| {
            let clients = || self.clients.iter().copied();
            clients()
                .find(|name| *name == to)
                .or_else(|| clients().find(|name| similar(to, name)))
        });
        self.messages.push(Message {
            text: to.map_or(text.to_owned(), |to| format!("{to}: {text}")),
            direct: named.is_some(),
            ..Message::default()
        });
        let message = self.messages.len() - 1;
        match named {
            Some(name) => self.deliver(message, name, 1, true, text),
            None => self.ask(message, 1),
        }
        true
    }

    pub(crate) fn deliver(
        &mut self,
        message: usize,
        client: &'static str,
        attempt: u32,
        direct: bool,
        text: &str,
    ) {
        assert!(!self.messages[message].has(client), "got it twice");
        assert!(attempt <= self.limit.max(1), "beyond the limit");
        let deadline = self.now + TIMEOUT;
        self.messages[message].got.push(Got {
            client,
            attempt,
            state: State::Open { deadline },
            late: false,
            forgotten: false,
        });
        let place = self.messages[message].got.len() - 1;
        self.sent.push((message, place));
        let how = if direct { " directly" } else { "" };
        self.line(format!(
            "delivered m{} to {client}{how} {text:?} (-)",
            message + 1
        ));
    }

    pub(crate) fn ask(&mut self, message: usize, attempt: u32) {
        let one = &self.messages[message];
        let candidates: Vec<_> = self
            .clients
            .iter()
            .copied()
            .filter(|name| !one.has(name))
            .collect();
        if attempt > self.limit.max(1) || candidates.is_empty() {
            let why = if self.clients.is_empty() && one.got.is_empty() {
                "no client is connected"
            } else {
                "no client could handle the message"
            };
            self.messages[message].why = Some(why);
            return;
        }
        let excluded: String = one
            .got
            .iter()
            .map(|got| format!(" not {}", got.client))
            .collect();
        let line = format!(
            "route m{} {:?} to {}{excluded}{}",
            message + 1,
            one.text,
            candidates.join(" | "),
            one.reasons()
        );
        self.questions.push(Question {
            number: self.asked,
            message,
            attempt,
            asked: self.clients.clone(),
            reached: one.got.len(),
        });
        self.asked += 1;
        self.line(line);
    }

    /// How many get the message.
    pub(crate) fn decide(&mut self, number: usize, choices: &[&'static str]) -> Option<usize> {
        let at = self.questions.iter().position(|one| one.number == number)?;
        let question = self.questions.remove(at);
        let message = question.message;
        let mut chosen = Vec::new();
        let mut lost = false;
        for (index, name) in choices.iter().enumerate() {
            if choices[..index].contains(name) {
                continue;
            }
            let got = &self.messages[message].got;
            let place = got.iter().position(|got| got.client == *name);
            if self.clients.contains(name) && place.is_none() {
                chosen.push(*name);
            } else {
                let had_it = place.is_some_and(|place| place < question.reached);
                lost |= question.asked.contains(name) && !had_it;
            }
        }
        if chosen.is_empty() && lost {
            self.ask(message, question.attempt + 1);
        } else if chosen.is_empty() {
            self.messages[message].why = Some("no client was chosen");
        }
        let text = self.messages[message].text.clone();
        for name in &chosen {
            self.deliver(message, name, question.attempt, false, &text);
        }
        self.settle(message);
        Some(chosen.len())
    }

    pub(crate) fn fail(&mut self, number: usize) -> bool {
        let Some(at) = self.questions.iter().position(|one| one.number == number) else {
            return false;
        };
        let message = self.questions.remove(at).message;
        self.messages[message].why = Some("the router failed: no");
        self.settle(message);
        true
    }

    pub(crate) fn answer(&mut self, client: &'static str, message: usize, kind: Kind) {
        let ignored = |why: &str| format!("ignored m{}: {why}", message + 1);
        let Some(place) = self.messages[message]
            .got
            .iter()
            .position(|got| got.client == client)
        else {
            return self.line(ignored("no such message of this client"));
        };
        let got = &mut self.messages[message].got[place];
        if got.forgotten {
            return self.line(ignored("no such message of this client"));
        }
        let (before, late, attempt) = (got.state, got.late, got.attempt);
        got.state = match (kind, before) {
            (Kind::Mumble, _) => return self.line(ignored("unknown answer \"mumble\"")),
            (Kind::Ack, State::Acked) => return self.line(ignored("the message is taken already")),
            (Kind::Ack | Kind::Reject, State::Rejected) => {
                return self.line(ignored("the message is rejected already"));
            }
            (Kind::Ack, _) => State::Acked,
            (Kind::Reject, _) => State::Rejected,
            (_, State::Open { .. } | State::TimedOut) => State::Notified,
            (_, state) => state,
        };
        if let State::Open { .. } = before {
            self.history.push((message, place));
        }
        let tag = if late { " late" } else { "" };
        let id = message + 1;
        match kind {
            Kind::Ack => self.line(format!("acked m{id} by {client}{tag}")),
            Kind::Reject => {
                self.line(format!("rejected m{id} by {client}{tag} (no)"));
                if !late {
                    self.reroute(message, client, "no", attempt);
                }
            }
            Kind::Notify => self.line(format!(
                "notification m{id} by {client}{tag} \"{client}\" \"hi\" normal"
            )),
            Kind::Blank | Kind::Mumble => {}
        }
        self.settle(message);
        self.trim();
    }

    pub(crate) fn reroute(
        &mut self,
        message: usize,
        client: &'static str,
        reason: &'static str,
        attempt: u32,
    ) {
        let one = &mut self.messages[message];
        one.rejections.push((client, reason));
        if one.direct && !self.reroute_direct {
            one.why = Some("the client did not take the message");
        } else {
            self.ask(message, attempt + 1);
        }
    }

    /// The next deadline, and the delivery that was sent first among those of it.
    pub(crate) fn next_deadline(&self) -> Option<(u64, usize, usize)> {
        let open = self.sent.iter().filter_map(|&(message, place)| {
            match self.messages[message].got[place].state {
                State::Open { deadline } => Some((deadline, message, place)),
                _ => None,
            }
        });
        open.min_by_key(|(deadline, ..)| *deadline)
    }

    pub(crate) fn advance(&mut self, to: u64) {
        while let Some((deadline, message, place)) = self.next_deadline()
            && deadline <= to
        {
            self.now = deadline;
            let got = &mut self.messages[message].got[place];
            got.state = State::TimedOut;
            got.late = true;
            let (client, attempt) = (got.client, got.attempt);
            self.history.push((message, place));
            self.line(format!(
                "timed out m{} by {client} (Response timeout)",
                message + 1
            ));
            self.reroute(message, client, "Response timeout", attempt);
            self.settle(message);
            self.trim();
        }
        self.now = to;
    }

    pub(crate) fn is_idle(&self, message: usize) -> bool {
        let asked = self.questions.iter().any(|one| one.message == message);
        let got = &self.messages[message].got;
        !asked
            && !got
                .iter()
                .any(|got| matches!(got.state, State::Open { .. }))
    }

    pub(crate) fn settle(&mut self, message: usize) {
        if !self.is_idle(message) {
            return;
        }
        let one = &mut self.messages[message];
        let taken = |got: &Got| matches!(got.state, State::Acked | State::Notified);
        let reasons = one.reasons();
        if !one.got.iter().any(taken)
            && let Some(why) = one.why.take()
        {
            let line = format!("unroutable m{} {:?}: {why}{reasons}", message + 1, one.text);
            self.lines.push(line);
        }
        let one = &mut self.messages[message];
        if !one.settled {
            one.settled = true;
            let outcomes = one.got.iter();
            let outcomes =
                outcomes.map(|got| format!(", {} {}", got.client, state_name(got.state)));
            let line = format!("settled m{}{}", message + 1, outcomes.collect::<String>());
            self.lines.push(line);
        }
    }

    pub(crate) fn trim(&mut self) {
        while self.history.len() > self.max_history {
            let (message, place) = self.history.remove(0);
            self.messages[message].got[place].forgotten = true;
        }
    }
}

pub(crate) fn state_name(state: State) -> &'static str {
    match state {
        State::Open { .. } => "open",
        State::Acked => "acked",
        State::Notified => "notified",
        State::Rejected => "rejected",
        State::TimedOut => "timed out",
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Ack,
    Reject,
    Notify,
    Blank,
    Mumble,
}
