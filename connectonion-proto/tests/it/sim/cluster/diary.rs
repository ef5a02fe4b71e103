//! [`Diary`]: what everyone said and heard, and what must be true of it.

use std::collections::HashMap;
use std::time::Duration;

use switchboard_testing::sim::cluster::Chronicle;
use switchboard_testing::sim::{Outcome, ensure};
use tokio::time::Instant;

/// How long an answer may take to those who stay connected.
const DELAY: Duration = Duration::from_secs(60);

struct Prompt {
    text: String,
    session: &'static str,
    at: Instant,
    /// When it was acknowledged, and when its answer came.
    taken: Option<Instant>,
    answered: Option<Instant>,
}

/// What a user hears over one connection.
struct Stretch {
    session: &'static str,
    start: Instant,
    end: Option<Instant>,
    answers: Vec<String>,
}

pub struct Diary {
    chronicle: Chronicle,
    prompts: Vec<Prompt>,
    stretches: Vec<Stretch>,
}

/// What an agent answers to a prompt.
pub fn answer_to(prompt: &str) -> String {
    format!("answer to {prompt}")
}

impl Diary {
    pub const fn new(chronicle: Chronicle) -> Self {
        Self {
            chronicle,
            prompts: Vec::new(),
            stretches: Vec::new(),
        }
    }

    pub fn begins(&mut self, session: &'static str) -> usize {
        self.stretches.push(Stretch {
            session,
            start: Instant::now(),
            end: None,
            answers: Vec::new(),
        });
        self.stretches.len() - 1
    }

    pub fn ends(&mut self, stretch: usize) {
        self.stretches[stretch].end = Some(Instant::now());
    }

    pub fn sends(&mut self, session: &'static str, text: &str) -> usize {
        self.prompts.push(Prompt {
            text: text.to_owned(),
            session,
            at: Instant::now(),
            taken: None,
            answered: None,
        });
        self.prompts.len() - 1
    }

    pub fn taken(&mut self, prompt: usize) {
        self.prompts[prompt].taken.get_or_insert_with(Instant::now);
    }

    /// Notes an answer that someone hears. One run may answer several prompts.
    pub fn receives(&mut self, stretch: usize, answer: &str) {
        let stretch = &mut self.stretches[stretch];
        stretch.answers.push(answer.to_owned());
        for prompt in &mut self.prompts {
            if prompt.session == stretch.session && names(answer, &prompt.text) {
                prompt.taken.get_or_insert_with(Instant::now);
                prompt.answered.get_or_insert_with(Instant::now);
            }
        }
    }

    /// How many prompts there were, and how many of them were answered.
    pub fn counts(&self) -> (u64, u64) {
        let answered = self.prompts.iter().filter(|it| it.answered.is_some());
        (self.prompts.len() as u64, answered.count() as u64)
    }

    /// Checks a conversation as it is in the end, and all that was heard of it.
    pub fn check(&self, session: &str, messages: &[(String, String)]) -> Outcome {
        let checked = self
            .conversation(session, messages)
            .and_then(|()| self.received());
        checked.map_err(|broken| {
            let broken = format!("{session}: {broken}\n{messages:?}");
            self.chronicle.explain(&broken)
        })
    }

    fn conversation(&self, session: &str, messages: &[(String, String)]) -> Outcome {
        let losses = self.chronicle.losses();
        let prompts = messages.iter().filter(|(role, _)| role == "user");
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (place, (_, text)) in prompts.enumerate() {
            let first = places.insert(text, place).is_none();
            ensure(first, || format!("doubled: {text}"))?;
        }
        let mut last: HashMap<&str, usize> = HashMap::new();
        for prompt in self.prompts.iter().filter(|it| it.session == session) {
            let text = &*prompt.text;
            let may_be_lost = losses.iter().any(|loss| *loss >= prompt.at);
            let place = places.get(text).copied();
            let is_due = prompt.taken.is_some() && !may_be_lost;
            ensure(!is_due || place.is_some(), || {
                format!("lost: {text}, which was acknowledged")
            })?;
            let answer = prompt.answered.is_some() && !may_be_lost;
            let has_answer =
                |(role, answer): &(String, String)| role == "assistant" && names(answer, text);
            ensure(!answer || messages.iter().any(has_answer), || {
                format!("lost: the answer to {text}, which was heard")
            })?;
            // Each user sends one after the other.
            let name = text.split('-').next().unwrap_or_default();
            let before = place.and_then(|place| last.insert(name, place));
            ensure(
                place.zip(before).is_none_or(|(now, before)| before < now),
                || format!("reordered: {text}"),
            )?;
        }
        Ok(())
    }

    /// Whoever is connected hears the answers, each once.
    fn received(&self) -> Outcome {
        for stretch in &self.stretches {
            for prompt in self
                .prompts
                .iter()
                .filter(|it| it.session == stretch.session)
            {
                let Some(answered) = prompt.answered else {
                    continue;
                };
                let count = stretch
                    .answers
                    .iter()
                    .filter(|it| names(it, &prompt.text))
                    .count();
                ensure(count <= 1, || {
                    format!("heard {count} times: {}", prompt.text)
                })?;
                let is_there = stretch.start <= prompt.at
                    && stretch.end.is_none_or(|end| end > answered + DELAY);
                ensure(!is_there || count == 1, || {
                    format!("not heard by all: the answer to {}", prompt.text)
                })?;
            }
        }
        Ok(())
    }
}

/// Whether this is the answer of a run with this prompt.
fn names(answer: &str, prompt: &str) -> bool {
    let prompts = answer.strip_prefix("answer to ");
    prompts.is_some_and(|it| it.split("\n\n").any(|it| it == prompt))
}
