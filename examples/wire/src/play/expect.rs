//! What a script expects: frames, Closes, silence; and the evidence that it keeps.

use rpc_core::testing::Side;
use tokio::time::{Duration, Instant};

use super::conn::Frame;
use super::hide::hide;
use super::peer::Peer;
use super::player::{Entry, Player};
use super::script::{self, Action, Awaited, Expected};
use crate::Protocol;
use crate::pattern::{Mismatch, Pattern, short};
use crate::secrets::{self, Shown};

/// The most frames and bytes of a frame that are kept as evidence.
const MAX_EVIDENCE: (usize, usize) = (200, 4096);
/// The names of variables that are secrets.
const SECRETS: [&str; 5] = ["token", "password", "secret", "key", "invite"];

impl Player<'_> {
    /// Receives the next frame that is not passed over; `None` if nothing comes in time.
    ///
    /// # Errors
    /// It must not come, or the connection is not open.
    pub(crate) async fn receive(&mut self, number: u32) -> Result<Option<Frame>, String> {
        if !self.is_open(number) {
            return Err(format!("connection {number} is not open"));
        }
        while let Some(frame) = self.next(number).await {
            self.log_frame(number, false, &frame);
            let Frame::Text(text) = &frame else {
                return Ok(Some(frame));
            };
            let is = |list: &[(u32, Pattern)]| {
                list.iter()
                    .any(|(on, pattern)| *on == number && pattern.matches(text).is_ok())
            };
            if is(&self.never) {
                self.found.violated = true;
                return Err(format!("this must not come: {}", short(text)));
            }
            if !is(&self.ignored) {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// Receives frames until one of them decides.
    pub(super) async fn expect(&mut self, number: u32, action: &Action) -> Result<(), String> {
        let parse = |text: &String| script::parse(text, &self.variables);
        let (pattern, until) = match action {
            Action::Expect {
                pattern: Expected::Text(text),
                until,
                ..
            } => (Some(parse(text)?), until.as_ref().map(parse).transpose()?),
            _ => (None, None),
        };
        loop {
            let Some(frame) = self.receive(number).await? else {
                let time = (self.patience + self.grace).as_secs_f64();
                return Err(format!(
                    "nothing like it within {time} s, expected {action}"
                ));
            };
            let fits = match (&pattern, &frame) {
                (Some(pattern), Frame::Text(text)) => self.matches(pattern, text),
                _ => self.fits(action, &frame),
            };
            let why = match fits {
                Ok(()) => return Ok(()),
                Err(differs) => differs.first().map(ToString::to_string),
            };
            let goes_on = match (action, &frame) {
                (_, Frame::Close(..) | Frame::End(_))
                | (Action::Await(Awaited::Pong(_), _), Frame::Pong(_)) => false,
                (_, Frame::Ping(_) | Frame::Pong(_)) => true,
                (Action::Expect { skip: true, .. }, Frame::Text(text))
                    if until.as_ref().is_some_and(|it| it.matches(text).is_ok()) =>
                {
                    let why = why.unwrap_or_default();
                    return Err(format!("{} comes: {why}", short(text)));
                }
                (Action::Expect { skip, .. }, _) => *skip,
                (Action::Await(Awaited::Close(_), skips), Frame::Text(_)) => *skips,
                _ => true,
            };
            if !goes_on {
                let other = || format!("{frame} comes, expected {action}");
                return Err(why.unwrap_or_else(other));
            }
        }
    }

    /// Compares a frame with what is awaited, and binds what is new in it.
    ///
    /// # Errors
    /// Where a text differs; nothing if the frame is of another kind.
    pub(crate) fn fits(&mut self, action: &Action, frame: &Frame) -> Result<(), Vec<Mismatch>> {
        let is_it = match (action, frame) {
            (
                Action::Expect {
                    pattern: Expected::Pattern(pattern),
                    ..
                },
                Frame::Text(text),
            ) => return self.matches(pattern, text),
            (Action::Await(awaited, _), frame) => match (awaited, frame) {
                (Awaited::Pong(text), Frame::Pong(bytes)) => bytes == text.as_bytes(),
                (Awaited::Close(code), Frame::Close(got, _)) => code.is_none_or(|it| it == *got),
                (Awaited::Recorded(Frame::End(_)), Frame::End(_))
                | (Awaited::Ping, Frame::Ping(_))
                | (Awaited::End, Frame::Close(..) | Frame::End(_)) => true,
                (Awaited::Recorded(recorded), frame) => recorded == frame,
                _ => false,
            },
            _ => false,
        };
        if is_it { Ok(()) } else { Err(Vec::new()) }
    }

    fn matches(&mut self, pattern: &Pattern, text: &str) -> Result<(), Vec<Mismatch>> {
        let bound = pattern.matches_all(text, &self.variables)?;
        self.variables.bind(bound);
        text.clone_into(&mut self.found.last);
        Ok(())
    }

    pub(super) async fn silence(&mut self, number: u32) -> Result<(), String> {
        self.deadline = Instant::now() + self.settings.quiet;
        (self.patience, self.grace) = (self.settings.quiet, Duration::ZERO);
        loop {
            return match self.receive(number).await? {
                Some(Frame::Ping(_)) => continue,
                Some(frame) => Err(format!("{frame} comes, expected silence")),
                None => Ok(()),
            };
        }
    }

    pub(super) fn log_frame(&mut self, connection: u32, sent: bool, frame: &Frame) {
        let text = match frame {
            Frame::Text(text) => {
                self.follow(connection, sent, text);
                secrets::frame(text, &Shown::default()).into_owned()
            }
            Frame::Binary(bytes) => format!("(binary, {} bytes)", bytes.len()),
            Frame::Ping(_) => "(ping)".to_owned(),
            Frame::Pong(_) => "(pong)".to_owned(),
            Frame::Close(code, _) => {
                if !sent {
                    self.found.close = Some(*code);
                }
                format!("(close {code})")
            }
            Frame::End(why) => format!("({why})"),
        };
        self.log(connection, sent, &text);
    }

    /// Notes what the peer does against the order of its protocol.
    fn follow(&mut self, connection: u32, sent: bool, text: &str) {
        let Some(order) = self.found.orders.get_mut(&connection) else {
            return;
        };
        let Some(protocol) = self.suite.protocol else {
            return;
        };
        let is_client = matches!(self.peer, Peer::Client(_));
        let from = match is_client == sent {
            true => Side::Server,
            false => Side::Client,
        };
        let (line, at) = (self.found.evidence.len() + 1, self.started.elapsed());
        let observed = order.observe((protocol, from, false), text, line, at);
        if sent {
            return;
        }
        let words = |wrong: String| {
            format!(
                "{} {wrong}",
                short(&secrets::frame(text, &Shown::default()))
            )
        };
        if let Some(wrong) = observed.relations.wrong {
            self.found.disorder.get_or_insert_with(|| words(wrong));
        }
        match observed.judged.fault {
            None => self.found.is_known |= observed.judged.is_known,
            Some(fault) => {
                let other =
                    Protocol::of_frame(text).filter(|it| *it != protocol && !self.found.is_known);
                self.found.foreign = self.found.foreign.or(other);
                self.found
                    .misshapen
                    .get_or_insert_with(|| words(fault.error));
            }
        }
    }

    pub(super) fn log(&mut self, connection: u32, sent: bool, text: &str) {
        // Nobody asks for that of a recording.
        if self.suite.protocol.is_some() && self.found.evidence.len() < MAX_EVIDENCE.0 {
            // What is cut before could end with a part of a secret.
            let text = self.redacted(text);
            let text = rpc_core::text::beginning(&text, MAX_EVIDENCE.1).to_owned();
            let millis = self.started.elapsed().as_millis();
            self.found.evidence.push(Entry {
                millis,
                connection,
                sent,
                text,
            });
        }
    }

    pub(crate) fn redacted(&self, text: &str) -> String {
        let secrets = SECRETS.iter().filter_map(|name| self.variables.text(name));
        let secrets = secrets.filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| hide(&text, secret))
    }
}
