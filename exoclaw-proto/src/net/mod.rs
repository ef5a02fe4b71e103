//! Level 3: the server (`server`).

#[cfg(feature = "server")]
mod serve;

#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{
    Backend, BindError, ChatError, ChatReply, Context, Gone, MemoryBackend, Server, ServerHandle,
    ServerOptions, ServerSide, answer, http_config,
};
