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
    /// Whether a token has to come first, and which.
    pub auth: Auth,
    /// How long a client may take to send its token; `None` is for ever. Default 10 s.
    pub auth_timeout: Option<Duration>,
    /// The `version` of the hello frame. Default [`HELLO_VERSION`].
    pub version: String,
    /// Whether [extensions](crate::frame::Method::is_extension) reach the application. The hello
    /// frame names them then. Default `false`: they are answered with `unknown method`.
    pub extensions: bool,
    /// Requests that have not ended yet; at this number nothing more is read, WebSocket pings and a
    /// Close included, so keep it above what an honest client has open. Default 1,024.
    pub max_requests: usize,
    /// Whether a request waits until the one before has ended, as with the known gateway; its
    /// answers then come in the order of the requests. Default `false`: side by side.
    pub in_order: bool,
    /// Whether a numeric id comes back as the number that it was. Default `false`: as a string, as
    /// with the known gateway.
    pub echo_numbers: bool,
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

    /// Sets [`auth`](Self::auth).
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets [`auth_timeout`](Self::auth_timeout).
    #[must_use]
    pub const fn with_auth_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.auth_timeout = timeout;
        self
    }

    /// Sets [`version`](Self::version).
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Sets [`extensions`](Self::extensions).
    #[must_use]
    pub const fn with_extensions(mut self, extensions: bool) -> Self {
        self.extensions = extensions;
        self
    }

    /// Sets [`max_requests`](Self::max_requests); 0 counts as 1.
    #[must_use]
    pub const fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets [`in_order`](Self::in_order).
    #[must_use]
    pub const fn with_in_order(mut self, in_order: bool) -> Self {
        self.in_order = in_order;
        self
    }

    /// Sets [`echo_numbers`](Self::echo_numbers).
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
