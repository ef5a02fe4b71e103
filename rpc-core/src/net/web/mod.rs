//! WebSockets of a page: [`WsDialer`], and [`WsStream`] as a [`Transport`](super::Transport). The names are
//! those of the native module, so that clients are the same.
//!
//! What a page cannot do:
//!
//! - **Ping.** A ping is answered here and proves nothing. Pings of the server are answered by the browser.
//! - **Headers.** A dialer with headers, or with a user and a password in a URL, does not dial.
//!   Subprotocols are sent. Requests over HTTP have their headers.
//! - **See why a connection was refused.** Every failure is [`Unreachable`](super::DialError::Unreachable),
//!   with a status as well.
//! - **Stop reading.** What is not taken waits here, up to four times the largest message; more closes the
//!   connection with [`SlowConsumer`](crate::CloseReason::SlowConsumer).
//! - **Send any close code.** 1000 and 3000 to 4999 are sent as they are. Others keep their last three
//!   digits: 1008 goes as 4008.
//! - **Leave its thread.** The types are `Send`, but panic on another thread than their own.

#[path = "../ws/coding.rs"]
mod coding;
#[path = "../ws/config.rs"]
mod config;
#[path = "../ws/connect.rs"]
mod connect;
mod dialer;
mod fetch;
mod page;
mod stream;
#[path = "../ws/url.rs"]
#[allow(dead_code, reason = "a page resolves no names")]
mod url;

pub use coding::compressed;
pub use config::{BadHeader, WsConfig};
pub use connect::ConnectError;
pub use dialer::WsDialer;
pub use fetch::{FetchBody, fetch};
pub(super) use page::{call, random};
pub use stream::WsStream;
pub use url::{redact_urls, urls};
