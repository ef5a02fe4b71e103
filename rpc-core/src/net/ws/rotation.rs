//! [`Rotation`]: which of several addresses a client dials next.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

/// A round of addresses: the URLs of a list, and of each URL the answers of its name. It resolves
/// nothing, dials nothing, and draws no random numbers.
///
/// One attempt is a [`Pass`]: it visits each address at most once. The next attempt goes on behind
/// the address where this one ended, unless [`keep`](Self::keep) says that it was good.
#[derive(Clone, Debug)]
pub(super) struct Rotation {
    urls: usize,
    /// Decides on an order of the client's own: the URLs shuffled, and the answers of each name
    /// shuffled within their family (IPv4, IPv6). Clients spread over all nodes, and those of a dead
    /// node over the remaining ones. `None`: the URLs as listed, the answers as the resolver gives
    /// them.
    seed: Option<u64>,
    /// The address that was dialled last, and its URL.
    last: Option<(usize, SocketAddr)>,
    is_kept: bool,
}

impl Rotation {
    /// Creates the round of this many URLs. The same seed gives the same order.
    pub(super) const fn new(urls: usize, seed: Option<u64>) -> Self {
        Self {
            urls,
            seed,
            last: None,
            is_kept: false,
        }
    }

    /// Begins an attempt: with the address that is [kept](Self::keep), else behind the one that was
    /// dialled last, else at the beginning of the order.
    pub(super) fn pass(&self) -> Pass {
        let mut urls: Vec<usize> = (0..self.urls).collect();
        if let Some(seed) = self.seed {
            urls.sort_by_key(|url| mix(seed, url));
        }
        if let Some((last, _)) = self.last {
            let at = urls.iter().position(|url| *url == last).unwrap_or(0);
            urls.rotate_left(at);
        }
        let steps = urls.into_iter().map(|url| Step::Resolve { url });
        Pass {
            steps: steps.collect(),
            seed: self.seed,
            first: self.last,
            is_kept: self.is_kept,
            url: 0,
        }
    }

    /// Notes that an address is being dialled. The next attempt goes on behind it.
    pub(super) const fn dialled(&mut self, url: usize, address: SocketAddr) {
        self.last = Some((url, address));
        self.is_kept = false;
    }

    /// Notes that the address that was dialled last is good: the next attempt begins with it.
    pub(super) const fn keep(&mut self) {
        self.is_kept = self.last.is_some();
    }

    /// Notes that the address that was dialled last is no longer good: the next attempt goes on
    /// behind it.
    pub(super) const fn leave(&mut self) {
        self.is_kept = false;
    }
}

/// What to do next in a [`Pass`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Resolve the name of this URL and pass the answers to [`Pass::resolved`]. Without answers,
    /// take the next step.
    Resolve {
        /// The index of the URL in the list.
        url: usize,
    },
    /// Dial this address. If it fails in a way that another address may not, take the next step.
    Dial {
        /// The index of the URL in the list.
        url: usize,
        /// One of the answers for its name.
        address: SocketAddr,
    },
    /// All addresses were visited.
    Done,
}

/// One attempt of a [`Rotation`]. It ends where its user ends it, or after all addresses.
#[derive(Debug)]
#[must_use]
pub(super) struct Pass {
    /// The steps that are left.
    steps: VecDeque<Step>,
    seed: Option<u64>,
    /// Where the round stands, until that URL is resolved.
    first: Option<(usize, SocketAddr)>,
    is_kept: bool,
    /// The URL that was resolved last.
    url: usize,
}

impl Pass {
    /// Returns the next step.
    pub(super) fn step(&mut self) -> Step {
        let step = self.steps.pop_front().unwrap_or(Step::Done);
        if let Step::Resolve { url } = step {
            self.url = url;
        }
        step
    }

    /// Like [`resolved`](Self::resolved), but begins with the first answer wherever the round stands: for a
    /// name whose addresses are one machine.
    pub(super) fn resolved_in_order(&mut self, answers: &[SocketAddr]) {
        self.first.take_if(|(url, _)| *url == self.url);
        self.resolved(answers);
    }

    /// Takes the answers for the URL of the last [`Step::Resolve`].
    pub(super) fn resolved(&mut self, answers: &[SocketAddr]) {
        let url = self.url;
        let mut ordered: Vec<SocketAddr> = Vec::with_capacity(answers.len());
        for answer in answers {
            if !ordered.contains(answer) {
                ordered.push(*answer);
            }
        }
        if let (Some(seed), Some(first)) = (self.seed, answers.first()) {
            ordered.sort_by_key(|it| (it.is_ipv4() != first.is_ipv4(), mix(seed, it)));
        }
        let last = self.first.take_if(|(first, _)| *first == url);
        let at = last.and_then(|(_, last)| ordered.iter().position(|answer| *answer == last));
        let later = ordered.split_off(at.map_or(0, |at| at + usize::from(!self.is_kept)));
        let dial = |address| Step::Dial { url, address };
        for address in later.into_iter().rev() {
            self.steps.push_front(dial(address));
        }
        // Their turn comes after all other URLs.
        self.steps.extend(ordered.into_iter().map(dial));
    }

    /// Returns how many steps are left, a URL that is not yet resolved counted as one: to share
    /// out the time of the attempt.
    pub(super) fn left(&self) -> usize {
        self.steps.len()
    }
}

/// Returns a number that orders `item` among others by chance.
fn mix(seed: u64, item: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    item.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
