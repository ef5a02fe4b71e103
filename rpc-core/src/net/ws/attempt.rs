//! [`DialAttempt`]: one attempt of a dialer: names, TCP and TLS, from address to address.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::dialer::WsDialer;
use super::socket::Socket;
use super::url::Target;
use crate::net::dial::{DialError, Node};
use crate::net::link::entropy;
use crate::sync::Mutex;

/// The node of the last connection of a dialer, and the one that its next attempt visits last.
#[derive(Debug, Default)]
pub(super) struct Position(Mutex<Last>);

#[derive(Clone, Debug, Default)]
struct Last {
    node: Option<Node>,
    avoided: Option<Node>,
}

impl Position {
    /// Lets the next attempt visit this node last, unless the last connection went elsewhere already.
    pub(super) fn leave(&self, node: &Node) {
        let mut last = self.0.lock();
        if last.node.as_ref() == Some(node) {
            last.avoided = Some(node.clone());
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

/// The index of a URL whose name is to be resolved or, with an answer for it, to be dialled.
type Step = (usize, Option<SocketAddr>);

/// One attempt: passes over addresses that do not answer. It visits each address at most once.
pub(super) struct DialAttempt<'a> {
    dialer: &'a WsDialer,
    steps: VecDeque<Step>,
    /// The node of the last connection, if that is not avoided.
    first: Option<Node>,
    avoided: Option<Node>,
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
    pub(super) fn new(dialer: &'a WsDialer) -> Self {
        let Last { node, avoided } = dialer.position.0.lock().clone();
        let first = node.filter(|_| avoided.is_none());
        let mut urls: Vec<usize> = (0..dialer.targets.len()).collect();
        if !dialer.is_listed {
            urls.sort_by_cached_key(|_| entropy());
        }
        urls.sort_by_key(|url| first.as_ref().is_some_and(|it| it.index() != *url));
        Self {
            dialer,
            steps: urls.into_iter().map(|url| (url, None)).collect(),
            first,
            avoided,
            started: Instant::now(),
            failure: None,
        }
    }

    /// Takes the answers for a URL: in random order within their family (IPv4, IPv6), but for the
    /// node that comes first, and the one that is dialled after all others.
    fn resolved(&mut self, url: usize, mut answers: Vec<SocketAddr>) {
        let mut seen = HashSet::new();
        answers.retain(|it| seen.insert(*it));
        if self.dialer.target(url).is_localhost() {
            answers.sort_by_key(SocketAddr::is_ipv6);
        } else {
            if let Some(first) = answers.first().filter(|_| !self.dialer.is_listed) {
                let family = first.is_ipv4();
                answers.sort_by_cached_key(|it| (it.is_ipv4() != family, entropy()));
            }
            let is = |node: &Option<Node>, it: &SocketAddr| {
                let node = node.as_ref().filter(|node| node.index() == url);
                node.is_some_and(|node| node.address() == *it)
            };
            answers.sort_by_key(|it| !is(&self.first, it));
            let last = answers.extract_if(.., |it| is(&self.avoided, it));
            self.steps.extend(last.map(|it| (url, Some(it))));
        }
        let answers = answers.into_iter().rev();
        answers.for_each(|it| self.steps.push_front((url, Some(it))));
    }

    /// Opens a connection, TCP and TLS, to the next address that accepts one.
    ///
    /// Each name and address but the last gets an equal share of the remaining time, so that a dead
    /// one does not use up the deadline of the others.
    pub(super) async fn next(&mut self) -> Result<Reached<'a>, DialError> {
        loop {
            let share = self.share();
            match self.steps.pop_front() {
                Some((url, None)) => {
                    let target = self.dialer.target(url);
                    match within(share, self.dialer.resolve(target)).await {
                        Ok(answers) => self.resolved(url, answers),
                        Err(error) => self.note(self.dialer.unreachable(target, error)),
                    }
                }
                Some((url, Some(address))) => {
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
                    let node = Node::new(target.printable(), url, address);
                    match self.dialer.secure(target, tcp).await {
                        Ok(socket) => {
                            return Ok(Reached {
                                target,
                                socket,
                                node,
                            });
                        }
                        // The addresses of this machine are one server.
                        Err(error @ DialError::Certificate { .. })
                            if self.dialer.is_one() && target.is_this_machine() =>
                        {
                            return Err(error);
                        }
                        Err(error) => self.failed(&node, error)?,
                    }
                }
                None => {
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
    pub(super) fn failed(&mut self, node: &Node, error: DialError) -> Result<(), DialError> {
        let is_busy = error.is_retryable() && !matches!(error, DialError::Proxy { .. });
        if is_busy {
            self.dialer.position.0.lock().avoided = Some(node.clone());
        }
        if is_busy || matches!(error, DialError::Status { status: 401, .. }) {
            return Err(error);
        }
        self.note(error);
        Ok(())
    }

    /// Notes that the connection to this node stands. The next attempt begins with it if it `stays`, or
    /// else visits it last.
    pub(super) fn succeeded(&self, node: &Node, stays: bool) {
        let node = Some(node.clone());
        let avoided = node.clone().filter(|_| !stays);
        *self.dialer.position.0.lock() = Last { node, avoided };
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
        let left = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    /// The answers for the name of each URL.
    type Names = Vec<Vec<SocketAddr>>;

    fn addresses(numbers: &[u8]) -> Vec<SocketAddr> {
        let address = |n: &u8| SocketAddr::from(([10, 0, 0, *n], 80));
        numbers.iter().map(address).collect()
    }

    fn dialer(names: &Names) -> WsDialer {
        let urls: Vec<_> = (0..names.len())
            .map(|n| format!("ws://n{n}.example"))
            .collect();
        WsDialer::new(&urls.join(",")).unwrap()
    }

    /// Returns what an attempt dials if every address fails.
    fn all(dialer: &WsDialer, names: &Names) -> Vec<(usize, SocketAddr)> {
        let mut attempt = DialAttempt::new(dialer);
        let mut dialled = Vec::new();
        while let Some(step) = attempt.steps.pop_front() {
            match step {
                (url, None) => attempt.resolved(url, names[url].clone()),
                (url, Some(address)) => dialled.push((url, address)),
            }
        }
        dialled
    }

    /// Dials one address, as an attempt that gets an answer from it does.
    fn dial(dialer: &WsDialer, names: &Names, stays: bool) -> (usize, SocketAddr) {
        let (url, address) = all(dialer, names)[0];
        let node = Node::new("", url, address);
        DialAttempt::new(dialer).succeeded(&node, stays);
        (url, address)
    }

    #[test]
    fn in_listed_order_a_lost_or_busy_node_comes_last_and_a_good_one_first() {
        let names = vec![addresses(&[1, 2]), addresses(&[3])];
        let dialer = dialer(&names).in_listed_order();
        let [a, b] = addresses(&[1, 2])[..] else {
            return;
        };
        let (a, b, c) = ((0, a), (0, b), (1, names[1][0]));
        let dialled: Vec<_> = (0..3).map(|_| dial(&dialer, &names, false)).collect();
        assert_eq!(dialled, [a, b, a]);
        assert_eq!(all(&dialer, &names), [b, c, a]);
        let busy = DialError::TimedOut {
            after: Duration::ZERO,
        };
        let node = Node::new("", 1, c.1);
        let failed = DialAttempt::new(&dialer).failed(&node, busy);
        assert!(failed.is_err());
        assert_eq!(dial(&dialer, &names, true), a);
        assert_eq!(all(&dialer, &names), [a, b, c]);
        dialer.position.leave(&Node::new("", 0, a.1));
        assert_eq!(all(&dialer, &names), [b, c, a]);
    }

    #[test]
    fn the_resolvers_preferred_family_stays_first() {
        let v6: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
        let mut answers = addresses(&[1, 2]);
        answers.insert(0, v6);
        let names = vec![answers];
        for _ in 0..50 {
            assert_eq!(all(&dialer(&names), &names)[0].1, v6);
        }
    }

    #[test]
    fn clients_spread_evenly_over_live_nodes() {
        for names in [
            vec![addresses(&[1, 2, 3, 4])],
            (1..5).map(|n| addresses(&[n])).collect::<Names>(),
        ] {
            let (mut first, mut second) = (BTreeMap::new(), BTreeMap::new());
            for _ in 0..1000 {
                let dialer = dialer(&names);
                let node = dial(&dialer, &names, false);
                *first.entry(node).or_insert(0) += 1;
                if node.1 == names[0][0] {
                    *second.entry(dial(&dialer, &names, false)).or_insert(0) += 1;
                }
            }
            assert_eq!(first.len(), 4);
            assert!(first.values().all(|clients| *clients > 150), "{first:?}");
            assert!(second.values().all(|clients| *clients > 30), "{second:?}");
        }
    }

    proptest! {
        /// Whatever was dialled before: no address is dialled twice in an attempt, none is left out,
        /// and the one of the last connection comes first or last.
        #[test]
        fn an_attempt_visits_every_address_once(
            names in prop::collection::vec(
                prop::collection::btree_set(0..20u8, 0..5).prop_map(Vec::from_iter), 1..5),
            stays in prop::collection::vec(any::<bool>(), 0..10),
        ) {
            let names: Names = names.iter().map(|it| addresses(it)).collect();
            let dialer = dialer(&names);
            let pairs = (0..).zip(&names);
            let expected: BTreeSet<_> = pairs
                .flat_map(|(url, answers)| answers.iter().map(move |answer| (url, *answer)))
                .collect();
            for stays in stays.into_iter().filter(|_| !expected.is_empty()) {
                let last = dial(&dialer, &names, stays);
                let visited = all(&dialer, &names);
                prop_assert_eq!(visited.len(), expected.len());
                prop_assert_eq!(&visited.iter().copied().collect::<BTreeSet<_>>(), &expected);
                let at = if stays { visited.first() } else { visited.last() };
                prop_assert_eq!(at, Some(&last));
            }
        }
    }
}
