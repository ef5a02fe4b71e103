//! HTTP and server-sent events, as far as they need no socket.
