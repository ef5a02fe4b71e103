//! Passing a client on: [`Forwards`], the connections that this node passes on, and [`forward`], which copies
//! their messages.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join;
use futures_util::{FutureExt as _, Sink, SinkExt as _, Stream, StreamExt as _, stream};
use rpc_core::net::{Message, Transport, TransportError, entropy};
use rpc_core::sync::Mutex;
use rpc_core::{CloseFrame, Outgoing, Str};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits::SERVICE_RESTART;

/// How long a connection may take for its Close.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the owner's last messages may take once nothing can be sent to it.
const LAST_MESSAGES: Duration = Duration::from_secs(1);
/// How often the owner is pinged, and how long it may send nothing while it is read: the network between two
/// hosts may fail without a sign.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const MAX_SILENCE: Duration = Duration::from_secs(40);

/// The connections that a node passes on, by session and a number; `None` once its life is over.
pub(super) struct Forwards(Mutex<Option<BTreeMap<Key, Entry>>>);

type Key = (String, u64);

struct Entry {
    owner: Str,
    /// Dropped to end the connection.
    _end: oneshot::Sender<()>,
}

/// A connection that is passed on. Dropping it forgets it.
pub(super) struct Forward {
    key: Key,
    forwards: Arc<Forwards>,
    end: oneshot::Receiver<()>,
}

impl Forwards {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Some(BTreeMap::new())))
    }

    /// Adds a connection of a session with this owner.
    pub(super) fn add(self: &Arc<Self>, session_id: &str, owner: &Str) -> Forward {
        let (sender, end) = oneshot::channel();
        let key = (session_id.to_owned(), entropy());
        let entry = Entry {
            owner: owner.clone(),
            _end: sender,
        };
        if let Some(all) = &mut *self.0.lock() {
            all.insert(key.clone(), entry);
        }
        Forward {
            key,
            forwards: Arc::clone(self),
            end,
        }
    }

    /// Returns whether there are some of this session.
    pub(super) fn has(&self, session_id: &str) -> bool {
        let all = self.0.lock();
        let first = (session_id.to_owned(), 0);
        let next = all.as_ref().and_then(|all| all.range(first..).next());
        next.is_some_and(|((id, _), _)| id == session_id)
    }

    /// Closes those for whose session and owner this holds.
    pub(super) fn close_if(&self, closes: impl Fn(&str, &Str) -> bool) {
        if let Some(all) = &mut *self.0.lock() {
            all.retain(|(session_id, _), it| !closes(session_id, &it.owner));
        }
    }

    /// Closes all, and whatever is added from now on.
    pub(super) fn close(&self) {
        self.0.lock().take();
    }
}

impl Forward {
    /// Waits until the owner is none any more.
    pub(super) async fn moved(&mut self) {
        let _ = (&mut self.end).await;
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        if let Some(all) = &mut *self.forwards.0.lock() {
            all.remove(&self.key);
        }
    }
}

/// Which end of a copy is gone without a Close.
enum Cut {
    From,
    To,
}

/// Copies the messages of a client and of the owner of its session, one in each direction at a time, until one
/// of them closes; `first` was read already. When `ended` is ready, the client is closed with its frame.
pub(super) async fn forward(
    client: impl Transport,
    first: Message,
    owner: impl Transport,
    ended: impl Future<Output = CloseFrame>,
) {
    let (mut to_client, from_client) = client.split();
    let (mut to_owner, mut from_owner) = owner.split();
    let mut from_client = stream::iter([Ok(first)]).chain(from_client);
    let lost = || CloseFrame::new(SERVICE_RESTART, "the session's host is gone");
    // What is still sent to each of them; nothing to one that is gone.
    let (client_close, owner_close) = {
        let mut down = std::pin::pin!(copy(&mut from_owner, &mut to_client, false));
        let both = |frame: CloseFrame| (Some(frame.clone()), Some(frame));
        let of_owner = |end| match end {
            Ok(frame) => both(frame),
            Err(Cut::From) => (Some(lost()), None),
            Err(Cut::To) => (None, None),
        };
        tokio::select! {
            biased;
            frame = ended => (Some(frame), None),
            end = &mut down => of_owner(end),
            end = copy(&mut from_client, &mut to_owner, true) => match end {
                Ok(frame) => both(frame),
                Err(Cut::From) => (None, None),
                // It may have closed with a reason.
                Err(Cut::To) => of_owner(timeout(LAST_MESSAGES, down).await.unwrap_or(Err(Cut::From))),
            },
        }
    };
    let client = close(to_client, from_client, client_close);
    let owner = close(to_owner, from_owner, owner_close);
    let _ = timeout(CLOSE_TIMEOUT, join(client, owner)).await;
}

/// Copies messages until a Close, which it returns. Pings an owner that they go to; one that they come from
/// must not be silent.
async fn copy(
    from: &mut (impl Stream<Item = Result<Message, TransportError>> + Unpin),
    to: &mut (impl Sink<Outgoing> + Unpin),
    is_to_owner: bool,
) -> Result<CloseFrame, Cut> {
    use TransportError::{Overloaded, Protocol, TooLarge};
    let mut ping_at = Instant::now() + PING_INTERVAL;
    loop {
        let message = match from.next().now_or_never() {
            Some(message) => message,
            None => {
                to.flush().await.map_err(|_| Cut::To)?;
                let silent_at = Instant::now() + MAX_SILENCE;
                let until = if is_to_owner { ping_at } else { silent_at };
                match timeout_at(until, from.next()).await {
                    Ok(message) => message,
                    Err(_) if is_to_owner => {
                        ping_at = Instant::now() + PING_INTERVAL;
                        let ping = Outgoing::Ping(Bytes::new());
                        to.feed(ping).await.map_err(|_| Cut::To)?;
                        continue;
                    }
                    Err(_) => return Err(Cut::From),
                }
            }
        };
        let message = match message {
            Some(Ok(Message::Text(text))) => Outgoing::Text(text),
            Some(Ok(Message::Binary(bytes))) => Outgoing::Binary(bytes),
            Some(Ok(Message::Close(frame))) => {
                return Ok(frame.unwrap_or_else(|| CloseFrame::new(CloseFrame::NORMAL, "")));
            }
            // Each transport answers pings itself.
            Some(Ok(_)) => continue,
            // Its transport has sent it the reason.
            Some(Err(error @ (TooLarge { .. } | Overloaded | Protocol(_)))) => {
                return Ok(CloseFrame::new(CloseFrame::POLICY, error.to_string()));
            }
            Some(Err(_)) | None => return Err(Cut::From),
        };
        to.feed(message).await.map_err(|_| Cut::To)?;
    }
}

/// Closes a connection with a frame, if there is one, and waits until it has ended.
pub(super) async fn close(
    mut to: impl Sink<Outgoing> + Unpin,
    mut from: impl Stream<Item = Result<Message, TransportError>> + Unpin,
    frame: Option<CloseFrame>,
) {
    if let Some(frame) = frame {
        // One that has sent a Close itself takes none.
        let _ = to.send(Outgoing::Close(frame)).await;
        while matches!(from.next().await, Some(Ok(_))) {}
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::net::mem::{self, MemTransport};
    use tokio::time::{sleep, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A client and the owner of its session, with this between them.
    fn line(ended: impl Future<Output = CloseFrame> + Send + 'static) -> [MemTransport; 2] {
        let ((client, from), (to, owner)) = (mem::duplex(1), mem::duplex(1));
        tokio::spawn(forward(from, Message::Text("first".into()), to, ended));
        [client, owner]
    }

    async fn next(end: &mut MemTransport) -> Option<Message> {
        let next = timeout(60 * SECOND, end.next()).await;
        next.expect("in time").and_then(Result::ok)
    }

    async fn close_code(end: &mut MemTransport) -> Option<u16> {
        while let Some(message) = next(end).await {
            if let Message::Close(frame) = message {
                return frame.map(|frame| frame.code);
            }
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn one_message_is_held_in_each_direction() {
        let [mut client, mut owner] = line(std::future::pending());
        assert_eq!(next(&mut owner).await, Some(Message::Text("first".into())));
        for (from, to) in [(0, 1), (1, 0)] {
            let ends = [&mut client, &mut owner];
            let mut sent = 0;
            let text = |number: u8| Outgoing::Text(number.to_string().into());
            while timeout(SECOND, ends[from].send(text(sent))).await.is_ok() {
                sent += 1;
            }
            // One on each line, too.
            assert_eq!(sent, 3);
            for number in 0..sent {
                let expected = Message::Text(number.to_string().into());
                assert_eq!(next(ends[to]).await, Some(expected));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_close_keeps_its_code_and_an_owner_that_is_gone_is_a_restart() {
        let close = |code| Outgoing::Close(CloseFrame::new(code, "why"));
        let [mut client, mut owner] = line(std::future::pending());
        client.send(close(4000)).await.unwrap();
        assert_eq!(close_code(&mut owner).await, Some(4000));
        let [mut client, mut owner] = line(std::future::pending());
        owner.send(close(1008)).await.unwrap();
        assert_eq!(close_code(&mut client).await, Some(1008));
        let [client, mut owner] = line(std::future::pending());
        drop(client);
        assert_eq!(close_code(&mut owner).await, None);
        let [mut client, owner] = line(std::future::pending());
        drop(owner);
        assert_eq!(close_code(&mut client).await, Some(SERVICE_RESTART));
    }

    #[tokio::test(start_paused = true)]
    async fn connections_to_a_node_that_is_no_owner_any_more_end_and_later_ones_at_once() {
        let forwards = Arc::new(Forwards::new());
        let mut all = [("s", "a"), ("s", "b"), ("t", "a")].map(|(session_id, owner)| {
            let mut forward = forwards.add(session_id, &owner.into());
            Some(tokio::spawn(async move { forward.moved().await }))
        });
        forwards.close_if(|session_id, owner| session_id == "s" && owner == "a");
        all[0].take().unwrap().await.unwrap();
        sleep(SECOND).await;
        assert!(all.iter().flatten().all(|it| !it.is_finished()));
        assert!(forwards.has("s") && !forwards.has("u"));
        forwards.close();
        for it in all.into_iter().flatten() {
            it.await.unwrap();
        }
        forwards.add("s", &"a".into()).moved().await;
    }
}
