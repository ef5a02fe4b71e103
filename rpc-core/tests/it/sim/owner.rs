//! A session on one node: who owns it, and its log if this node does. As a host of agents does it.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rpc_core::cluster::{ClaimError, Claimed, Claims};
use switchboard_testing::sim::Rng;

use super::fence::Fence;
use super::node::{Answer, Call, Out};
use super::publish::{Publish, PublishError, PublishReply};
use super::store::{Body, CHANNELS, Draft, Record};
use super::world::{Break, PAGE};

const AGAIN: Duration = Duration::from_secs(1);

/// A prompt that someone sends.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub client: usize,
    pub id: u32,
    /// Another node has passed it on.
    pub forwarded: bool,
}

/// What a session needs of its node.
pub struct Cx<'a> {
    pub session: usize,
    pub claims: &'a Claims,
    pub broken: Break,
    pub now: Instant,
    pub rng: &'a mut Rng,
    pub out: &'a mut Out,
}

#[derive(Default)]
pub struct Session {
    claim: Option<BoxFuture<'static, Result<Claimed, ClaimError>>>,
    pub owner: Option<Owner>,
    waiting: Vec<Ask>,
}

impl Session {
    pub fn prompt(&mut self, ask: Ask, cx: &mut Cx<'_>) {
        match &mut self.owner {
            Some(owner) if owner.ready => owner.prompt(ask, cx),
            owner => {
                self.waiting.push(ask);
                if owner.is_none() && self.claim.is_none() {
                    let (claims, name) = (cx.claims.clone(), format!("s{}", cx.session));
                    self.claim = Some(Box::pin(async move { claims.claim(&name).await }));
                }
            }
        }
        self.run(cx);
    }

    pub fn log(&mut self, fence: u64, after: u64, records: &[Record], cx: &mut Cx<'_>) {
        let owner = self
            .owner
            .as_mut()
            .filter(|owner| owner.fence.fence() == fence);
        if let Some(owner) = owner
            && !owner.log(after, records, cx)
        {
            self.stop(cx);
        }
        self.run(cx);
    }

    pub fn written(
        &mut self,
        fence: u64,
        write: u64,
        attempt: u64,
        reply: PublishReply,
        cx: &mut Cx<'_>,
    ) {
        let owner = self
            .owner
            .as_mut()
            .filter(|owner| owner.fence.fence() == fence);
        if let Some(writing) = owner.and_then(|owner| owner.write.as_mut())
            && writing.number == write
        {
            writing.publish.handle_reply(attempt, reply, cx.now);
        }
        self.run(cx);
    }

    pub fn timeout(&mut self, cx: &mut Cx<'_>) {
        if let Some(owner) = &mut self.owner {
            owner.timeout(cx);
        }
        self.run(cx);
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.owner.as_ref().and_then(Owner::poll_timeout)
    }

    /// Is the owner no longer: whoever waits tries again.
    fn stop(&mut self, cx: &mut Cx<'_>) {
        self.owner = None;
        self.fail(cx);
    }

    fn fail(&mut self, cx: &mut Cx<'_>) {
        for ask in self.waiting.drain(..) {
            cx.out.answer(ask.client, ask.id, Answer::Failed);
        }
    }

    fn run(&mut self, cx: &mut Cx<'_>) {
        if let Some(claimed) = self
            .claim
            .as_mut()
            .and_then(futures_util::FutureExt::now_or_never)
        {
            self.claim = None;
            self.claimed(claimed, cx);
        }
        if let Some(owner) = &mut self.owner {
            if owner.run(cx).is_err() {
                self.stop(cx);
            } else if owner.ready {
                for ask in std::mem::take(&mut self.waiting) {
                    self.prompt(ask, cx);
                }
            }
        }
    }

    fn claimed(&mut self, claimed: Result<Claimed, ClaimError>, cx: &mut Cx<'_>) {
        match claimed {
            Ok(Claimed::Owned(owned)) => self.owner = Some(Owner::new(owned.fence(), cx)),
            Ok(Claimed::Held { node }) => {
                let (late, new) = self.waiting.drain(..).partition(|ask| ask.forwarded);
                self.waiting = late;
                let new: Vec<_> = new;
                cx.out
                    .forwards
                    .extend(new.into_iter().map(|ask| (node.clone(), cx.session, ask)));
                self.fail(cx);
            }
            Err(_) => self.fail(cx),
        }
    }
}

/// The owner of a session.
pub struct Owner {
    pub fence: Fence,
    /// Whether its log says so, and prompts are taken.
    pub ready: bool,
    /// After which record the log is read, and when it is asked for again.
    reading: Option<(u64, Instant)>,
    /// The prompts in the log, and whether they are answered.
    prompts: HashMap<u32, bool>,
    askers: HashMap<u32, usize>,
    queue: VecDeque<Body>,
    write: Option<Write>,
    writes: u64,
    retry_at: Option<Instant>,
    work: Vec<(Instant, u32)>,
}

struct Write {
    number: u64,
    publish: Publish,
    body: Body,
}

/// The owner has to stop.
struct Stop;

impl Owner {
    fn new(fence: u64, cx: &mut Cx<'_>) -> Self {
        let mut owner = Self {
            fence: Fence::new(fence),
            ready: false,
            reading: None,
            prompts: HashMap::new(),
            askers: HashMap::new(),
            queue: VecDeque::new(),
            write: None,
            writes: 0,
            retry_at: None,
            work: Vec::new(),
        };
        owner.read(cx);
        owner
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        let after = self.fence.expected();
        self.reading = Some((after, cx.now + AGAIN));
        cx.out.calls.push(Call::Log {
            session: cx.session,
            fence: self.fence.fence(),
            after,
        });
    }

    /// Takes a page of the log. `false` if there is a later owner.
    fn log(&mut self, after: u64, records: &[Record], cx: &mut Cx<'_>) -> bool {
        if self.reading.is_none_or(|(asked, _)| asked != after) {
            return true;
        }
        for record in records {
            let owner = Some(record.fence).filter(|_| record.body == Body::Owner);
            let owner = owner.filter(|_| cx.broken != Break::Successor);
            if self.fence.read(record.sequence, owner).is_err() {
                return false;
            }
            match record.body {
                Body::Prompt(id) => drop(self.prompts.insert(id, false)),
                Body::Final(id) => drop(self.prompts.insert(id, true)),
                Body::Owner | Body::Chat(_) => {}
            }
        }
        self.reading = None;
        if records.len() == PAGE {
            self.read(cx);
        } else if self.fence.is_owner() || cx.broken == Break::OwnerRecord {
            self.begin(cx);
        } else {
            self.queue.push_back(Body::Owner);
        }
        true
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        self.ready = true;
        cx.out.begun.push((cx.session, self.fence.fence()));
        if cx.broken == Break::Recovery {
            return;
        }
        // What a dead owner has not answered is interrupted.
        let open = self.prompts.iter().filter(|(_, done)| !**done);
        let mut open: Vec<_> = open.map(|(id, _)| Body::Final(*id)).collect();
        open.sort_by_key(|body| format!("{body:?}"));
        self.queue.extend(open);
    }

    fn prompt(&mut self, ask: Ask, cx: &mut Cx<'_>) {
        self.askers.insert(ask.id, ask.client);
        match self.prompts.get(&ask.id) {
            Some(true) => cx.out.answer(ask.client, ask.id, Answer::Done),
            Some(false) => cx.out.answer(ask.client, ask.id, Answer::Stored),
            None => {
                let body = Body::Prompt(ask.id);
                let writing = self.write.as_ref().is_some_and(|write| write.body == body);
                if !writing && !self.queue.contains(&body) {
                    self.queue.push_back(body);
                }
                if cx.broken == Break::Answer {
                    cx.out.answer(ask.client, ask.id, Answer::Stored);
                }
            }
        }
    }

    fn timeout(&mut self, cx: &mut Cx<'_>) {
        if self.reading.is_some_and(|(_, at)| at <= cx.now) {
            self.read(cx);
        }
        if let Some(write) = &mut self.write {
            write.publish.handle_timeout(cx.now);
        }
        self.retry_at.take_if(|at| *at <= cx.now);
        let done = self.work.extract_if(.., |(at, _)| *at <= cx.now);
        self.queue.extend(done.map(|(_, id)| Body::Final(id)));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let write = self
            .write
            .as_ref()
            .and_then(|write| write.publish.poll_timeout());
        let work = self.work.iter().map(|(at, _)| *at);
        let reading = self.reading.map(|(_, at)| at);
        work.chain(write).chain(reading).chain(self.retry_at).min()
    }

    /// Writes what waits, one record at a time.
    fn run(&mut self, cx: &mut Cx<'_>) -> Result<(), Stop> {
        loop {
            let Some(write) = &mut self.write else {
                if self.retry_at.is_some() || self.reading.is_some() {
                    return Ok(());
                }
                let Some(body) = self.queue.pop_front() else {
                    return Ok(());
                };
                self.writes += 1;
                let publish = Publish::new(cx.rng.next_u64(), cx.now);
                self.write = Some(Write {
                    number: self.writes,
                    publish,
                    body,
                });
                continue;
            };
            while let Some(attempt) = write.publish.poll_request() {
                let fence = self.fence.fence();
                let subject = CHANNELS + cx.session;
                let id = (1 + subject as u64) << 48 | fence << 24 | write.number << 8;
                cx.out.calls.push(Call::Write {
                    session: cx.session,
                    write: write.number,
                    attempt,
                    draft: Draft {
                        subject,
                        id: id | if cx.broken == Break::Ids { attempt } else { 0 },
                        fence,
                        body: write.body,
                        expected: Some(self.fence.expected()),
                    },
                });
            }
            let Some(outcome) = write.publish.poll_event() else {
                return Ok(());
            };
            let body = write.body;
            self.write = None;
            self.outcome(body, outcome, cx)?;
        }
    }

    fn outcome(
        &mut self,
        body: Body,
        outcome: Result<u64, PublishError>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Stop> {
        match (body, outcome) {
            (_, Ok(sequence)) => {
                self.fence.stored(sequence, body == Body::Owner);
                self.stored(body, cx);
            }
            (
                Body::Owner,
                Err(PublishError {
                    reply: PublishReply::Conflict,
                    ..
                }),
            ) => self.read(cx),
            (
                Body::Prompt(id),
                Err(PublishError {
                    reply: PublishReply::Refused,
                    maybe_stored: false,
                    ..
                }),
            ) => {
                self.tell(id, Answer::Refused, cx);
            }
            (
                _,
                Err(PublishError {
                    reply: PublishReply::Refused,
                    maybe_stored: false,
                    ..
                }),
            ) => {
                self.queue.push_front(body);
                self.retry_at = Some(cx.now + AGAIN);
            }
            (_, Err(_)) => return Err(Stop),
        }
        Ok(())
    }

    fn stored(&mut self, body: Body, cx: &mut Cx<'_>) {
        match body {
            Body::Owner => self.begin(cx),
            Body::Prompt(id) => {
                self.prompts.insert(id, false);
                self.tell(id, Answer::Stored, cx);
                let takes = cx.rng.duration(Duration::from_secs(8));
                self.work.push((cx.now + takes, id));
            }
            Body::Final(id) => {
                self.prompts.insert(id, true);
                self.tell(id, Answer::Done, cx);
            }
            Body::Chat(_) => {}
        }
    }

    fn tell(&self, id: u32, answer: Answer, cx: &mut Cx<'_>) {
        if let Some(client) = self.askers.get(&id) {
            cx.out.answer(*client, id, answer);
        }
    }
}
