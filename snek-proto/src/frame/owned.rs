//! [`OwnedCall`]: a typed request that outlives its text.

use rpc_core::Secret;
use rpc_core::decode::{FrameCopy, SharedJson, SharedStr};

use super::call::Call;
use super::types::Final;

/// A [`Call`] whose texts share one copy of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnedCall {
    /// Log in.
    Login {
        /// The login name.
        username: SharedStr,
        /// The password.
        password: Secret<SharedStr>,
    },
    /// Ask for a user's record.
    GetUser {
        /// Whose; `None` is the user that is logged in.
        username: Option<SharedStr>,
    },
    /// Ask for the channels that the user sees.
    GetChannels,
    /// Post a message, or replace the message being streamed.
    SendMessage {
        /// Where to.
        channel_uid: SharedStr,
        /// The whole text so far.
        message: SharedStr,
        /// Whether the text is complete.
        is_final: Final,
    },
    /// Show a coloured typing indicator.
    SetTyping {
        /// Where.
        channel_uid: SharedStr,
        /// The colour, `#` and six hex digits.
        color: SharedStr,
    },
    /// Say that the client is alive.
    Ping,
    /// A method that this crate does not know.
    Unknown {
        /// Its name.
        method: SharedStr,
        /// The positional arguments, a JSON array.
        args: SharedJson,
        /// The named arguments, a JSON object.
        kwargs: SharedJson,
    },
}

impl OwnedCall {
    /// Copies a call that was decoded from the text behind `copy`.
    pub(crate) fn copied(call: &Call<'_>, copy: &FrameCopy<'_>) -> Self {
        match call {
            Call::Login { username, password } => Self::Login {
                username: copy.str(username),
                password: Secret::new(copy.str(password.expose())),
            },
            Call::GetUser { username } => Self::GetUser {
                username: username.as_deref().map(|name| copy.str(name)),
            },
            Call::GetChannels => Self::GetChannels,
            Call::SendMessage {
                channel_uid,
                message,
                is_final,
            } => Self::SendMessage {
                channel_uid: copy.str(channel_uid),
                message: copy.str(message),
                is_final: *is_final,
            },
            Call::SetTyping { channel_uid, color } => Self::SetTyping {
                channel_uid: copy.str(channel_uid),
                color: copy.str(color),
            },
            Call::Ping => Self::Ping,
            Call::Unknown {
                method,
                args,
                kwargs,
            } => Self::Unknown {
                method: copy.str(method),
                args: copy.json_text(args),
                kwargs: copy.json_text(kwargs),
            },
        }
    }

    /// The method's name.
    #[must_use]
    pub fn method(&self) -> &str {
        match self {
            Self::Login { .. } => "login",
            Self::GetUser { .. } => "get_user",
            Self::GetChannels => "get_channels",
            Self::SendMessage { .. } => "send_message",
            Self::SetTyping { .. } => "set_typing",
            Self::Ping => "ping",
            Self::Unknown { method, .. } => method,
        }
    }
}
