//! Ids: [`ClientId`] and [`MessageId`], and how a server creates them.

use rpc_core::{Id, uuid};

mod kind {
    //! The kinds of ids.

    #[derive(Debug)]
    pub enum ClientKind {}

    #[derive(Debug)]
    pub enum MessageKind {}
}

/// The id of a registered client: a UUID. Opaque to clients.
pub type ClientId = Id<kind::ClientKind>;

/// The id of a message: `msg-` and a UUID. Opaque to clients.
pub type MessageId = Id<kind::MessageKind>;

/// Returns the id of a client, from 128 random bits: a UUID of version 4.
#[must_use]
pub fn client_id(random: u128) -> ClientId {
    ClientId::new(uuid(random))
}

/// Returns the id of a message, from 128 random bits: `msg-` and a UUID of version 4.
#[must_use]
pub fn message_id(random: u128) -> MessageId {
    MessageId::new(format!("msg-{}", uuid(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_4_uuids() {
        let zeros = client_id(0);
        assert_eq!(zeros.as_str(), "00000000-0000-4000-8000-000000000000");
        let ones = message_id(u128::MAX);
        assert_eq!(ones.as_str(), "msg-ffffffff-ffff-4fff-bfff-ffffffffffff");
        let id = client_id(0x550e_8400_e29b_31d4_2716_4466_5544_0000);
        assert_eq!(id.as_str(), "550e8400-e29b-41d4-a716-446655440000");
    }
}
