//! [`DialAttempt`]: one attempt of a dialer: names, TCP and TLS, from address to address.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::dialer::WsDialer;
use super::rotation::{Pass, Rotation, Step};
use super::socket::Socket;
use super::url::Target;
use crate::net::dial::{DialError, Node};
use crate::sync::Mutex;

/// Where a dialer is in its round, and the node of its last connection.
#[derive(Debug)]
pub(super) struct Position(Mutex<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    rotation: Rotation,
    node: Option<Node>,
}

impl Position {
    pub(super) const fn new(rotation: Rotation) -> Self {
        let node = None;
        Self(Mutex::new(Inner { rotation, node }))
    }

    pub(super) fn leave(&self) {
        self.0.lock().rotation.leave();
    }

    /// Leaves this node, unless the last connection went elsewhere already.
    pub(super) fn leave_node(&self, node: &Node) {
        let mut inner = self.0.lock();
        if inner.node.as_ref() == Some(node) {
            inner.rotation.leave();
        }
    }

    pub(super) fn node(&self) -> Option<Node> {
        self.0.lock().node.clone()
    }
}

/// A clone goes on by itself.
impl Clone for Position {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }
}

/// One attempt: passes over addresses that do not answer.
pub(super) struct DialAttempt<'a> {
    dialer: &'a WsDialer,
    position: &'a Position,
    pass: Pass,
    started: Instant,
    /// The error if no further address answers.
    failure: Option<DialError>,
}

/// The address that a visit has reached.
pub(super) struct Reached<'a> {
    pub(super) target: &'a Target,
    pub(super) socket: Socket,
    pub(super) node: Node,
}

impl<'a> DialAttempt<'a> {
    pub(super) fn new(dialer: &'a WsDialer, position: &'a Position) -> Self {
        Self {
            dialer,
            position,
            pass: position.0.lock().rotation.pass(),
            started: Instant::now(),
            failure: None,
        }
    }

    /// Opens a connection, TCP and TLS, to the next address that accepts one.
    ///
    /// Each name and address but the last gets an equal share of the remaining time, so that a dead
    /// one does not use up the deadline of the others.
    pub(super) async fn next(&mut self) -> Result<Reached<'a>, DialError> {
        loop {
            let share = self.share();
            match self.pass.step() {
                Step::Resolve { url } => {
                    let target = self.dialer.target(url);
                    match within(share, self.dialer.resolve(target)).await {
                        Ok(mut answers) if target.is_localhost() => {
                            answers.sort_by_key(SocketAddr::is_ipv6);
                            self.pass.resolved_in_order(&answers);
                        }
                        Ok(answers) => self.pass.resolved(&answers),
                        Err(error) => self.note(self.dialer.unreachable(target, error)),
                    }
                }
                Step::Dial { url, address } => {
                    self.position.0.lock().rotation.dialled(url, address);
                    let target = self.dialer.target(url);
                    let tcp = match within(share, TcpStream::connect(address)).await {
                        Ok(tcp) => tcp,
                        Err(error) => {
                            self.note(self.dialer.unreachable(target, error));
                            continue;
                        }
                    };
                    // A failure here costs latency only.
                    let _ = tcp.set_nodelay(true);
                    match self.dialer.secure(target, tcp).await {
                        Ok(socket) => {
                            return Ok(Reached {
                                target,
                                socket,
                                node: Node::new(target.printable(), url, address),
                            });
                        }
                        // The addresses of this machine are one server.
                        Err(error @ DialError::Certificate { .. })
                            if self.dialer.is_one() && target.is_this_machine() =>
                        {
                            return Err(error);
                        }
                        Err(error) => self.failed(error)?,
                    }
                }
                Step::Done => {
                    let none = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                    let target = self.dialer.target(0);
                    return Err(self.failure.take().unwrap_or(target.unreachable(none)));
                }
            }
        }
    }

    /// Handles an error of the address that was reached. One that only this address may have, such
    /// as a bad certificate, is passed over. Every other one ends the attempt: a server that
    /// refuses because it is busy must not send its clients to all others at once.
    pub(super) fn failed(&mut self, error: DialError) -> Result<(), DialError> {
        let is_busy = error.is_retryable() && !matches!(error, DialError::Proxy { .. });
        if is_busy || matches!(error, DialError::Status { status: 401, .. }) {
            return Err(error);
        }
        self.note(error);
        Ok(())
    }

    /// Notes that the connection to this node stands.
    pub(super) fn succeeded(&self, node: &Node) {
        let mut inner = self.position.0.lock();
        inner.rotation.keep();
        inner.node = Some(node.clone());
    }

    /// Remembers the last error, but one after which a retry may help before one after which none
    /// does.
    fn note(&mut self, error: DialError) {
        tracing::debug!(%error, "passed over");
        let is_better = |before: &DialError| error.is_retryable() || !before.is_retryable();
        if self.failure.as_ref().is_none_or(is_better) {
            self.failure = Some(error);
        }
    }

    /// Returns the time for the next step; `None` for the last one, which may use all that is left.
    fn share(&self) -> Option<Duration> {
        let left = u32::try_from(self.pass.left()).unwrap_or(u32::MAX);
        let all = self.dialer.config().connect_timeout;
        let share = all.saturating_sub(self.started.elapsed()) / left.max(1);
        (left > 1).then_some(share)
    }
}

async fn within<T>(
    share: Option<Duration>,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    match share {
        Some(share) => timeout(share, work)
            .await
            .unwrap_or(Err(io::ErrorKind::TimedOut.into())),
        None => work.await,
    }
}
