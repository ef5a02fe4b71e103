//! Authentication by a bearer key: in a header, or as a WebSocket subprotocol.
