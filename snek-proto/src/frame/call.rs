//! [`Call`]: a request with typed arguments.

use rpc_core::json::{self, LooseStr};
use rpc_core::{Json, Limits, Secret, Str};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::client::ClientFrame;
use super::types::Final;
use crate::error::RpcError;
use crate::id::{ChannelUid, is_channel_uid};

/// The method of [`Call::Login`]: its arguments must not be logged.
pub(crate) const LOGIN: &str = "login";

/// A request of the client with typed arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Call {
    /// Log in; the first call on a connection.
    Login {
        /// The login name.
        username: Str,
        /// The password.
        password: Secret<Str>,
    },
    /// Ask for a user's record.
    GetUser {
        /// The user; `None` is the logged-in user.
        username: Option<Str>,
    },
    /// Ask for the channels that the user can see.
    GetChannels,
    /// Post a message, or replace the message being streamed.
    SendMessage {
        /// The channel.
        channel_uid: ChannelUid,
        /// The whole text so far.
        message: Str,
        /// Whether the text is complete.
        is_final: Final,
    },
    /// Show a coloured typing indicator.
    SetTyping {
        /// The channel.
        channel_uid: ChannelUid,
        /// The colour, `#` and six hex digits.
        color: Str,
    },
    /// Tell the server that the client is alive. Not the WebSocket ping.
    Ping,
    /// A method that this crate does not know.
    Unknown {
        /// Its name.
        method: Str,
        /// The positional arguments, a JSON array.
        args: Json,
        /// The named arguments, a JSON object.
        kwargs: Json,
    },
}

/// The most parameters that a known method has.
const MOST: usize = 3;

/// An argument, if it is given; `Some(None)` is null.
type OptionalText = Option<Option<LooseStr>>;

#[derive(Deserialize)]
struct Positional(
    #[serde(default, deserialize_with = "given")] OptionalText,
    #[serde(default, deserialize_with = "given")] OptionalText,
    #[serde(default, deserialize_with = "given")] OptionalText,
);

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<OptionalText, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

/// The arguments of one call.
struct Args {
    method: &'static str,
    parameters: &'static [&'static str],
    /// In the order of the parameters.
    given: [OptionalText; MOST],
}

impl Args {
    fn read(
        method: &'static str,
        parameters: &'static [&'static str],
        frame: &ClientFrame,
    ) -> Result<Self, RpcError> {
        let max = parameters.len();
        let too_many =
            |got| RpcError::new(format!("{method} takes {max} arguments, {got} were given"));
        let Ok(Positional(first, second, third)) = frame.args.parse() else {
            let limits = Limits {
                max_items: usize::MAX,
                ..Limits::default()
            };
            let all: Result<Vec<IgnoredAny>, _> = json::parse(frame.args.get(), &limits);
            return Err(match all.map_or(0, |all| all.len()) {
                count if count > max => too_many(count),
                _ => RpcError::new(format!("{method}: args is not made of valid texts")),
            });
        };
        let mut given = [first, second, third];
        let count = given.iter().flatten().count();
        if count > max {
            return Err(too_many(count));
        }
        let mut twice = None;
        let read = json::each_member(frame.kwargs.get(), |name, value| {
            let name = match &*name {
                // The specification's own names.
                "message_text" => "message",
                "html_color_code" => "color",
                name => name,
            };
            for (parameter, slot) in parameters.iter().zip(&mut given) {
                if *parameter == name {
                    let value = json::parse(value, &Limits::default());
                    let value = value.unwrap_or(Some(LooseStr::Other));
                    twice = twice.or(slot.replace(value).map(|_| *parameter));
                }
            }
        });
        match (read, twice) {
            (Err(_), _) => Err(shape("kwargs", "an object")),
            (Ok(()), Some(name)) => Err(RpcError::new(format!(
                "{method} got the argument {name} twice"
            ))),
            (Ok(()), None) => Ok(Self {
                method,
                parameters,
                given,
            }),
        }
    }

    /// Takes the argument of a parameter.
    fn take(&mut self, name: &'static str) -> OptionalText {
        let mut all = self.parameters.iter().zip(&mut self.given);
        all.find(|(parameter, _)| **parameter == name)?.1.take()
    }

    fn require(&mut self, name: &'static str) -> Result<Option<LooseStr>, RpcError> {
        let method = self.method;
        let missing = || RpcError::new(format!("{method} needs the argument {name}"));
        self.take(name).ok_or_else(missing)
    }

    fn wrong(&self, name: &str, expected: &str) -> RpcError {
        RpcError::new(format!("{}: {name} is not {expected}", self.method))
    }

    fn str(&mut self, name: &'static str) -> Result<Str, RpcError> {
        self.text(name, |_| true, "a string")
    }

    /// Takes a text of this form.
    fn text(
        &mut self,
        name: &'static str,
        is_valid: fn(&str) -> bool,
        form: &'static str,
    ) -> Result<Str, RpcError> {
        match self.require(name)? {
            Some(LooseStr::Str(text)) if is_valid(&text) => Ok(text),
            Some(LooseStr::Str(_)) => Err(self.wrong(name, form)),
            _ => Err(self.wrong(name, "a string")),
        }
    }

    /// The platform's sample bots leave it out, as its events do.
    fn is_final(&mut self) -> Result<Final, RpcError> {
        match self.take("is_final").flatten() {
            None => Ok(Final::Yes),
            Some(LooseStr::Bool(is_final)) => Ok(is_final.into()),
            _ => Err(self.wrong("is_final", "true or false")),
        }
    }

    fn channel(&mut self) -> Result<Str, RpcError> {
        self.text("channel_uid", is_channel_uid, "a channel uid")
    }
}

fn shape(name: &str, expected: &str) -> RpcError {
    RpcError::new(format!("member `{name}` is not {expected}"))
}

impl Call {
    pub(crate) fn read(frame: ClientFrame) -> Result<Self, RpcError> {
        if frame.args.first_byte() != b'[' {
            return Err(shape("args", "an array"));
        }
        if frame.kwargs.first_byte() != b'{' {
            return Err(shape("kwargs", "an object"));
        }
        Ok(match &*frame.method {
            LOGIN => {
                let mut args = Args::read(LOGIN, &["username", "password"], &frame)?;
                Self::Login {
                    username: args.str("username")?,
                    password: Secret::new(args.str("password")?),
                }
            }
            "get_user" => {
                let mut args = Args::read("get_user", &["username"], &frame)?;
                Self::GetUser {
                    username: match args.take("username") {
                        None | Some(None) => None,
                        Some(Some(LooseStr::Str(username))) => Some(username),
                        Some(_) => return Err(args.wrong("username", "a string")),
                    },
                }
            }
            "get_channels" => Args::read("get_channels", &[], &frame).map(|_| Self::GetChannels)?,
            "send_message" => {
                let parameters = &["channel_uid", "message", "is_final"];
                let mut args = Args::read("send_message", parameters, &frame)?;
                Self::SendMessage {
                    channel_uid: args.channel()?.into(),
                    message: args.str("message")?,
                    is_final: args.is_final()?,
                }
            }
            "set_typing" => {
                let mut args = Args::read("set_typing", &["channel_uid", "color"], &frame)?;
                let is_color = crate::color::is_html_color;
                Self::SetTyping {
                    channel_uid: args.channel()?.into(),
                    color: args.text("color", is_color, "a colour like #FF0000")?,
                }
            }
            "ping" => Args::read("ping", &[], &frame).map(|_| Self::Ping)?,
            _ => Self::Unknown {
                method: frame.method,
                args: frame.args,
                kwargs: frame.kwargs,
            },
        })
    }

    /// Returns the method's name.
    #[must_use]
    pub fn method(&self) -> &str {
        match self {
            Self::Unknown { method, .. } => method,
            known => known.known().unwrap_or_default(),
        }
    }

    /// Returns the name of a method that this crate knows.
    pub(crate) const fn known(&self) -> Option<&'static str> {
        Some(match self {
            Self::Login { .. } => LOGIN,
            Self::GetUser { .. } => "get_user",
            Self::GetChannels => "get_channels",
            Self::SendMessage { .. } => "send_message",
            Self::SetTyping { .. } => "set_typing",
            Self::Ping => "ping",
            Self::Unknown { .. } => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_call(text: &str, check: impl FnOnce(Result<Call, RpcError>)) {
        check(
            ClientFrame::decode(text, &Limits::default())
                .unwrap()
                .call(),
        );
    }

    #[test]
    fn arguments_are_positional_or_named() {
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
    fn get_user_without_arguments_means_oneself() {
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
    fn invalid_arguments_are_named() {
        for (text, message) in [
            (
                r#"{"method":"ping","args":{}}"#,
                "member `args` is not an array",
            ),
            (
                r#"{"method":"dance","kwargs":[]}"#,
                "member `kwargs` is not an object",
            ),
            (
                r#"{"method":"get_user","args":["a","b","c","d"]}"#,
                "get_user takes 1 arguments, 4 were given",
            ),
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
                    (&*method, args.get(), kwargs.get()),
                    ("search_user", "[ 1 ]", r#"{"q":2}"#)
                );
            },
        );
    }
}
