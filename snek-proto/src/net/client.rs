//! [`Client`]: typed calls over a connection that reconnects.

use std::borrow::Borrow;
use std::cell::Cell;
use std::ops::Deref;
use std::time::Duration;

use rpc_core::net::Link;
use rpc_core::net::telemetry::OTHER;
use rpc_core::{CallError, CallId, DecodeError, Refused};
use serde::Serialize;

use super::protocol::ClientProtocol;
use crate::client::checked_channel;
use crate::codec::encode_method;
use crate::error::RpcError;
use crate::frame::{CallValue, Channel, Final, NoArgs, NoKwargs, User};

type Outcome = Result<CallValue, CallError<RpcError>>;

/// A handle for calls. Cheap to clone; dropping the last clone closes the connection.
///
/// While there is no connection, calls fail at once with [`Refused::NotConnected`] (or
/// [`Refused::NotReady`] during the login); [`ready`](Link::ready) waits. A client never repeats a
/// call: [`CallError::delivery`] says whether a failed one may have reached the server.
///
/// ```
/// # use snek_proto::frame::Final;
/// # use snek_proto::net::{self, MemoryBackend, Server, ServerOptions};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend = MemoryBackend::new().with_channel("general", "General").open();
/// # let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
/// # let url = server.url();
/// # tokio::spawn(server.run());
/// # let config = snek_proto::client::ClientConfig::new("ann", "secret");
/// # let (client, _events, connection) = net::connect(&url, config).await?;
/// # tokio::spawn(connection.run());
/// for channel in client.get_channels().await? {
///     client.send_message(&channel.uid, "hello", Final::Yes).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    link: Link<ClientProtocol>,
}

impl Client {
    pub(super) const fn new(link: Link<ClientProtocol>) -> Self {
        Self { link }
    }

    /// Posts a message, or the whole text so far of a streamed one.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the platform's own error. Repeating is safe. Rejects an invalid channel uid before sending anything. Repeating it
    /// after [`Delivery::Unknown`](rpc_core::Delivery::Unknown) may post twice.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the message may have been posted.
    pub async fn send_message(
        &self,
        channel: &(impl Borrow<str> + ?Sized),
        text: &str,
        is_final: Final,
    ) -> Outcome {
        let channel = checked_channel(channel.borrow())?;
        let request = request("send_message", &(channel, text, is_final), &NoKwargs {})?;
        self.ask("send_message", request).await
    }

    /// Shows a typing indicator in a colour like `#FF6B35`, without waiting for the answer.
    ///
    /// # Errors
    /// [`Refused`]: there is no connection, no room, or the call is too large. Nothing was sent. Safe to repeat.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the call may or may not be sent.
    pub async fn set_typing(
        &self,
        channel: &(impl Borrow<str> + ?Sized),
        color: &str,
    ) -> Result<CallId, Refused> {
        let (channel, color) = (channel.borrow().to_owned(), color.to_owned());
        self.link
            .command(move |conn, _| conn.set_typing(&*channel, &color))
            .await?
    }

    /// Tells the platform that the user is active. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the platform's own error. Repeating is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ping(&self) -> Outcome {
        let request = request("ping", &NoArgs::default(), &NoKwargs {})?;
        self.ask("ping", request).await
    }

    /// Fetches a user's record; `None` is the logged-in user. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a user is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn get_user(&self, username: Option<&str>) -> Result<User, CallError<RpcError>> {
        let request = request("get_user", &[username], &NoKwargs {})?;
        let answer = self.ask("get_user", request).await?;
        answer.parse().map_err(|error| unexpected(&error))
    }

    /// Fetches the channels that the user can see. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a list of channels is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn get_channels(&self) -> Result<Vec<Channel>, CallError<RpcError>> {
        let request = request("get_channels", &NoArgs::default(), &NoKwargs {})?;
        let answer = self.ask("get_channels", request).await?;
        answer.parse().map_err(|error| unexpected(&error))
    }

    /// Calls any method. `args` must be written as a JSON array, `kwargs` as an object.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let backend = snek_proto::net::MemoryBackend::new().with_channel("general", "General").open();
    /// # let server = snek_proto::net::Server::bind("127.0.0.1:0", backend, Default::default()).await?;
    /// # let url = server.url();
    /// # tokio::spawn(server.run());
    /// # let config = snek_proto::client::ClientConfig::new("ann", "secret");
    /// # let (client, _, connection) = snek_proto::net::connect(&url, config).await?;
    /// # tokio::spawn(connection.run());
    /// use snek_proto::frame::NoKwargs;
    /// let user = client.call("get_user", &("ann",), &NoKwargs {}).await?;
    /// println!("{}", user.data().get());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the platform's own error. Before you repeat,
    /// ask its [`delivery`](CallError::delivery) whether the platform may have run it.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the call may have run.
    pub async fn call(
        &self,
        method: &str,
        args: &impl Serialize,
        kwargs: &impl Serialize,
    ) -> Outcome {
        let request = request(method, args, kwargs)?;
        self.ask(OTHER, request).await
    }

    /// Calls any method with its own timeout; `None` waits for ever.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the platform's own error. Before you repeat,
    /// ask its [`delivery`](CallError::delivery) whether the platform may have run it.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the call may have run.
    pub async fn call_within(
        &self,
        timeout: Option<Duration>,
        method: &str,
        args: &impl Serialize,
        kwargs: &impl Serialize,
    ) -> Outcome {
        let request = request(method, args, kwargs)?;
        self.link
            .call_with(OTHER, move |conn, now| {
                let id = conn.call_encoded(&request, now)?;
                conn.set_timeout(id, timeout, now);
                Ok(id)
            })
            .await
    }

    /// Calls any method without waiting for the answer.
    ///
    /// # Errors
    /// [`Refused`]: there is no connection, no room, or the call is too large. Nothing was sent.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, the call may or may not be sent.
    pub async fn notify(
        &self,
        method: &str,
        args: &impl Serialize,
        kwargs: &impl Serialize,
    ) -> Result<CallId, Refused> {
        let request = request(method, args, kwargs)?;
        self.link
            .command(move |conn, _| conn.notify_encoded(&request))
            .await?
    }

    // Not an `async fn`: its future would carry the request along.
    fn ask(
        &self,
        method: &'static str,
        request: String,
    ) -> impl Future<Output = Outcome> + Send + use<'_> {
        self.link
            .call_with(method, move |conn, now| conn.call_encoded(&request, now))
    }
}

/// The longest request that gets a piece of memory of its size. Many may wait, and allocators are quickest
/// with pieces of up to 128 bytes, their own part included.
const SHORT: usize = 120;

/// Encodes a request up to its id, which the connection's task adds.
fn request(
    method: &str,
    args: &impl Serialize,
    kwargs: &impl Serialize,
) -> Result<String, Refused> {
    thread_local! {
        static BUFFER: Cell<String> = const { Cell::new(String::new()) };
    }
    // Taken, because arguments may make calls of their own while they are written.
    let mut request = BUFFER.take();
    request.clear();
    request.reserve(256);
    encode_method(&mut request, method, args, kwargs)?;
    if request.len() > SHORT {
        return Ok(request);
    }
    let short = request.as_str().to_owned();
    BUFFER.set(request);
    Ok(short)
}

/// Creates the error for an answer that does not fit the method.
fn unexpected(error: &DecodeError) -> CallError<RpcError> {
    CallError::Remote(RpcError::new(format!("an unexpected answer: {error}")))
}

/// Methods of every client: [`ready`](Link::ready), [`state`](Link::state), [`close`](Link::close),
/// [`drain`](Link::drain) and what else a [`Link`] offers.
impl Deref for Client {
    type Target = Link<ClientProtocol>;

    fn deref(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}
