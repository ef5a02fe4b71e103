//! WebSockets of a page: [`WsDialer`], and [`WsStream`] as a [`Transport`](super::Transport). The names are
//! those of the native module, so that clients are the same.
//!
//! [`guide::browser`](crate::guide::browser#what-a-page-cannot-do) says what a page cannot do. Of the close
//! codes, 1000 and 3000 to 4999 are sent as they are; others keep their last three digits: 1008 goes as 4008.

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

pub use config::{BadHeader, WsConfig};
pub use connect::ConnectError;
pub use dialer::WsDialer;
pub use fetch::{FetchBody, fetch};
pub(super) use page::{call, random};
pub use stream::WsStream;
pub use url::{redact_urls, urls};
