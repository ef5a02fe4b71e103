//! [`Show`]: what happens, in lines for people or for programs.

use examples::cli::paint;
use examples::router::Numbers;
use examples::screen::{Colour, printable};
use serde_json::{Value, json};
use smarthole_proto::Priority;
use smarthole_proto::hub::{HubEvent, Outcome, Unroutable};
use smarthole_proto::router::{Candidate, RouteRequest};

use crate::json;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// For people, with colours or without.
    People { colour: bool },
    /// One JSON object each.
    Json,
}

/// Puts events into lines. People see numbers in place of ids.
#[derive(Debug)]
pub(crate) struct Show {
    style: Style,
    numbers: Numbers,
}

impl Show {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            numbers: Numbers::default(),
        }
    }

    /// The lines of an event; none if it is of no interest.
    pub(crate) fn event(&mut self, event: &HubEvent) -> Vec<String> {
        match self.style {
            Style::Json => json::event(event).iter().map(Value::to_string).collect(),
            Style::People { .. } => self.words(event),
        }
    }

    /// A line that is no event: its name for programs with more about it, and words for people.
    pub(crate) fn note(&self, name: &str, about: Value, words: &str) -> String {
        match self.style {
            Style::People { .. } => words.to_owned(),
            Style::Json => {
                let mut object = json!({ "event": name });
                if let (Some(object), Value::Object(about)) = (object.as_object_mut(), about) {
                    object.extend(about);
                }
                object.to_string()
            }
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    fn words(&mut self, event: &HubEvent) -> Vec<String> {
        let line = match event {
            HubEvent::Registered { name, .. } => format!("{} is here", self.client(name)),
            HubEvent::Left { name, .. } => format!("{} has left", self.client(name)),
            HubEvent::Route {
                message, request, ..
            } => {
                let asked = asked(request);
                self.about(message.as_str(), &asked)
            }
            HubEvent::Delivered {
                message,
                client,
                direct,
                text,
                reason,
            } => {
                let why = match (direct, reason) {
                    (true, _) => ": you named it".to_owned(),
                    (false, Some(reason)) => format!(": {}", printable(reason)),
                    (false, None) => String::new(),
                };
                let (to, text) = (self.client(client), printable(text));
                self.about(message.as_str(), &format!("to {to} {text:?}{why}"))
            }
            other => return self.answers(other),
        };
        vec![line]
    }

    fn answers(&mut self, event: &HubEvent) -> Vec<String> {
        match event {
            HubEvent::Acked {
                message,
                client,
                late,
            } => {
                let what = self.paint(Colour::Green, "has taken it");
                let line = format!("{} {what}{}", self.client(client), too_late(*late));
                vec![self.about(message.as_str(), &line)]
            }
            HubEvent::Rejected {
                message,
                client,
                reason,
                timed_out,
                late,
            } => {
                let what = match timed_out {
                    true => "did not answer in time".to_owned(),
                    false => format!("rejects it: {}", printable(reason)),
                };
                let what = self.paint(Colour::Yellow, &what);
                let line = format!("{} {what}{}", self.client(client), too_late(*late));
                vec![self.about(message.as_str(), &line)]
            }
            HubEvent::Notification {
                message,
                client,
                title,
                body,
                priority,
                ..
            } => {
                let title = (title != client).then(|| printable(title));
                let parts: Vec<_> = title.into_iter().chain([printable(body)]).collect();
                let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let mark = match priority {
                    Priority::High => " (!)",
                    _ => "",
                };
                let said = self.paint(Colour::Magenta, &parts.join(": "));
                let line = format!("{} says{mark}: {said}", self.client(client));
                vec![self.about(message.as_str(), &line)]
            }
            HubEvent::Unroutable {
                message,
                text,
                why,
                tried,
            } => {
                let text = printable(text);
                let what = format!("nobody takes {text:?}: {}", printable(&why.to_string()));
                let what = self.paint(Colour::Yellow, &what);
                let mut lines = vec![self.about(message.as_str(), &what)];
                // A single rejection was just told.
                let tried = tried.iter().filter(|_| !matches!(why, Unroutable::Rejected));
                lines.extend(tried.map(|tried| {
                    let reason = printable(&tried.reason);
                    format!("     tried {}: {reason}", self.client(&tried.client))
                }));
                lines
            }
            // All of it was told as it came, or is no business of the user.
            _ => Vec::new(),
        }
    }

    fn about(&mut self, message: &str, what: &str) -> String {
        let number = format!("#{}", self.numbers.of(message));
        format!("{} {what}", self.paint(Colour::Bold, &number))
    }

    fn client(&self, name: &str) -> String {
        self.paint(Colour::Cyan, &printable(name))
    }

    fn paint(&self, colour: Colour, text: &str) -> String {
        match self.style {
            Style::People { colour: true } => colour.paint(text),
            _ => text.to_owned(),
        }
    }

    /// Who is connected.
    pub(crate) fn clients(&self, clients: &[Candidate]) -> Vec<String> {
        if self.is_json() {
            return vec![self.note("clients", json!({ "clients": json::clients(clients) }), "")];
        }
        if clients.is_empty() {
            return vec!["nobody is here".to_owned()];
        }
        let line = |client: &Candidate| {
            let what = printable(&client.description);
            let hints: Vec<&str> = client.capabilities.iter().map(AsRef::as_ref).collect();
            let hints = match hints.as_slice() {
                [] => String::new(),
                hints => format!(" ({})", printable(&hints.join(", "))),
            };
            format!("{}: {what}{hints}", self.client(&client.name))
        };
        clients.iter().map(line).collect()
    }
}

fn asked(request: &RouteRequest) -> String {
    let text = printable(&request.text);
    match request.rejections.as_slice() {
        [] => format!("{text:?}: choosing"),
        _ => "choosing again".to_owned(),
    }
}

const fn too_late(late: bool) -> &'static str {
    if late { ", too late" } else { "" }
}
