//! [`Dialect`]: the frames of each protocol, read with the types of its crate.

use std::borrow::Cow;

use acolyte_proto::event::Event;
use acolyte_proto::frame as acolyte;
use acolyte_proto::http::StreamFrame;
use connectonion_proto::frame as connectonion;
use exoclaw_proto::frame as exoclaw;
use rpc_core::json::each_member;
use rpc_core::testing::Side;
use rpc_core::{DecodeError, Json, Limits};
use serde::Serialize;
use smarthole_proto::frame as smarthole;
use snek_proto::frame as snek;

use super::Protocol;
use crate::screen;

/// What ConnectOnion hosts send beside what the specification has. Clients ignore it.
const OF_HOSTS: [&str; 4] = [
    "AGENT_PROFILE",
    "DASHBOARD_SNAPSHOT",
    "turn_result",
    "user_message",
];

/// Frames of ConnectOnion's encrypted transport, which the specification does not have either.
const SEALED: [&str; 3] = ["SEAL", "SEALED", "SEALED_OK"];

/// What a frame says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The kind of the frame, such as `chat.send`; with a slash before what it carries.
    pub kind: String,
    /// Whether the crate knows the kind.
    pub is_known: bool,
    /// What it belongs to.
    pub link: Link,
    /// What it says, in a few words.
    pub words: Option<String>,
}

/// How a frame belongs to another one, by the id that both have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Not at all.
    None,
    /// Others answer it.
    Asks(Cow<'static, str>),
    /// It answers.
    Answers(Cow<'static, str>),
}

/// Why a text is not a frame of its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What is wrong.
    pub error: String,
    /// The byte of the text where it is wrong, from 0.
    pub at: usize,
}

impl Fault {
    fn decode(text: &str, error: &DecodeError) -> Self {
        // What is no JSON is wrong at one place for all protocols.
        let broken = Json::new(text).err();
        let error = broken.as_ref().unwrap_or(error);
        let line = text.split_inclusive('\n').take(error.line() - 1);
        let before: usize = line.map(str::len).sum();
        let words = error.to_string();
        // The place is shown, not told.
        let mut words = words.split(" (line ").next().unwrap_or_default().to_owned();
        if let Some(frame) = error.frame() {
            words = format!("{words}, in `{frame}`");
        }
        if !error.path().is_empty() {
            words = format!("{words}, at {}", error.path().join("."));
        }
        Self {
            error: words,
            at: (before + error.column() - 1).min(text.len()),
        }
    }

    /// An error somewhere in a member of the frame.
    fn inside(text: &str, member: &str, error: &impl ToString) -> Self {
        let mut at = 0;
        let _ = each_member(text, |name, raw| {
            if name == member {
                at = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
            }
        });
        let error = error.to_string();
        Self { error, at }
    }
}

/// The reader of the frames of one connection.
#[derive(Debug)]
pub enum Dialect {
    /// Snek.
    Snek(screen::snek::Frames),
    /// Exoclaw, and whether nothing was said yet: a gateway takes any object with a token for the first frame.
    Exoclaw(screen::exoclaw::Frames, bool),
    /// SmartHole.
    SmartHole(screen::smarthole::Frames),
    /// ConnectOnion.
    ConnectOnion,
    /// Acolyte.
    Acolyte(screen::acolyte::Frames),
}

impl From<Protocol> for Dialect {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Snek => Self::Snek(screen::snek::Frames::default()),
            Protocol::Exoclaw => Self::Exoclaw(screen::exoclaw::Frames::default(), true),
            Protocol::SmartHole => Self::SmartHole(screen::smarthole::Frames::default()),
            Protocol::ConnectOnion => Self::ConnectOnion,
            Protocol::Acolyte => Self::Acolyte(screen::acolyte::Frames::default()),
        }
    }
}

/// Returns a frame without its secrets. What cannot be read may be half a secret and is not shown. What is
/// borrowed is the whole frame.
#[must_use]
pub fn redact(protocol: Protocol, from: Side, text: &str) -> Cow<'_, str> {
    match protocol {
        Protocol::Snek => match snek_proto::codec::redact(text) {
            // It could be a frame of the server, but the client has sent it.
            Cow::Borrowed(_)
                if from == Side::Client
                    && snek::ClientFrame::decode(text, &Limits::unlimited()).is_err() =>
            {
                Cow::Owned(format!("(no frame, {} bytes)", text.len()))
            }
            redacted => redacted,
        },
        Protocol::Exoclaw => exoclaw_proto::codec::redact(text),
        Protocol::ConnectOnion => connectonion_proto::codec::redact(text),
        Protocol::SmartHole | Protocol::Acolyte => Cow::Borrowed(text),
    }
}

impl Dialect {
    /// Reads a frame. Its words are those of `other`, if there is one: the text without secrets, or
    /// with the beginnings of its long texts only.
    ///
    /// # Errors
    /// [`Fault`] if it is not a frame of this protocol.
    pub fn read(&mut self, from: Side, text: &str, other: Option<&str>) -> Result<Reading, Fault> {
        let limits = Limits::unlimited();
        let wrong = |error: DecodeError| Fault::decode(text, &error);
        let (kind, is_known, link, words) = match (self, from) {
            (Self::Snek(frames), Side::Client) => {
                let frame = snek::ClientFrame::decode(text, &limits).map_err(wrong)?;
                let call = frame
                    .call()
                    .map_err(|it| Fault::inside(text, "args", &it))?;
                let is_known = !matches!(call, snek::Call::Unknown { .. });
                let link = asks(frame.call_id.as_ref().map(|id| id.get().to_owned()));
                let kind = frame.method.to_string();
                let shown = shown(frame, other, |it| {
                    snek::ClientFrame::decode(it, &limits).ok()
                });
                let words = shown.map(|it| frames.request(&it));
                (kind, is_known, link, words)
            }
            (Self::Snek(frames), Side::Server) => {
                let frame = snek::ServerFrame::decode(text, &limits).map_err(wrong)?;
                let id = frame.call_id().map(|id| id.get().to_owned());
                let (event, words) = match other {
                    None if id.is_none() => {
                        let event = frame.into_event().transpose().map_err(wrong)?;
                        let words = event.as_ref().map(screen::snek::told);
                        (event, words)
                    }
                    _ => {
                        let event = frame.clone().into_event().transpose().map_err(wrong)?;
                        let shown = shown(frame, other, |it| {
                            snek::ServerFrame::decode(it, &limits).ok()
                        });
                        (event, shown.and_then(|it| frames.heard(it)))
                    }
                };
                match event {
                    Some(event) => {
                        let is_known = !matches!(event, snek::Event::Unknown(_));
                        (event.name().to_owned(), is_known, Link::None, words)
                    }
                    None => ("answer".to_owned(), true, answers(id), words),
                }
            }
            (Self::Exoclaw(frames, is_new), Side::Client) => {
                let is_first = std::mem::take(is_new);
                let frame = exoclaw::ClientFrame::decode(text, &limits);
                let frame = frame.or_else(|error| {
                    let token = exoclaw::Token::decode(text, &limits).ok();
                    let token = token.filter(|_| is_first);
                    token.map(exoclaw::ClientFrame::Token).ok_or(error)
                });
                let frame = frame.map_err(wrong)?;
                match frame {
                    exoclaw::ClientFrame::Request(request) => {
                        if let Some(refusal) = request.call.refusal(&limits)
                            && exoclaw::Method::parse(request.call.tag()).is_some()
                        {
                            return Err(Fault::inside(text, "params", &refusal));
                        }
                        let is_known = !matches!(request.call, exoclaw::Call::Unknown { .. });
                        let link = asks(Some(request.id.text().into_owned()));
                        let kind = request.call.tag().to_owned();
                        let shown =
                            shown(request, other, |it| {
                                match exoclaw::ClientFrame::decode(it, &limits).ok()? {
                                    exoclaw::ClientFrame::Request(request) => Some(request),
                                    _ => None,
                                }
                            });
                        let words = shown.map(|it| frames.request(&it));
                        (kind, is_known, link, words)
                    }
                    _ => {
                        let words = other.map_or_else(|| "token".to_owned(), str::to_owned);
                        (
                            "token".to_owned(),
                            true,
                            Link::Asks("token".into()),
                            Some(words),
                        )
                    }
                }
            }
            (Self::Exoclaw(frames, is_new), Side::Server) => {
                *is_new = false;
                let frame = exoclaw::ServerFrame::decode(text, &limits).map_err(wrong)?;
                let (kind, is_known) = match &frame {
                    exoclaw::ServerFrame::Hello(_) => ("hello", true),
                    exoclaw::ServerFrame::Result { .. } => ("result", true),
                    exoclaw::ServerFrame::Stream { event, .. } => {
                        let is_known = !matches!(event, exoclaw::StreamEvent::Unknown { .. });
                        (event.tag(), is_known)
                    }
                    _ => ("error", true),
                };
                let link = match (&frame, frame.id()) {
                    (exoclaw::ServerFrame::Error { .. }, None) => Link::None,
                    (_, Some(id)) => answers(Some(id.to_owned())),
                    (_, None) => Link::Answers("token".into()),
                };
                let kind = kind.to_owned();
                let shown = shown(frame, other, |it| {
                    exoclaw::ServerFrame::decode(it, &limits).ok()
                });
                let words = shown.and_then(|it| frames.answer(&it));
                (kind, is_known, link, words)
            }
            (Self::SmartHole(frames), Side::Client) => {
                let frame = smarthole::ClientFrame::decode(text, &limits).map_err(wrong)?;
                let (kind, is_known, link) = match &frame {
                    smarthole::ClientFrame::Registration(payload) => {
                        let checked = smarthole_proto::validate::payload(payload.get());
                        checked.map_err(|it| Fault::inside(text, "payload", &it))?;
                        (
                            "registration".to_owned(),
                            true,
                            Link::Asks("registration".into()),
                        )
                    }
                    smarthole::ClientFrame::Response(response) => {
                        let is_known =
                            !matches!(response.answer, smarthole::Answer::Unknown { .. });
                        let kind = format!("response/{}", response.answer.tag());
                        let id = response.message_id.to_string();
                        (kind, is_known, answers(Some(id)))
                    }
                    other => (other.tag().to_owned(), false, Link::None),
                };
                let shown = shown(frame, other, |it| {
                    smarthole::ClientFrame::decode(it, &limits).ok()
                });
                let words = shown.and_then(|it| frames.said(&it));
                (kind, is_known, link, words)
            }
            (Self::SmartHole(frames), Side::Server) => {
                let frame = smarthole::ServerFrame::decode(text, &limits).map_err(wrong)?;
                let (kind, is_known, link) = match &frame {
                    smarthole::ServerFrame::RegistrationResponse(_) => {
                        let link = Link::Answers("registration".into());
                        ("registration_response", true, link)
                    }
                    smarthole::ServerFrame::Message(message) => {
                        ("message", true, asks(Some(message.id.to_string())))
                    }
                    other => (other.tag(), false, Link::None),
                };
                let kind = kind.to_owned();
                let shown = shown(frame, other, |it| {
                    smarthole::ServerFrame::decode(it, &limits).ok()
                });
                let words = shown.and_then(|it| frames.heard(&it));
                (kind, is_known, link, words)
            }
            (Self::ConnectOnion, Side::Client) => {
                let frame = connectonion::ClientFrame::decode(text, &limits).map_err(wrong)?;
                let is_known = !matches!(frame, connectonion::ClientFrame::Unknown { .. });
                let is_known = is_known || SEALED.contains(&frame.name());
                let (kind, link) = (frame.name().to_owned(), said(&frame));
                let shown = shown(frame, other, |it| {
                    connectonion::ClientFrame::decode(it, &limits).ok()
                });
                let words = shown.and_then(|frame| screen::connectonion::said(&frame));
                (kind, is_known, link, words)
            }
            (Self::ConnectOnion, Side::Server) => {
                let frame = connectonion::ServerFrame::decode(text, &limits).map_err(wrong)?;
                let is_known = match &frame {
                    connectonion::ServerFrame::Unknown { .. } => false,
                    connectonion::ServerFrame::Event(event) => {
                        !matches!(event.kind, connectonion::EventKind::Unknown { .. })
                    }
                    _ => true,
                };
                let is_known =
                    is_known || OF_HOSTS.contains(&frame.name()) || SEALED.contains(&frame.name());
                let (kind, link) = (frame.name().to_owned(), heard(&frame));
                let shown = shown(frame, other, |it| {
                    connectonion::ServerFrame::decode(it, &limits).ok()
                });
                let words = shown.and_then(|frame| screen::connectonion::heard(&frame));
                (kind, is_known, link, words)
            }
            (Self::Acolyte(frames), Side::Client) => {
                let frame = acolyte::ClientFrame::decode(text, &limits);
                let frame = frame.map_err(|error| wrong(error.into()))?;
                let link = asks(Some(frame.id.to_string()));
                let kind = frame.request.tag().to_owned();
                let shown = shown(frame, other, |it| {
                    acolyte::ClientFrame::decode(it, &limits).ok()
                });
                let words = shown.map(|it| frames.asked(&it));
                (kind, true, link, words)
            }
            (Self::Acolyte(frames), Side::Server) => {
                let frame = acolyte::ServerFrame::decode(text, &limits);
                let frame = frame.map_err(|error| wrong(error.into()))?;
                let (kind, is_known) = match &frame.answer {
                    acolyte::Answer::Event(event) => {
                        let is_known = !matches!(event, Event::Unknown { .. });
                        (format!("chat.event/{}", event.tag()), is_known)
                    }
                    answer => {
                        let is_known = !matches!(answer, acolyte::Answer::Unknown { .. });
                        (answer.tag().to_owned(), is_known)
                    }
                };
                let link = answers(Some(frame.id.to_string()));
                let shown = shown(frame, other, |it| {
                    acolyte::ServerFrame::decode(it, &limits).ok()
                });
                let words = shown.and_then(|it| frames.heard(&it));
                (kind, is_known, link, words)
            }
        };
        Ok(Reading {
            kind,
            is_known,
            link,
            words,
        })
    }
}

/// Returns the frame whose words are shown. What cannot be read without its secrets is not.
fn shown<T>(frame: T, other: Option<&str>, decode: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    match other {
        Some(other) => decode(other),
        None => Some(frame),
    }
}

/// Reads a server-sent event of Acolyte.
///
/// # Errors
/// [`Fault`] if it is none.
pub fn read_sse(text: &str) -> Result<Reading, Fault> {
    let frame = StreamFrame::decode(text, &Limits::unlimited());
    let event = match frame.map_err(|error| Fault::decode(text, &error))? {
        StreamFrame::Event(event) => event,
        StreamFrame::Error(error) => Event::Error(error),
        StreamFrame::Done(reply) => {
            return Ok(Reading {
                kind: "done".to_owned(),
                is_known: true,
                link: Link::Answers("stream".into()),
                words: Some(format!("done {:?}", reply.output)),
            });
        }
        _ => {
            let error = "an event that is not known here".to_owned();
            return Err(Fault { error, at: 0 });
        }
    };
    Ok(Reading {
        kind: event.tag().to_owned(),
        is_known: !matches!(event, Event::Unknown { .. }),
        link: Link::Answers("stream".into()),
        words: screen::acolyte::happened(&event),
    })
}

fn asks(id: Option<String>) -> Link {
    id.map_or(Link::None, |id| Link::Asks(id.into()))
}

fn answers(id: Option<String>) -> Link {
    id.map_or(Link::None, |id| Link::Answers(id.into()))
}

/// What a frame of a ConnectOnion client belongs to. There are no ids: one thing happens at a time.
fn said(frame: &connectonion::ClientFrame) -> Link {
    use connectonion::ClientFrame as Frame;
    match frame {
        Frame::Connect(_) => Link::Asks("connect".into()),
        Frame::Input(_) => Link::Asks("run".into()),
        Frame::Response(_) => Link::Answers("question".into()),
        Frame::SessionQuery(_) => Link::Asks("status".into()),
        Frame::OnboardSubmit(_) => Link::Asks("onboard".into()),
        Frame::Admin(_) => Link::Asks("admin".into()),
        Frame::Pong => Link::Answers("ping".into()),
        _ => Link::None,
    }
}

fn heard(frame: &connectonion::ServerFrame) -> Link {
    use connectonion::ServerFrame as Frame;
    match frame {
        Frame::Connected(_) | Frame::OnboardRequired(_) => Link::Answers("connect".into()),
        Frame::Event(event) if event.kind.awaits().is_some() => Link::Asks("question".into()),
        Frame::Output(_) | Frame::RuntimeInputAck(_) | Frame::Event(_) => {
            Link::Answers("run".into())
        }
        Frame::SessionStatus(_) => Link::Answers("status".into()),
        Frame::OnboardSuccess(_) => Link::Answers("onboard".into()),
        Frame::AdminResult(_) => Link::Answers("admin".into()),
        Frame::Ping => Link::Asks("ping".into()),
        _ => Link::None,
    }
}

/// Returns a frame as the types of its crate write it: without the members that they do not know.
/// `None` if it is no frame.
pub(super) fn rewritten(
    protocol: Protocol,
    from: Side,
    is_sse: bool,
    text: &str,
) -> Option<String> {
    fn write(frame: &impl Serialize) -> Option<String> {
        Some(Json::of(frame).ok()?.get().to_owned())
    }
    let limits = Limits::unlimited();
    match (protocol, from) {
        (Protocol::Snek, Side::Client) => {
            let frame = snek::ClientFrame::decode(text, &limits).ok()?;
            frame.call().ok()?;
            write(&frame)
        }
        (Protocol::Snek, Side::Server) => {
            let frame = snek::ServerFrame::decode(text, &limits).ok()?;
            match frame.into_event() {
                Some(event) => write(&event.ok()?),
                None => Some(r#"{"callId":0,"success":0,"data":0,"error":0}"#.to_owned()),
            }
        }
        (Protocol::Exoclaw, Side::Client) => {
            write(&exoclaw::ClientFrame::decode(text, &limits).ok()?)
        }
        (Protocol::Exoclaw, Side::Server) => {
            write(&exoclaw::ServerFrame::decode(text, &limits).ok()?)
        }
        (Protocol::SmartHole, Side::Client) => {
            write(&smarthole::ClientFrame::decode(text, &limits).ok()?)
        }
        (Protocol::SmartHole, Side::Server) => {
            write(&smarthole::ServerFrame::decode(text, &limits).ok()?)
        }
        (Protocol::ConnectOnion, Side::Client) => {
            write(&connectonion::ClientFrame::decode(text, &limits).ok()?)
        }
        (Protocol::ConnectOnion, Side::Server) => {
            write(&connectonion::ServerFrame::decode(text, &limits).ok()?)
        }
        (Protocol::Acolyte, Side::Client) => {
            write(&acolyte::ClientFrame::decode(text, &limits).ok()?)
        }
        (Protocol::Acolyte, Side::Server) if is_sse => {
            let mut frame = StreamFrame::decode(text, &limits).ok()?;
            match &mut frame {
                StreamFrame::Event(event) => forget_event(event),
                StreamFrame::Error(error) => forget_detail(error),
                _ => {}
            }
            write(&frame)
        }
        (Protocol::Acolyte, Side::Server) => {
            let mut frame = acolyte::ServerFrame::decode(text, &limits).ok()?;
            match &mut frame.answer {
                acolyte::Answer::Status(status) => status.extra = acolyte::Extra::default(),
                acolyte::Answer::Event(event) => forget_event(event),
                acolyte::Answer::Failed(error) => forget_detail(error),
                _ => {}
            }
            write(&frame)
        }
    }
}

/// Forgets the unknown members that Acolyte's types keep.
fn forget_event(event: &mut Event) {
    match event {
        Event::ToolResult(result) => result.extra = acolyte::Extra::default(),
        Event::Error(error) => forget_detail(error),
        _ => {}
    }
}

fn forget_detail(error: &mut acolyte_proto::error::ChatError) {
    if let Some(detail) = &mut error.detail {
        detail.extra = acolyte::Extra::default();
    }
}
