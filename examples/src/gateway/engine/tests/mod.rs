//! What a chat goes through, without sockets.
