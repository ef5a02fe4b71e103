//! The queue of chats of one connection.
