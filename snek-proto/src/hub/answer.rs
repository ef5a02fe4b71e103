//! The answers of a [`Hub`] to the calls of a client.

use serde::Serialize;

use super::{ConnId, Hub, NO_SUCH_USER, NOT_LOGGED_IN};
use crate::error::RpcError;
use crate::frame::{Call, Channel, NoArgs, User};
use crate::id::ChannelUid;

/// The value of an answer; written as the `data` of the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HubAnswer(pub(crate) Data);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Data {
    /// A user's record.
    User(User),
    /// The user's channels.
    Channels(Vec<Channel>),
    /// A message or a typing indicator was sent.
    Sent {
        /// The channel.
        channel_uid: ChannelUid,
    },
    /// The answer to a ping: `{"pong": []}`.
    Pong {
        /// Always empty.
        pong: NoArgs,
    },
}

impl Hub {
    /// Carries out a call of a connection. A hub does not check logins: check the credentials, then
    /// [`connect`](Self::connect).
    ///
    /// # Errors
    /// [`RpcError`], which is the answer.
    pub fn handle(&mut self, conn: ConnId, call: &Call) -> Result<HubAnswer, RpcError> {
        let own = self.user_of(conn).ok_or(NOT_LOGGED_IN)?.username.clone();
        Ok(HubAnswer(match call {
            Call::GetUser { username } => {
                let username = username.as_ref().unwrap_or(&own);
                let user = self.user(username).ok_or(NO_SUCH_USER)?;
                Data::User(user.clone())
            }
            Call::GetChannels => Data::Channels(self.channels_of(&own)),
            Call::SendMessage {
                channel_uid,
                message,
                is_final,
            } => {
                self.send_message(&own, channel_uid, message.clone(), *is_final)?;
                let channel_uid = ChannelUid::new(channel_uid);
                Data::Sent { channel_uid }
            }
            Call::SetTyping { channel_uid, color } => {
                self.set_typing(&own, channel_uid, color)?;
                let channel_uid = ChannelUid::new(channel_uid);
                Data::Sent { channel_uid }
            }
            Call::Ping => Data::Pong { pong: [] },
            other => {
                let error = format!("unknown method {}", other.method());
                return Err(RpcError::new(error));
            }
        }))
    }
}
