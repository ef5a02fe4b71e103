//! What a script expects: frames, Closes, silence, the end; and the evidence that it keeps.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use rpc_core::Json;
use rpc_core::testing::Side;
use tokio::time::{Duration, Instant, timeout, timeout_at};

use super::conn::Frame;
use super::hide::hide;
use super::peer::Ended;
use super::play::Script;
use super::run::{Entry, Peer};
use super::script::{self, Awaited};
use crate::Protocol;
use crate::pattern::{Pattern, short};
use crate::secrets::{self, Shown};

/// The most frames and bytes of a frame that are kept as evidence.
const MAX_EVIDENCE: (usize, usize) = (200, 4096);
/// The names of variables that are secrets.
const SECRETS: [&str; 5] = ["token", "password", "secret", "key", "invite"];

impl Script<'_> {
    /// The next frame that is neither passed over nor forbidden.
    pub(super) async fn receive(&mut self, number: u8, wanted: &str) -> Result<Frame, String> {
        loop {
            let conn = self
                .conns
                .get_mut(&number)
                .ok_or_else(|| format!("connection {number} is not open"))?;
            let received = timeout_at(self.deadline, conn.receive()).await;
            let frame = received.map_err(|_| {
                format!(
                    "nothing like it within {} s, expected {wanted}",
                    (self.patience + self.grace).as_secs_f64()
                )
            })?;
            self.log_frame(number, false, &frame);
            let Frame::Text(text) = &frame else {
                return Ok(frame);
            };
            let is = |list: &[(u8, Pattern)]| {
                list.iter()
                    .any(|(on, pattern)| *on == number && pattern.matches(text).is_ok())
            };
            if is(&self.never) {
                self.violated = true;
                return Err(format!("this must not come: {}", short(text)));
            }
            if !is(&self.ignored) {
                return Ok(frame);
            }
        }
    }

    pub(super) async fn expect(
        &mut self,
        number: u8,
        text: &str,
        skip: bool,
        until: Option<&str>,
    ) -> Result<(), String> {
        let wanted = script::parse(text, &self.variables)?;
        let until = until
            .map(|until| script::parse(until, &self.variables))
            .transpose()?;
        let expected = short(wanted.text());
        loop {
            let value = match self.receive(number, &expected).await? {
                Frame::Text(text) => match Json::new(&text) {
                    Ok(_) => text,
                    Err(_) if skip => continue,
                    Err(error) => return Err(format!("{error}, expected {expected}")),
                },
                Frame::Close(code) => {
                    return Err(format!(
                        "the connection is closed with {code}, expected {expected}"
                    ));
                }
                Frame::End(why) => return Err(format!("{why}, expected {expected}")),
                Frame::Binary(_) if !skip => {
                    return Err(format!("a binary message comes, expected {expected}"));
                }
                _ => continue,
            };
            match wanted.matches(&value) {
                Ok(bound) => {
                    self.variables.bind(bound);
                    self.last = value;
                    return Ok(());
                }
                Err(why) if !skip => return Err(why.to_string()),
                Err(why)
                    if until
                        .as_ref()
                        .is_some_and(|until| until.matches(&value).is_ok()) =>
                {
                    return Err(format!("{} comes: {why}", short(&value)));
                }
                Err(_) => {}
            }
        }
    }

    /// Receives frames until one of them decides.
    pub(super) async fn wait_for(
        &mut self,
        number: u8,
        wanted: &Awaited,
        skips: bool,
    ) -> Result<(), String> {
        let words = match wanted {
            Awaited::Close(_) => "a Close",
            Awaited::End => "the end",
            Awaited::Ping | Awaited::Pong(_) => "it",
        };
        loop {
            return match (self.receive(number, words).await?, wanted) {
                (Frame::Pong(bytes), Awaited::Pong(text)) => match bytes == text.as_bytes() {
                    true => Ok(()),
                    false => Err("the pong has another payload".to_owned()),
                },
                (Frame::Close(code), Awaited::Close(Some(wanted))) if code != *wanted => {
                    Err(format!("the code is {code}, expected {wanted}"))
                }
                (Frame::Ping(_), Awaited::Ping)
                | (Frame::Close(_) | Frame::End(_), Awaited::End)
                | (Frame::Close(_), Awaited::Close(_)) => Ok(()),
                (Frame::Close(code), _) => Err(format!("the connection is closed with {code}")),
                (Frame::End(why), _) => Err(why),
                (Frame::Text(text), Awaited::Close(_)) if !skips => {
                    Err(format!("{} comes, expected a Close", short(&text)))
                }
                _ => continue,
            };
        }
    }

    pub(super) async fn silence(&mut self, number: u8) -> Result<(), String> {
        (self.patience, self.grace) = (self.settings.quiet, Duration::ZERO);
        self.deadline = Instant::now() + self.patience;
        loop {
            return match self.receive(number, "").await {
                Ok(Frame::Ping(_)) => continue,
                Ok(Frame::Text(text)) => Err(format!("{} comes, expected silence", short(&text))),
                Ok(frame) => Err(format!("{frame:?} comes, expected silence")),
                Err(why) if why.starts_with("nothing") => Ok(()),
                Err(why) => Err(why),
            };
        }
    }

    pub(super) async fn wait_for_end(&mut self) -> Result<&Ended, String> {
        if self.ended.is_none() {
            let client = self.client.as_mut().ok_or("there is no client")?;
            // A client that closes may wait for the answer, which comes when its Close is read.
            let reading = self.conns.values_mut().map(super::conn::Conn::read_on);
            let mut reading: FuturesUnordered<_> = reading.collect();
            let ended = timeout_at(self.deadline, async {
                loop {
                    tokio::select! {
                        ended = client.ended.as_mut() => break ended,
                        Some(()) = reading.next() => {}
                    }
                }
            });
            let ended = ended.await;
            drop(reading);
            self.ended = Some(ended.map_err(|_| "the client does not end")?);
        }
        self.ended
            .as_ref()
            .ok_or_else(|| "the client does not end".to_owned())
    }

    pub(super) async fn alone(&mut self) -> Result<(), String> {
        let client = self.client.as_mut().ok_or("there is no client")?;
        match timeout(self.settings.quiet, client.connections.recv()).await {
            Ok(Some(_)) => Err("the client connects again".to_owned()),
            _ => Ok(()),
        }
    }

    pub(super) fn log_frame(&mut self, connection: u8, sent: bool, frame: &Frame) {
        let text = match frame {
            Frame::Text(text) => {
                self.follow(connection, sent, text);
                secrets::frame(text, &Shown::default()).into_owned()
            }
            Frame::Binary(bytes) => format!("(binary, {} bytes)", bytes.len()),
            Frame::Ping(_) => "(ping)".to_owned(),
            Frame::Pong(_) => "(pong)".to_owned(),
            Frame::Close(code) => {
                if !sent {
                    self.close = Some(*code);
                }
                format!("(close {code})")
            }
            Frame::End(why) => format!("({why})"),
        };
        self.log(connection, sent, &text);
    }

    /// Notes what the peer does against the order of its protocol.
    fn follow(&mut self, connection: u8, sent: bool, text: &str) {
        let Some(order) = self.orders.get_mut(&connection) else {
            return;
        };
        let (protocol, is_client) = (self.suite.protocol, matches!(self.peer, Peer::Client(_)));
        let from = match is_client == sent {
            true => Side::Server,
            false => Side::Client,
        };
        let (line, at) = (self.evidence.len() + 1, self.started.elapsed());
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
            self.disorder.get_or_insert_with(|| words(wrong));
        }
        match observed.judged.fault {
            None => self.is_known |= observed.judged.is_known,
            Some(fault) => {
                let other = Protocol::of_frame(text).filter(|it| *it != protocol && !self.is_known);
                self.foreign = self.foreign.or(other);
                self.misshapen.get_or_insert_with(|| words(fault.error));
            }
        }
    }

    pub(super) fn log(&mut self, connection: u8, sent: bool, text: &str) {
        if self.evidence.len() < MAX_EVIDENCE.0 {
            // What is cut before could end with a part of a secret.
            let text = self.redacted(text);
            let text = rpc_core::text::beginning(&text, MAX_EVIDENCE.1).to_owned();
            let millis = self.started.elapsed().as_millis();
            self.evidence.push(Entry {
                millis,
                connection,
                sent,
                text,
            });
        }
    }

    pub(super) fn redacted(&self, text: &str) -> String {
        let secrets = SECRETS.iter().filter_map(|name| self.variables.text(name));
        let secrets = secrets.filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| hide(&text, secret))
    }
}

pub(super) fn is_status(wanted: &str, status: u16) -> Result<(), String> {
    let status = status.to_string();
    let (negated, digits) = match wanted.strip_prefix('!') {
        Some(digits) => (true, digits),
        None => (false, wanted),
    };
    let same = digits.len() == status.len()
        && digits
            .chars()
            .zip(status.chars())
            .all(|(w, s)| w == 'x' || w == s);
    if same == negated {
        Err(format!("the status is {status}, expected {wanted}"))
    } else {
        Ok(())
    }
}

pub(super) fn found(regex: &str, text: &str, what: &str) -> Result<(), String> {
    let regex = regex::Regex::new(regex).map_err(|error| error.to_string())?;
    if regex.is_match(text) {
        Ok(())
    } else {
        Err(format!("{what} is {:?}, expected {regex}", short(text)))
    }
}
