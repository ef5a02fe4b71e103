//! [`Show`]: the events of a router in lines for people.

use smarthole_proto::frame::Priority;
use smarthole_proto::hub::{HistoryEntry, HubEvent, Outcome, RegisteredClient, Unroutable};
use smarthole_proto::router::RouteRequest;

use crate::chat::router::numbers::Numbers;
use crate::router::json::words;
use crate::text::{self, Colour, printable};

/// Puts events into lines. People see numbers in place of ids.
#[derive(Debug)]
pub(crate) struct Show {
    /// Whether lines have colours.
    colour: bool,
    numbers: Numbers,
}

impl Show {
    pub(crate) fn new(colour: bool) -> Self {
        Self {
            colour,
            numbers: Numbers::default(),
        }
    }

    /// The lines of an event; none if it is of no interest.
    pub(crate) fn event(&mut self, event: &HubEvent) -> Vec<String> {
        let line = match event {
            HubEvent::Registered { name, .. } => format!("{} is here", self.client(name)),
            HubEvent::Left { name, .. } => format!("{} has left", self.client(name)),
            HubEvent::Route {
                message, request, ..
            } => {
                let asked = asked(request);
                self.about(message.as_str(), &asked)
            }
            HubEvent::Delivered { client, message } => {
                let metadata = &message.metadata;
                let why = match (metadata.direct_routed, &metadata.routing_reason) {
                    (true, _) => ": you named it".to_owned(),
                    (false, Some(reason)) => format!(": {}", printable(reason)),
                    (false, None) => String::new(),
                };
                let (to, text) = (self.client(client), quoted(&message.text));
                self.about(&message.id, &format!("{text} to {to}{why}"))
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
                let title = (title != client).then_some(title);
                let texts_of = title.into_iter().chain([body]);
                let texts_of: Vec<&str> = texts_of.map(|text| &**text).collect();
                let texts_of = texts_of.join("\n");
                let texts = texts_of.lines().map(printable);
                let mut texts = texts.filter(|text| !text.is_empty());
                let first = texts.next().unwrap_or_default();
                let mark = if *priority == Priority::High {
                    " (!)"
                } else {
                    ""
                };
                let first = self.paint(Colour::Magenta, &first);
                let line = format!("{} says{mark}: {first}", self.client(client));
                let mut lines = vec![self.about(message.as_str(), &line)];
                lines.extend(
                    texts.map(|text| format!("     {}", self.paint(Colour::Magenta, &text))),
                );
                lines
            }
            HubEvent::Unroutable {
                message,
                text,
                why,
                tried,
            } => {
                let why_not = words(why);
                let what = format!("no client takes {}: {}", quoted(text), printable(&why_not));
                let what = self.paint(Colour::Yellow, &what);
                let mut lines = vec![self.about(message.as_str(), &what)];
                // A single rejection was just shown.
                let tried = tried
                    .iter()
                    .filter(|_| !matches!(why, Unroutable::Rejected));
                lines.extend(tried.map(|tried| {
                    let reason = printable(&tried.reason);
                    format!("     tried {}: {reason}", self.client(&tried.client))
                }));
                lines
            }
            // All of it was shown before, or is not the user's business.
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
        text::paint(self.colour, colour, text)
    }

    /// Who is connected.
    pub(crate) fn clients(&self, clients: &[RegisteredClient]) -> Vec<String> {
        if clients.is_empty() {
            return vec!["no client is registered".to_owned()];
        }
        let line = |client: &RegisteredClient| {
            let about = &client.registration;
            let hints: Vec<&str> = about.capabilities.iter().map(AsRef::as_ref).collect();
            let hints = match hints.as_slice() {
                [] => String::new(),
                hints => format!(" ({})", printable(&hints.join(", "))),
            };
            let what = printable(&about.description);
            format!("{}: {what}{hints}", self.client(&about.name))
        };
        clients.iter().map(line).collect()
    }

    /// The outcome of the last messages.
    pub(crate) fn history(&mut self, history: &[HistoryEntry]) -> Vec<String> {
        if history.is_empty() {
            return vec!["nothing has ended yet".to_owned()];
        }
        let mut lines = Vec::new();
        for item in history {
            let what = match &item.outcome {
                Outcome::Acked | Outcome::Notified => "has taken it".to_owned(),
                Outcome::Rejected { reason } => format!("rejects it: {}", printable(reason)),
                Outcome::TimedOut => "did not answer in time".to_owned(),
                _ => "has ended it".to_owned(),
            };
            // Who says nothing in time is late, of course.
            let late = item.late && item.outcome != Outcome::TimedOut;
            let (text, client) = (quoted(&item.text), self.client(&item.client));
            let line = format!("{text}: {client} {what}{}", too_late(late));
            lines.push(self.about(item.message.as_str(), &line));
        }
        lines
    }
}

/// What was asked of a router.
fn asked(request: &RouteRequest) -> String {
    match request.rejections.as_slice() {
        [] => format!("{}: choosing", quoted(&request.text)),
        _ => "choosing again".to_owned(),
    }
}

/// A text on one line, in quotation marks.
fn quoted(text: &str) -> String {
    printable(&format!("{text:?}")).into_owned()
}

const fn too_late(late: bool) -> &'static str {
    if late { ", too late" } else { "" }
}

#[cfg(test)]
mod tests;
