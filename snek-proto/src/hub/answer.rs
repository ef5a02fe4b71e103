//! The answers of a [`Hub`] to the calls of a client.

use serde::Serialize;

use super::{ConnId, Hub, HubError};
use crate::codec::NoArgs;
use crate::frame::{Call, Channel, User};
use crate::id::ChannelUid;

/// The value of an answer; written as the `data` of the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum HubAnswer {
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
    /// [`HubError`]; use its text as the error text of the answer.
    pub fn handle(&mut self, conn: ConnId, call: &Call) -> Result<HubAnswer, HubError> {
        let own = self
            .user_of(conn)
            .ok_or(HubError::NotConnected)?
            .username
            .clone();
        match call {
            Call::GetUser { username } => {
                let username = username.as_deref().unwrap_or(&own);
                let user = self.user(username).ok_or(HubError::NoSuchUser)?;
                Ok(HubAnswer::User(user.clone()))
            }
            Call::GetChannels => Ok(HubAnswer::Channels(self.channels_of(&own))),
            Call::SendMessage {
                channel_uid,
                message,
                is_final,
            } => {
                self.send_message(&own, channel_uid, message.clone(), *is_final)?;
                Ok(HubAnswer::Sent {
                    channel_uid: ChannelUid::new(channel_uid),
                })
            }
            Call::SetTyping { channel_uid, color } => {
                self.set_typing(&own, channel_uid, color)?;
                Ok(HubAnswer::Sent {
                    channel_uid: ChannelUid::new(channel_uid),
                })
            }
            Call::Ping => Ok(HubAnswer::Pong { pong: [] }),
            other => Err(HubError::UnknownMethod(other.method().to_owned())),
        }
    }
}
