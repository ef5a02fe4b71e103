//! A node: its lease, the channels that it follows, messages that it publishes, and its sessions.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rpc_core::Str;
use rpc_core::cluster::{Claims, LeaseConfig, LeaseLost, NodeLease};
use rpc_core::store::{Fill, Sequencer, Store};
use switchboard_testing::sim::Rng;

use super::keys::{KeyCall, KeyReply, Keys};
use super::owner::{Ask, Cx, Session};
use super::publish::{Publish, PublishError, PublishReply};
use super::store::{Body, CHANNELS, Draft, Record, SESSIONS};
use super::world::Break;

const CHECK: Duration = Duration::from_secs(10);
const SUBSCRIBE: Duration = Duration::from_secs(2);

/// What reaches a node.
#[derive(Clone, Debug)]
pub enum Input {
    Timer,
    Key {
        number: u64,
        reply: KeyReply,
    },
    Chatted {
        key: u64,
        attempt: u64,
        reply: PublishReply,
    },
    Written {
        session: usize,
        fence: u64,
        write: u64,
        attempt: u64,
        reply: PublishReply,
    },
    Log {
        session: usize,
        fence: u64,
        after: u64,
        records: Vec<Record>,
    },
    Subscribed {
        last: [u64; CHANNELS],
    },
    Feed {
        channel: usize,
        record: Record,
        previous: u64,
    },
    Filled {
        channel: usize,
        fill: Fill,
        records: Vec<Record>,
        through: u64,
    },
    /// The line to the store was away.
    Interrupted,
    Chat {
        client: usize,
        id: u32,
        channel: usize,
    },
    Prompt {
        session: usize,
        ask: Ask,
    },
}

/// What a node asks the store for.
#[derive(Clone, Debug)]
pub enum Call {
    Key(KeyCall),
    Chat {
        key: u64,
        attempt: u64,
        draft: Draft,
    },
    Write {
        session: usize,
        write: u64,
        attempt: u64,
        draft: Draft,
    },
    Log {
        session: usize,
        fence: u64,
        after: u64,
    },
    Subscribe,
    Fill {
        channel: usize,
        fill: Fill,
    },
}

/// What a client is told of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is kept.
    Stored,
    /// It is kept and answered.
    Done,
    /// This request is not kept and never will be.
    Refused,
    /// Try again.
    Failed,
}

/// What a node wants done.
#[derive(Default)]
pub struct Out {
    pub calls: Vec<Call>,
    pub answers: Vec<(usize, u32, Answer)>,
    pub forwards: Vec<(Str, usize, Ask)>,
    pub delivered: Vec<(usize, u64, u32)>,
    pub begun: Vec<(usize, u64)>,
}

impl Out {
    pub fn answer(&mut self, client: usize, id: u32, answer: Answer) {
        self.answers.push((client, id, answer));
    }
}

/// A channel that is followed.
#[derive(Default)]
struct Feed {
    sequencer: Option<Sequencer<u32>>,
    /// What came before it was known where to start.
    early: VecDeque<(u64, u64, u32)>,
}

struct Chat {
    key: u64,
    publish: Publish,
    client: usize,
    id: u32,
    channel: usize,
}

pub struct Node {
    pub id: Str,
    broken: Break,
    keys: Keys,
    lease: NodeLease,
    claims: Claims,
    renewing: BoxFuture<'static, LeaseLost>,
    pub lost: bool,
    feeds: [Feed; CHANNELS],
    subscribe_at: Option<Instant>,
    check_at: Instant,
    chats: Vec<Chat>,
    sent: u64,
    pub sessions: [Session; SESSIONS],
}

impl Node {
    pub fn new(broken: Break, now: Instant) -> Self {
        let mut config = LeaseConfig::default();
        if broken == Break::Margin {
            config.margin = Duration::ZERO;
        }
        let keys = Keys::new(now);
        let store: Arc<dyn Store> = Arc::new(keys.clone());
        let opening = NodeLease::open_by(&store, config, Arc::new(keys.clone()));
        let (lease, renewal) = opening.now_or_never().unwrap().unwrap();
        let claims = Claims::open(&store, "names", &lease).now_or_never();
        Self {
            id: lease.node().clone(),
            claims: claims.unwrap().unwrap(),
            lease,
            renewing: Box::pin(renewal.run(drop)),
            keys,
            broken,
            lost: false,
            feeds: Default::default(),
            subscribe_at: Some(now),
            check_at: now + CHECK,
            chats: Vec::new(),
            sent: 0,
            sessions: Default::default(),
        }
    }

    pub fn is_valid(&self, now: Instant) -> bool {
        self.keys.set_time(now);
        self.lease.is_valid()
    }

    /// Whether this node believes that it may write for a session.
    pub fn owns(&self, session: usize, now: Instant) -> bool {
        self.is_valid(now)
            && self.sessions[session]
                .owner
                .as_ref()
                .is_some_and(|owner| owner.ready)
    }

    /// Up to where a channel has been followed.
    pub fn followed(&self, channel: usize) -> Option<u64> {
        self.feeds[channel]
            .sequencer
            .as_ref()
            .map(Sequencer::delivered)
    }

    pub fn handle(&mut self, input: Input, now: Instant, rng: &mut Rng, out: &mut Out) {
        self.keys.set_time(now);
        if let Input::Key { number, reply } = &input {
            self.keys.reply(*number, reply.clone());
        }
        self.lost = self.lost || (&mut self.renewing).now_or_never().is_some();
        // A node without lease does nothing more.
        if self.lost && !matches!(self.broken, Break::Lease | Break::Successor) {
            return;
        }
        match input {
            Input::Timer | Input::Key { .. } => {}
            Input::Written {
                session,
                fence,
                write,
                attempt,
                reply,
            } => {
                let (session, mut cx) = self.session(session, now, rng, out);
                session.written(fence, write, attempt, reply, &mut cx);
            }
            Input::Log {
                session,
                fence,
                after,
                records,
            } => {
                let (session, mut cx) = self.session(session, now, rng, out);
                session.log(fence, after, &records, &mut cx);
            }
            Input::Prompt { ask, .. } if !self.lease.is_valid() && !self.lost => {
                out.answer(ask.client, ask.id, Answer::Failed);
            }
            Input::Prompt { session, ask } => {
                let (session, mut cx) = self.session(session, now, rng, out);
                session.prompt(ask, &mut cx);
            }
            Input::Chat {
                client,
                id,
                channel,
            } => self.chat(client, id, channel, now, rng, out),
            Input::Chatted {
                key,
                attempt,
                reply,
            } => {
                if let Some(chat) = self.chats.iter_mut().find(|chat| chat.key == key) {
                    chat.publish.handle_reply(attempt, reply, now);
                }
            }
            Input::Subscribed { last } => self.subscribed(last, now),
            Input::Feed {
                channel,
                record,
                previous,
            } => self.feed(channel, record, previous, now),
            Input::Filled {
                channel,
                fill,
                records,
                through,
            } => {
                if let Some(sequencer) = &mut self.feeds[channel].sequencer {
                    let items = records.iter().filter_map(message);
                    sequencer.handle_fill(fill, items, through, now);
                }
            }
            Input::Interrupted => self.check(now),
        }
        self.timeouts(now, rng, out);
        self.run(now, out);
        out.calls
            .extend(std::iter::from_fn(|| self.keys.poll_call()).map(Call::Key));
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        let chats = self
            .chats
            .iter()
            .filter_map(|chat| chat.publish.poll_timeout());
        let sessions = self.sessions.iter().filter_map(Session::poll_timeout);
        let feeds = self
            .feeds
            .iter()
            .filter_map(|feed| feed.sequencer.as_ref()?.poll_timeout());
        let own = self
            .keys
            .poll_timeout()
            .into_iter()
            .chain(self.subscribe_at);
        chats
            .chain(sessions)
            .chain(feeds)
            .chain(own)
            .chain([self.check_at])
            .min()
    }

    fn session<'a>(
        &'a mut self,
        session: usize,
        now: Instant,
        rng: &'a mut Rng,
        out: &'a mut Out,
    ) -> (&'a mut Session, Cx<'a>) {
        let cx = Cx {
            session,
            claims: &self.claims,
            broken: self.broken,
            now,
            rng,
            out,
        };
        (&mut self.sessions[session], cx)
    }

    fn chat(
        &mut self,
        client: usize,
        id: u32,
        channel: usize,
        now: Instant,
        rng: &mut Rng,
        out: &mut Out,
    ) {
        if self.broken == Break::Answer {
            out.answer(client, id, Answer::Stored);
        }
        if self.chats.iter().all(|chat| chat.id != id) {
            self.sent += 1;
            self.chats.push(Chat {
                key: self.sent,
                publish: Publish::new(rng.next_u64(), now),
                client,
                id,
                channel,
            });
        }
    }

    fn subscribed(&mut self, last: [u64; CHANNELS], now: Instant) {
        if self.subscribe_at.take().is_none() {
            return;
        }
        for (feed, last) in self.feeds.iter_mut().zip(last) {
            let mut sequencer = Sequencer::new(last, 3);
            for (sequence, previous, id) in feed.early.drain(..) {
                sequencer.handle_live(sequence, previous, id, now);
            }
            feed.sequencer = Some(sequencer);
        }
    }

    fn feed(&mut self, channel: usize, record: Record, previous: u64, now: Instant) {
        let feed = &mut self.feeds[channel];
        if let Some((sequence, id)) = message(&record) {
            match &mut feed.sequencer {
                Some(sequencer) => sequencer.handle_live(sequence, previous, id, now),
                None => feed.early.push_back((sequence, previous, id)),
            }
        }
    }

    fn check(&mut self, now: Instant) {
        self.check_at = now + CHECK;
        if self.broken != Break::Check {
            let sequencers = self
                .feeds
                .iter_mut()
                .filter_map(|feed| feed.sequencer.as_mut());
            sequencers.for_each(|sequencer| sequencer.check(now));
        }
    }

    fn timeouts(&mut self, now: Instant, rng: &mut Rng, out: &mut Out) {
        if self.subscribe_at.is_some_and(|at| at <= now) {
            self.subscribe_at = Some(now + SUBSCRIBE);
            out.calls.push(Call::Subscribe);
        }
        if self.check_at <= now {
            self.check(now);
        }
        for sequencer in self
            .feeds
            .iter_mut()
            .filter_map(|feed| feed.sequencer.as_mut())
        {
            sequencer.handle_timeout(now);
        }
        for chat in &mut self.chats {
            chat.publish.handle_timeout(now);
        }
        for session in 0..SESSIONS {
            let (session, mut cx) = self.session(session, now, rng, out);
            session.timeout(&mut cx);
        }
    }

    fn run(&mut self, now: Instant, out: &mut Out) {
        for (channel, feed) in self.feeds.iter_mut().enumerate() {
            let Some(sequencer) = &mut feed.sequencer else {
                continue;
            };
            while let Some(fill) = sequencer.poll_request() {
                match fill.until.filter(|_| self.broken == Break::Fill) {
                    Some(until) => sequencer.handle_fill(fill, [], until, now),
                    None => out.calls.push(Call::Fill { channel, fill }),
                }
            }
            while let Some((sequence, item)) = sequencer.poll_event() {
                out.delivered.push((channel, sequence, item));
            }
        }
        let broken = self.broken;
        self.chats.retain_mut(|chat| {
            while let Some(attempt) = chat.publish.poll_request() {
                let again = if broken == Break::Ids {
                    self.sent << 8 | attempt
                } else {
                    0
                };
                out.calls.push(Call::Chat {
                    key: chat.key,
                    attempt,
                    draft: Draft {
                        subject: chat.channel,
                        id: u64::from(chat.id) << 16 | again,
                        fence: 0,
                        body: Body::Chat(chat.id),
                        expected: None,
                    },
                });
            }
            let Some(outcome) = chat.publish.poll_event() else {
                return true;
            };
            let answer = match outcome {
                Ok(_) => Answer::Stored,
                Err(PublishError {
                    reply: PublishReply::Refused,
                    maybe_stored: false,
                    ..
                }) => Answer::Refused,
                Err(_) => Answer::Failed,
            };
            out.answer(chat.client, chat.id, answer);
            false
        });
    }
}

/// The number of a record, and that of the request in it.
fn message(record: &Record) -> Option<(u64, u32)> {
    match record.body {
        Body::Chat(id) => Some((record.sequence, id)),
        _ => None,
    }
}
