//! [`Call`]: a request with typed arguments.

use std::borrow::Cow;

use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, Reader, Slot};
use rpc_core::{Limits, Secret};

use super::client::ClientFrame;
use super::types::Final;
use crate::id::is_channel_uid;

/// A request of the client with its arguments read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Call<'a> {
    /// Log in; the first call on a connection.
    Login {
        /// The login name.
        username: Cow<'a, str>,
        /// The password.
        password: Secret<Cow<'a, str>>,
    },
    /// Ask for a user's record.
    GetUser {
        /// Whose; `None` is the user that is logged in.
        username: Option<Cow<'a, str>>,
    },
    /// Ask for the channels that the user sees.
    GetChannels,
    /// Post a message, or replace the message being streamed.
    SendMessage {
        /// Where to.
        channel_uid: Cow<'a, str>,
        /// The whole text so far.
        message: Cow<'a, str>,
        /// Whether the text is complete.
        is_final: Final,
    },
    /// Show a coloured typing indicator.
    SetTyping {
        /// Where.
        channel_uid: Cow<'a, str>,
        /// The colour, `#` and six hex digits.
        color: Cow<'a, str>,
    },
    /// Say that the client is alive. Not the WebSocket ping.
    Ping,
    /// A method that this crate does not know.
    Unknown {
        /// Its name.
        method: &'a str,
        /// The positional arguments, a JSON array.
        args: &'a str,
        /// The named arguments, a JSON object.
        kwargs: &'a str,
    },
}

/// The methods that this crate knows. Not exhaustive: a server may have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// `login`
    Login,
    /// `get_user`
    GetUser,
    /// `get_channels`
    GetChannels,
    /// `send_message`
    SendMessage,
    /// `set_typing`
    SetTyping,
    /// `ping`
    Ping,
}

impl Method {
    /// Every known method.
    pub const ALL: [Self; 6] = [
        Self::Login,
        Self::GetUser,
        Self::GetChannels,
        Self::SendMessage,
        Self::SetTyping,
        Self::Ping,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::GetUser => "get_user",
            Self::GetChannels => "get_channels",
            Self::SendMessage => "send_message",
            Self::SetTyping => "set_typing",
            Self::Ping => "ping",
        }
    }

    /// The method of this exact name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// The parameters in order.
    const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Login => &["username", "password"],
            Self::GetUser => &["username"],
            Self::GetChannels | Self::Ping => &[],
            Self::SendMessage => &["channel_uid", "message", "is_final"],
            Self::SetTyping => &["channel_uid", "color"],
        }
    }
}

/// Arguments that a known method does not take. The text is the answer's error text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArgsError {
    /// More positional arguments than parameters.
    #[error("{method} takes {max} arguments, {got} were given")]
    TooMany {
        /// The method.
        method: &'static str,
        /// How many it takes.
        max: usize,
        /// How many came.
        got: usize,
    },
    /// An argument is missing.
    #[error("{method} needs the argument {name}")]
    Missing {
        /// The method.
        method: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// An argument came by position and by name.
    #[error("{method} got the argument {name} twice")]
    Twice {
        /// The method.
        method: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// An argument has the wrong type, or a value that the protocol does not allow.
    #[error("{method}: {name} is not {expected}")]
    Wrong {
        /// The method.
        method: &'static str,
        /// The parameter.
        name: &'static str,
        /// What it should be, with its article.
        expected: &'static str,
    },
}

/// The most parameters that a known method has.
const MOST: usize = 3;

/// The first positional arguments, raw, and how many there are.
#[derive(Default)]
struct Positional<'a> {
    first: [Option<RawJson<'a>>; MOST],
    count: usize,
}

impl<'a> Positional<'a> {
    fn read(args: &'a str) -> Result<Self, DecodeError> {
        let mut list = Self::default();
        Reader::new(args).items(usize::MAX, |reader| {
            match list.first.get_mut(list.count) {
                Some(slot) => *slot = Some(reader.raw_or_null()?),
                None => reader.skip()?,
            }
            list.count += 1;
            Ok(())
        })?;
        Ok(list)
    }
}

/// Named arguments. The specification's own names of two parameters are taken too.
#[derive(Default)]
struct Named<'a> {
    username: Slot<RawJson<'a>>,
    password: Slot<RawJson<'a>>,
    channel_uid: Slot<RawJson<'a>>,
    message: Slot<RawJson<'a>>,
    is_final: Slot<RawJson<'a>>,
    color: Slot<RawJson<'a>>,
}

impl<'a> Members<'a> for Named<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "username" => field.raw_or_null("username", &mut self.username),
            "password" => field.raw_or_null("password", &mut self.password),
            "channel_uid" => field.raw_or_null("channel_uid", &mut self.channel_uid),
            "message" | "message_text" => field.raw_or_null("message", &mut self.message),
            "is_final" => field.raw_or_null("is_final", &mut self.is_final),
            "color" | "html_color_code" => field.raw_or_null("color", &mut self.color),
            _ => field.skip(),
        }
    }
}

impl<'a> Named<'a> {
    fn get(&self, name: &str) -> Option<&RawJson<'a>> {
        let slot = match name {
            "username" => &self.username,
            "password" => &self.password,
            "channel_uid" => &self.channel_uid,
            "message" => &self.message,
            "is_final" => &self.is_final,
            "color" => &self.color,
            _ => return None,
        };
        slot.get()
    }
}

/// The arguments of one call, by parameter.
struct Args<'a> {
    method: Method,
    positional: Positional<'a>,
    named: Named<'a>,
}

impl<'a> Args<'a> {
    fn read(method: Method, args: &'a str, kwargs: &'a str) -> Result<Self, ArgsError> {
        // The frame's own size and syntax were checked when it was decoded, so what can go wrong
        // here is a named argument that comes twice.
        let limits = Limits::default().with_max_message_bytes(usize::MAX);
        let positional = Positional::read(args).map_err(|_| ArgsError::Wrong {
            method: method.name(),
            name: "args",
            expected: "an array",
        })?;
        let named = if kwargs == "{}" {
            Named::default()
        } else {
            decode::object(kwargs, &limits).map_err(|_| ArgsError::Wrong {
                method: method.name(),
                name: "kwargs",
                expected: "an object with each name once",
            })?
        };
        let max = method.parameters().len();
        if positional.count > max {
            return Err(ArgsError::TooMany {
                method: method.name(),
                max,
                got: positional.count,
            });
        }
        Ok(Self {
            method,
            positional,
            named,
        })
    }

    /// The argument of a parameter, by position or by name; null is a value.
    fn get(&self, name: &'static str) -> Result<Option<RawJson<'a>>, ArgsError> {
        let index = self
            .method
            .parameters()
            .iter()
            .position(|parameter| *parameter == name);
        let by_position = index.and_then(|at| self.positional.first.get(at)?.as_ref());
        match (by_position, self.named.get(name)) {
            (Some(_), Some(_)) => Err(ArgsError::Twice {
                method: self.method.name(),
                name,
            }),
            (first, second) => Ok(first.or(second).cloned()),
        }
    }

    fn require(&self, name: &'static str) -> Result<RawJson<'a>, ArgsError> {
        self.get(name)?.ok_or(ArgsError::Missing {
            method: self.method.name(),
            name,
        })
    }

    fn wrong(&self, name: &'static str, expected: &'static str) -> ArgsError {
        ArgsError::Wrong {
            method: self.method.name(),
            name,
            expected,
        }
    }

    fn str(&self, name: &'static str) -> Result<Cow<'a, str>, ArgsError> {
        let raw = self.require(name)?;
        raw.into_str().ok_or_else(|| self.wrong(name, "a string"))
    }

    fn channel(&self) -> Result<Cow<'a, str>, ArgsError> {
        let uid = self.str("channel_uid")?;
        if is_channel_uid(&uid) {
            Ok(uid)
        } else {
            Err(self.wrong("channel_uid", "a channel uid"))
        }
    }

    fn color(&self) -> Result<Cow<'a, str>, ArgsError> {
        let color = self.str("color")?;
        if crate::color::is_html_color(&color) {
            Ok(color)
        } else {
            Err(self.wrong("color", "a colour like #FF0000"))
        }
    }

    fn is_final(&self) -> Result<Final, ArgsError> {
        match self.require("is_final")?.get() {
            "true" => Ok(Final::Yes),
            "false" => Ok(Final::No),
            _ => Err(self.wrong("is_final", "true or false")),
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn read(frame: &'a ClientFrame<'_>) -> Result<Self, ArgsError> {
        let Some(method) = Method::from_name(frame.method()) else {
            return Ok(Self::Unknown {
                method: frame.method(),
                args: frame.args(),
                kwargs: frame.kwargs(),
            });
        };
        let args = Args::read(method, frame.args(), frame.kwargs())?;
        Ok(match method {
            Method::Login => Self::Login {
                username: args.str("username")?,
                password: Secret::new(args.str("password")?),
            },
            Method::GetUser => Self::GetUser {
                username: match args.get("username")? {
                    Some(raw) if !raw.is_null() => Some(args.str("username")?),
                    _ => None,
                },
            },
            Method::GetChannels => Self::GetChannels,
            Method::SendMessage => Self::SendMessage {
                channel_uid: args.channel()?,
                message: args.str("message")?,
                is_final: args.is_final()?,
            },
            Method::SetTyping => Self::SetTyping {
                channel_uid: args.channel()?,
                color: args.color()?,
            },
            Method::Ping => Self::Ping,
        })
    }

    /// The method's name.
    #[must_use]
    pub const fn method(&self) -> &str {
        match self {
            Self::Login { .. } => Method::Login.name(),
            Self::GetUser { .. } => Method::GetUser.name(),
            Self::GetChannels => Method::GetChannels.name(),
            Self::SendMessage { .. } => Method::SendMessage.name(),
            Self::SetTyping { .. } => Method::SetTyping.name(),
            Self::Ping => Method::Ping.name(),
            Self::Unknown { method, .. } => method,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_call(text: &str, check: impl FnOnce(Result<Call<'_>, ArgsError>)) {
        check(
            ClientFrame::decode(text, &Limits::default())
                .unwrap()
                .call(),
        );
    }

    #[test]
    fn arguments_come_by_position_or_by_name() {
        for text in [
            r##"{"method":"set_typing","args":["ch1","#FF0000"]}"##,
            r##"{"method":"set_typing","args":["ch1"],"kwargs":{"color":"#FF0000"}}"##,
            r##"{"method":"set_typing","kwargs":{"html_color_code":"#FF0000","channel_uid":"ch1","x":1}}"##,
        ] {
            with_call(text, |call| {
                let Ok(Call::SetTyping { channel_uid, color }) = call else {
                    panic!("{call:?}")
                };
                assert_eq!((&*channel_uid, &*color), ("ch1", "#FF0000"));
            });
        }
    }

    #[test]
    fn get_user_takes_null_or_nothing_for_oneself() {
        for args in ["[]", "[null]"] {
            with_call(
                &format!(r#"{{"method":"get_user","args":{args}}}"#),
                |call| {
                    assert!(matches!(call, Ok(Call::GetUser { username: None })));
                },
            );
        }
        with_call(r#"{"method":"get_user","args":["ann"]}"#, |call| {
            assert!(matches!(call, Ok(Call::GetUser { username: Some(name) }) if name == "ann"));
        });
    }

    #[test]
    fn a_password_is_not_printed() {
        with_call(r#"{"method":"login","args":["ann","hunter2"]}"#, |call| {
            assert!(!format!("{call:?}").contains("hunter2"));
        });
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (text, message) in [
            (
                r#"{"method":"ping","args":[1]}"#,
                "ping takes 0 arguments, 1 were given",
            ),
            (
                r#"{"method":"login","args":["a"]}"#,
                "login needs the argument password",
            ),
            (
                r#"{"method":"login","args":["a",1]}"#,
                "login: password is not a string",
            ),
            (
                r#"{"method":"login","args":["a","b"],"kwargs":{"username":"c"}}"#,
                "login got the argument username twice",
            ),
            (
                r#"{"method":"send_message","args":["a b","x",true]}"#,
                "send_message: channel_uid is not a channel uid",
            ),
            (
                r#"{"method":"send_message","args":["ch1","x",1]}"#,
                "send_message: is_final is not true or false",
            ),
            (
                r#"{"method":"set_typing","args":["ch1","red"]}"#,
                "set_typing: color is not a colour like #FF0000",
            ),
        ] {
            with_call(text, |call| {
                assert_eq!(call.unwrap_err().to_string(), message);
            });
        }
    }

    #[test]
    fn an_unknown_method_keeps_its_arguments_raw() {
        with_call(
            r#"{"method":"search_user","args":[ 1 ],"kwargs":{"q":2}}"#,
            |call| {
                let Ok(Call::Unknown {
                    method,
                    args,
                    kwargs,
                }) = call
                else {
                    panic!("{call:?}")
                };
                assert_eq!(
                    (method, args, kwargs),
                    ("search_user", "[ 1 ]", r#"{"q":2}"#)
                );
            },
        );
    }
}
