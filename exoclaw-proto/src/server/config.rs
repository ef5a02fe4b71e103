//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::auth::Auth;
use crate::limits::{AUTH_TIMEOUT, HELLO_VERSION, MAX_REQUESTS, PING_INTERVAL, PONG_TIMEOUT};

/// How a server treats a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    pub(crate) auth: Auth,
    pub(crate) auth_timeout: Option<Duration>,
    pub(crate) version: String,
    pub(crate) extensions: bool,
    pub(crate) max_requests: usize,
    pub(crate) in_order: bool,
    pub(crate) echo_numbers: bool,
    /// Pings, and when silence counts as death. Default every 30 s, and 30 s after a ping.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number. A client above
    /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
    pub limits: Limits,
}

impl ServerConfig {
    /// The defaults, with this choice about tokens.
    #[must_use]
    pub fn new(auth: Auth) -> Self {
        Self {
            auth,
            auth_timeout: Some(AUTH_TIMEOUT),
            version: HELLO_VERSION.to_owned(),
            extensions: false,
            max_requests: MAX_REQUESTS,
            in_order: false,
            echo_numbers: false,
            keep_alive: KeepAlive::default()
                .with_interval(Some(PING_INTERVAL))
                .with_pong_timeout(PONG_TIMEOUT),
            limits: Limits::default(),
        }
    }

    /// Whether a token has to come first, and which.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// How long a client may take to send its token; `None` is for ever. Default 10 s.
    #[must_use]
    pub const fn with_auth_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.auth_timeout = timeout;
        self
    }

    /// The `version` of the hello frame. Default [`HELLO_VERSION`].
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Whether [extensions](crate::frame::Method::is_extension) reach the application. The hello
    /// frame names them then. Default `false`: they are answered with `unknown method`.
    #[must_use]
    pub const fn with_extensions(mut self, extensions: bool) -> Self {
        self.extensions = extensions;
        self
    }

    /// Requests that have not ended yet; at this number nothing more is read, WebSocket pings and a
    /// Close included, so keep it above what an honest client has open. Default 1,024; 0 counts as 1.
    #[must_use]
    pub const fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Whether a request waits until the one before has ended, as with the known gateway; its
    /// answers then come in the order of the requests. Default `false`: side by side.
    #[must_use]
    pub const fn with_in_order(mut self, in_order: bool) -> Self {
        self.in_order = in_order;
        self
    }

    /// Whether a numeric id comes back as the number that it was. Default `false`: as a string, as
    /// with the known gateway.
    #[must_use]
    pub const fn with_echo_numbers(mut self, echo: bool) -> Self {
        self.echo_numbers = echo;
        self
    }

    /// Sets [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub const fn with_keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// No token is asked for.
impl Default for ServerConfig {
    fn default() -> Self {
        Self::new(Auth::open())
    }
}
