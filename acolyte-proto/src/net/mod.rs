//! Level 3: client and server over real connections.
