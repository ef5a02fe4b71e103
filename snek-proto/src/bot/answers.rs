//! [`Answers`]: how often a bot has answered whom, so that bots do not keep each other busy. No IO.

use std::collections::HashMap;
use std::time::Duration;

use rpc_core::{Instant, Str};

use crate::id::ChannelUid;

const MINUTE: Duration = Duration::from_secs(60);
/// How long answers count, and how long the bot is silent.
const WINDOW: Duration = Duration::from_secs(600);
/// An author with at most so many messages in the window is a third one.
const MAX_RARE: usize = 2;
/// Most authors that are remembered; beyond, all are forgotten.
const MAX_AUTHORS: usize = 4096;

/// What to do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Answer,
    /// Say once that the bot stops.
    Stop,
    Ignore,
}

/// The answers of one bot; see [`max_answers`](super::BotConfig::max_answers) for the rule.
#[derive(Debug, Default)]
pub(super) struct Answers(HashMap<ChannelUid, HashMap<Str, Author>>);

#[derive(Debug, Default)]
struct Author {
    /// When they wrote, the newest `MAX_RARE + 1` times.
    wrote: Vec<Instant>,
    answered: Vec<Instant>,
    /// Since when the bot is silent.
    silent: Option<Instant>,
}

impl Answers {
    /// Takes a message of somebody else. One of a third author ends the silence towards all others.
    pub(super) fn on_message(&mut self, channel: &ChannelUid, author: &Str, now: Instant) {
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < WINDOW;
        if self.0.values().map(HashMap::len).sum::<usize>() >= MAX_AUTHORS {
            self.0.clear();
        }
        let authors = self.0.entry(channel.clone()).or_default();
        let known = authors.entry(author.clone()).or_default();
        known.wrote.retain(is_recent);
        if known.wrote.len() > MAX_RARE {
            known.wrote.remove(0);
        }
        known.wrote.push(now);
        if known.wrote.len() <= MAX_RARE {
            for (_, other) in authors.iter_mut().filter(|(name, _)| *name != author) {
                other.answered.clear();
                other.silent = None;
            }
        }
    }

    /// Decides whether this author is answered, at most `max` times.
    pub(super) fn decide(
        &mut self,
        channel: &str,
        author: &str,
        max: usize,
        now: Instant,
    ) -> Decision {
        let Some(known) = self.author(channel, author) else {
            return Decision::Answer;
        };
        let within = |at: &Instant, time| now.saturating_duration_since(*at) < time;
        if known.silent.is_some_and(|since| within(&since, WINDOW)) {
            return Decision::Ignore;
        }
        if known.silent.take().is_some() {
            known.answered.clear();
        }
        known.answered.retain(|at| within(at, WINDOW));
        let in_a_minute = known.answered.iter().filter(|at| within(at, MINUTE));
        let max = max.max(1);
        if known.answered.len() < max && in_a_minute.count() < max.div_ceil(2) {
            return Decision::Answer;
        }
        known.silent = Some(now);
        Decision::Stop
    }

    /// Counts an answer to this author.
    pub(super) fn answered(&mut self, channel: &str, author: &str, now: Instant) {
        if let Some(known) = self.author(channel, author) {
            known.answered.push(now);
        }
    }

    fn author(&mut self, channel: &str, author: &str) -> Option<&mut Author> {
        self.0.get_mut(channel)?.get_mut(author)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 10;

    struct Channel(Answers, Instant);

    impl Channel {
        fn new() -> Self {
            Self(Answers::default(), Instant::now())
        }

        fn wait(&mut self, seconds: u64) {
            self.1 += Duration::from_secs(seconds);
        }

        /// Somebody writes to the bot, which answers if it may.
        fn asks(&mut self, author: &str) -> Decision {
            self.adds(author);
            let decision = self.0.decide("c", author, MAX, self.1);
            if decision == Decision::Answer {
                self.0.answered("c", author, self.1);
            }
            decision
        }

        /// Somebody writes what is no business of the bot.
        fn adds(&mut self, author: &str) {
            self.0.on_message(&"c".into(), &author.into(), self.1);
        }

        /// How many of these messages, so many seconds apart, are answered; and how often it stops.
        fn count(&mut self, authors: &[&str], rounds: usize, pause: u64) -> (usize, usize) {
            let (mut answers, mut stops) = (0, 0);
            for _ in 0..rounds {
                for author in authors {
                    let decision = self.asks(author);
                    answers += usize::from(decision == Decision::Answer);
                    stops += usize::from(decision == Decision::Stop);
                    self.wait(pause);
                }
            }
            (answers, stops)
        }
    }

    #[test]
    fn one_author_is_answered_five_times_in_a_minute_and_ten_in_ten() {
        assert_eq!(Channel::new().count(&["a"], 100, 0), (5, 1));
        assert_eq!(Channel::new().count(&["a"], 29, 20), (10, 1));
        // A person asks once in a minute, for hours.
        assert_eq!(Channel::new().count(&["a"], 300, 61), (300, 0));
    }

    #[test]
    fn the_silence_ends_after_ten_minutes() {
        let mut channel = Channel::new();
        assert_eq!(channel.count(&["a"], 9, 0), (5, 1));
        channel.wait(599);
        assert_eq!(channel.asks("a"), Decision::Ignore);
        channel.wait(1);
        assert_eq!(channel.count(&["a"], 9, 0), (5, 1));
    }

    #[test]
    fn a_third_author_ends_the_silence_and_is_answered() {
        let mut channel = Channel::new();
        assert_eq!(channel.count(&["a"], 9, 0), (5, 1));
        channel.adds("person");
        assert_eq!(channel.count(&["a"], 9, 0), (5, 1));
        assert_eq!(channel.asks("person"), Decision::Answer);
        assert_eq!(channel.count(&["a"], 9, 0), (5, 1));
        // By now the person is not new, and is answered all the same.
        assert_eq!(channel.asks("person"), Decision::Answer);
        assert_eq!(channel.asks("a"), Decision::Ignore);
    }

    /// How many answers a ring gets: those of `asking` name the bot, the `others` each other. It goes on
    /// while the bot answers.
    fn ring(asking: &[&str], others: &[&str], pause: u64) -> usize {
        let mut channel = Channel::new();
        let mut sum = 0;
        for _ in 0..1000 {
            others.iter().for_each(|other| channel.adds(other));
            let (answers, _) = channel.count(asking, 1, pause);
            if answers == 0 {
                return sum;
            }
            sum += answers;
        }
        panic!("{asking:?} {others:?} go on for ever");
    }

    #[test]
    fn rings_of_any_size_and_shape_end() {
        let names: Vec<String> = (0..9).map(|n| format!("bot{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for size in 1..=names.len() {
            for pause in [0, 1, 30 / size as u64] {
                let answers = ring(&names[..size], &[], pause);
                assert!(answers <= (MAX + MAX_RARE) * size, "{answers} {size}");
                let answers = ring(&names[..1], &names[1..size], pause);
                assert!(answers <= MAX + MAX_RARE, "{answers} {size} {pause}");
            }
        }
    }

    #[test]
    fn a_slow_member_keeps_no_ring_alive() {
        let mut channel = Channel::new();
        let mut answers = 0;
        for _ in 0..50 {
            channel.asks("slow");
            answers += channel.count(&["fast"], 100, 0).0;
            channel.wait(10);
        }
        assert!(answers <= 5 * (MAX_RARE + 1), "{answers}");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut answers = Answers::default();
        let now = Instant::now();
        for n in 0..3 * MAX_AUTHORS {
            answers.on_message(&format!("c{}", n % 7).into(), &n.to_string().into(), now);
            let known: usize = answers.0.values().map(HashMap::len).sum();
            assert!(known <= MAX_AUTHORS);
        }
    }
}
