//! [`Rules`]: faults that people switch while connections are open.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;

use super::parse::MAX_RULES;
use super::{Plan, Rule};

/// A plan that can change. Clones share it.
#[derive(Clone, Debug)]
pub struct Rules {
    all: Arc<Mutex<All>>,
    plan: watch::Sender<Arc<Plan>>,
}

#[derive(Debug)]
struct All {
    /// Each rule, and whether it is on.
    rules: Vec<(Rule, bool)>,
    next: u32,
}

/// A rule as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Switch {
    /// What it is known by.
    pub id: u32,
    /// The rule as it was written.
    pub text: String,
    /// Whether it holds.
    pub on: bool,
    /// How often it has happened.
    pub hits: u64,
}

impl Rules {
    /// Begins with the rules of a plan, all of them on.
    #[must_use]
    pub fn new(plan: &Arc<Plan>) -> Self {
        let rules: Vec<_> = plan.rules.iter().map(|rule| (rule.clone(), true)).collect();
        let next = u32::try_from(rules.len()).unwrap_or(u32::MAX);
        Self {
            all: Arc::new(Mutex::new(All { rules, next })),
            plan: watch::Sender::new(Arc::clone(plan)),
        }
    }

    /// Returns the plan of now, and its changes.
    #[must_use]
    pub fn plan(&self) -> watch::Receiver<Arc<Plan>> {
        self.plan.subscribe()
    }

    /// Returns all rules, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Switch> {
        let all = self.lock();
        let rules = all.rules.iter().map(|(rule, on)| Switch {
            id: rule.id,
            text: rule.text.clone(),
            on: *on,
            hits: rule.hits.load(Ordering::Relaxed),
        });
        rules.collect()
    }

    /// Adds rules, which hold at once.
    ///
    /// # Errors
    /// What is wrong with which rule. Nothing is changed then.
    pub fn add(&self, text: &str) -> Result<(), String> {
        let plan = Plan::parse(text)?;
        let mut all = self.lock();
        if plan.is_empty() {
            return Err("there is no rule".to_owned());
        }
        if all.rules.len() + plan.rules.len() > MAX_RULES {
            return Err(format!("there are more than {MAX_RULES} rules"));
        }
        for mut rule in plan.rules {
            rule.id = all.next;
            all.next = all.next.saturating_add(1);
            all.rules.push((rule, true));
        }
        self.publish(&all);
        Ok(())
    }

    /// Switches a rule on or off. Returns whether there is one with this id.
    pub fn switch(&self, id: u32, on: bool) -> bool {
        self.change(|all| {
            let rule = all.rules.iter_mut().find(|(rule, _)| rule.id == id);
            rule.map(|(_, is_on)| *is_on = on).is_some()
        })
    }

    /// Removes a rule. Returns whether there was one with this id.
    pub fn remove(&self, id: u32) -> bool {
        self.change(|all| {
            let before = all.rules.len();
            all.rules.retain(|(rule, _)| rule.id != id);
            all.rules.len() < before
        })
    }

    fn change(&self, change: impl FnOnce(&mut All) -> bool) -> bool {
        let mut all = self.lock();
        let is_changed = change(&mut all);
        if is_changed {
            self.publish(&all);
        }
        is_changed
    }

    fn publish(&self, all: &All) {
        let on = all.rules.iter().filter(|(_, on)| *on);
        let rules = on.map(|(rule, _)| rule.clone()).collect();
        self.plan.send_replace(Arc::new(Plan { rules }));
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
