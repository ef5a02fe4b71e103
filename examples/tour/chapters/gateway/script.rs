//! [`Ann`]: a client that complains if the answers differ, and [`Seen`], what passed its line.

use std::sync::{Arc, Mutex, PoisonError};

use examples::cli::Failure;
use examples::screen::exoclaw::Frames;
use examples::screen::{Colour, Screen};
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, ServerFrame, StreamEvent};
use exoclaw_proto::net::{Chat, Client, connect_with, dialer, link_config};
use futures_util::FutureExt;
use rpc_core::net::{Direction, Frame};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, Limits};
use tokio::task::JoinHandle;

use crate::tour::patience::in_time;

/// What came from the gateway on all lines: a name for each frame, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<(String, String)>>>);

impl Seen {
    fn add(&self, frame: &Frame<'_>) {
        let Some(text) = frame.text().filter(|_| frame.direction() == Direction::In) else {
            return;
        };
        let limits = Limits::default();
        let (id, name) = match ServerFrame::decode(&text, &limits) {
            Ok(ServerFrame::Hello(_)) => (String::new(), "hello".to_owned()),
            Ok(ServerFrame::AuthFailed { code, .. }) => {
                (String::new(), format!("refused {}", code.unwrap_or(0)))
            }
            Ok(ServerFrame::Result { id, .. }) => (id.into(), "result".to_owned()),
            Ok(ServerFrame::Error { id, .. }) => {
                (id.unwrap_or_default().into(), "failure".to_owned())
            }
            Ok(ServerFrame::Stream { id, event }) => (id.into(), event.tag().to_owned()),
            _ => (String::new(), "unreadable".to_owned()),
        };
        self.frames().push((id, name));
    }

    fn frames(&self) -> std::sync::MutexGuard<'_, Vec<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many frames have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        let frames = self.frames();
        frames.iter().filter(|(_, known)| known == name).count()
    }

    /// Where the first frame of this name and request stands.
    pub(crate) fn first(&self, id: &str, name: &str) -> Option<usize> {
        let frames = self.frames();
        frames
            .iter()
            .position(|(of, known)| of == id && known == name)
    }

    /// Where the first answer to a request that is not streamed stands.
    pub(crate) fn first_result(&self) -> Option<usize> {
        self.frames()
            .iter()
            .position(|(_, known)| known == "result")
    }
}

/// A client of the gateway.
pub(crate) struct Ann {
    pub(crate) client: Client,
    connection: JoinHandle<()>,
}

impl Ann {
    /// A client that is on its way. It does not come back by itself, so that its end can be seen.
    pub(crate) fn connect(
        url: &str,
        who: (&str, Colour),
        mut config: ClientConfig,
        screen: &Arc<Screen>,
        seen: &Seen,
    ) -> Result<Self, Failure> {
        let (name, colour) = who;
        let shown = screen.observer(name, colour, Frames::default());
        let seen = seen.clone();
        let observer = move |frame: &Frame<'_>| {
            shown.frame(frame);
            seen.add(frame);
        };
        let mut link = link_config().with_observer(Arc::new(observer));
        link.reconnect = ReconnectPolicy::off();
        let dialer = dialer(url, &config).map_err(Failure::new)?;
        config.account = name.into();
        let (client, _, connection) = connect_with(dialer, config, link);
        let connection = tokio::spawn(connection.run().map(drop));
        Ok(Self { client, connection })
    }

    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        let ready = in_time("the hello", self.client.ready()).await?;
        ready.map(drop).map_err(Failure::new)
    }

    /// Says something and expects an answer that holds `expected`.
    pub(crate) async fn asks(&self, text: &str, expected: &str) -> Result<String, Failure> {
        let answer = read(&mut self.client.chat(text).await).await?;
        holds(&answer, expected)
    }

    /// The same in another session of this client.
    pub(crate) async fn asks_as(
        &self,
        peer: &str,
        text: &str,
        expected: &str,
    ) -> Result<String, Failure> {
        let answer = read(&mut self.client.chat_send(self.other(peer, text)).await).await?;
        holds(&answer, expected)
    }

    /// Something to say in another session of this client.
    pub(crate) fn other(&self, peer: &str, text: &str) -> ChatSend {
        let here = self.client.session();
        let mut chat = ChatSend::new(here.channel, here.account, text);
        chat.session.peer = Some(peer.into());
        chat
    }

    /// Expects the gateway to refuse, and returns its words.
    pub(crate) async fn is_refused(&self, chat: ChatSend) -> Result<RpcError, Failure> {
        let mut chat = self.client.chat_send(chat).await;
        match in_time("a refusal", chat.text()).await? {
            Err(CallError::Remote(error)) => Ok(error),
            other => Err(Failure::new(format_args!(
                "expected a refusal, not {other:?}"
            ))),
        }
    }

    /// Waits for a ping's answer.
    pub(crate) async fn pings(&self) -> Result<(), Failure> {
        let answer = in_time("the answer to a ping", self.client.ping()).await?;
        answer.map_err(Failure::new)
    }

    /// Closes the connection and waits until it has ended.
    pub(crate) async fn leaves(self) -> Result<(), Failure> {
        self.client.close();
        self.ended().await
    }

    pub(crate) async fn ended(self) -> Result<(), Failure> {
        let ended = in_time("the end of a connection", self.connection).await?;
        ended.map_err(Failure::new)
    }
}

/// Waits for the next piece of text.
pub(crate) async fn piece(chat: &mut Chat) -> Result<(), Failure> {
    loop {
        match in_time("a piece of text", chat.next()).await? {
            Some(Ok(StreamEvent::Text(_))) => return Ok(()),
            Some(Ok(_)) => {}
            other => {
                let error = format!("expected a piece of text, not {other:?}");
                return Err(Failure::new(error));
            }
        }
    }
}

/// Reads what is still to come of an answer.
pub(crate) async fn read(chat: &mut Chat) -> Result<String, Failure> {
    in_time("the end of an answer", chat.text())
        .await?
        .map_err(Failure::new)
}

/// `text` if it holds `expected`.
pub(crate) fn holds(text: &str, expected: &str) -> Result<String, Failure> {
    if text.contains(expected) {
        return Ok(text.to_owned());
    }
    let error = format!("expected an answer with {expected:?}, but it is {text:?}");
    Err(Failure::new(error))
}
