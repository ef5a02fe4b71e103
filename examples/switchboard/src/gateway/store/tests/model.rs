//! The store against a naive model of it.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug, Default)]
struct Known {
    active: u64,
    turns: Vec<Turn>,
    had: u64,
    tokens: u64,
}

#[derive(Debug, Default)]
struct Model {
    sessions: BTreeMap<String, Known>,
    usage: Vec<u64>,
    days: BTreeMap<u64, u64>,
}

impl Model {
    fn commit(&mut self, commit: &Commit, limits: StoreLimits) {
        let known = self.sessions.entry(commit.session.clone()).or_default();
        known.active = known.active.max(commit.at);
        if let Some(turn) = &commit.turn {
            known.had += 1;
            known.turns.push(turn.clone());
            let most = usize::try_from(limits.turns).unwrap();
            let surplus = known.turns.len().saturating_sub(most);
            known.turns.drain(..surplus);
        }
        for entry in &commit.usage {
            known.tokens += entry.tokens();
            self.usage.push(entry.tokens());
            *self.days.entry(entry.at / 86_400).or_default() += entry.tokens();
        }
    }

    fn trim(&mut self, limits: StoreLimits) {
        while self.sessions.len() as u64 > limits.sessions {
            let silent = self
                .sessions
                .iter()
                .min_by_key(|(key, known)| (known.active, *key));
            let silent = silent.unwrap().0.clone();
            self.sessions.remove(&silent);
        }
        while self.usage.len() as u64 > limits.usage {
            self.usage.remove(0);
        }
        while self.days.len() as u64 > limits.days {
            self.days.pop_first();
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<Commit>),
    Forget(String),
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "ab", "b", "a\0", "a:b"]).prop_map(str::to_owned)
}

fn commit() -> impl Strategy<Value = Commit> {
    let at = (0_u64..6).prop_map(|half| half * 43_200);
    let usage = prop::collection::vec(0_u64..100, 0..3);
    (name(), at, prop::option::of(0_u8..9), usage).prop_map(|(session, at, turn, usage)| {
        let turn = turn.and_then(|number| Turn::new(number.to_string(), "a", at));
        let mut commit = Commit::new(session, at).with_turn(turn);
        for tokens in usage {
            let entry = UsageEntry::new(at, &commit.session, "agent");
            commit = commit.with_usage(entry.with_tokens(tokens, 1));
        }
        commit
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(commit(), 0..4).prop_map(Step::Commit),
        1 => name().prop_map(Step::Forget),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_store_agrees_with_its_model(steps in prop::collection::vec(step(), 0..25)) {
        let limits = StoreLimits::default()
            .with_sessions(3)
            .with_turns(2)
            .with_usage(5)
            .with_days(2);
        let store = memory(limits);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Commit(commits) => {
                    store.commit(&commits).unwrap();
                    for commit in &commits {
                        model.commit(commit, limits);
                    }
                    model.trim(limits);
                }
                Step::Forget(session) => {
                    let known = model.sessions.get_mut(&session);
                    prop_assert_eq!(store.forget(&session, Forget::Turns).unwrap(), known.is_some());
                    if let Some(known) = known {
                        known.turns.clear();
                    }
                }
            }
            for session in ["a", "ab", "b", "a\0", "a:b"] {
                let known = model.sessions.get(session).cloned().unwrap_or_default();
                prop_assert_eq!(store.recall(session, 10).unwrap(), known.turns);
            }
            let infos = store.sessions(10).unwrap();
            for since in [0, 1, 43_200, 86_400, u64::MAX] {
                let active = infos.iter().filter(|info| info.active >= since).count();
                prop_assert_eq!(active as u64, store.session_count(since).unwrap());
            }
            prop_assert_eq!(infos.len(), model.sessions.len());
            prop_assert!(infos.is_sorted_by_key(|info| std::cmp::Reverse(info.active)));
            for info in infos {
                let known = &model.sessions[&info.session];
                let found = (info.active, info.turns, info.kept, info.tokens);
                let kept = known.turns.len() as u64;
                prop_assert_eq!(found, (known.active, known.had, kept, known.tokens));
            }
            let usage: Vec<_> = store.usage(10).unwrap().iter().map(UsageEntry::tokens).collect();
            prop_assert_eq!(usage, model.usage.iter().rev().copied().collect::<Vec<_>>());
            prop_assert_eq!(store.totals().unwrap().days, model.days.clone().into_iter().collect::<Vec<_>>());
        }
    }
}
