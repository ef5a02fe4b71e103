//! What a [`Hub`] answers to the calls of a client.

use serde::Serialize;
use serde::ser::SerializeMap;

use super::{ConnId, Hub, HubError};
use crate::frame::{Channel, OwnedCall, User};
use crate::id::ChannelUid;

/// The value of an answer; written as the `data` of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubAnswer {
    /// A user's record.
    User(User),
    /// The user's channels.
    Channels(Vec<Channel>),
    /// A message or a typing indicator went out: `{"channel_uid": ..}`.
    Sent(ChannelUid),
    /// `{"pong": []}`
    Pong,
}

impl Serialize for HubAnswer {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::User(user) => user.serialize(serializer),
            Self::Channels(channels) => channels.serialize(serializer),
            Self::Sent(channel) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("channel_uid", channel)?;
                map.end()
            }
            Self::Pong => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("pong", &[(); 0])?;
                map.end()
            }
        }
    }
}

impl Hub {
    /// Carries out a call of a connection. Logging in is not a hub's business: check the
    /// credentials, then [`connect`](Self::connect).
    ///
    /// # Errors
    /// [`HubError`]; its text is fit for the answer.
    pub fn handle(&mut self, conn: ConnId, call: &OwnedCall) -> Result<HubAnswer, HubError> {
        let own = self
            .user_of(conn)
            .ok_or(HubError::NotConnected)?
            .username
            .clone();
        match call {
            OwnedCall::GetUser { username } => {
                let username = username.as_deref().unwrap_or(&own);
                let user = self.user(username).ok_or(HubError::NoSuchUser)?;
                Ok(HubAnswer::User(user.clone()))
            }
            OwnedCall::GetChannels => Ok(HubAnswer::Channels(self.channels_of(&own))),
            OwnedCall::SendMessage {
                channel_uid,
                message,
                is_final,
            } => {
                self.send_message(&own, channel_uid, message, *is_final)?;
                Ok(HubAnswer::Sent(ChannelUid::new(channel_uid.as_str())))
            }
            OwnedCall::SetTyping { channel_uid, color } => {
                self.set_typing(&own, channel_uid, color)?;
                Ok(HubAnswer::Sent(ChannelUid::new(channel_uid.as_str())))
            }
            OwnedCall::Ping => Ok(HubAnswer::Pong),
            other => Err(HubError::UnknownMethod(other.method().to_owned())),
        }
    }
}
