//! [`Channels`]: the channels of the user, and the one that is written to.

use rpc_core::Str;
use serde_json::{Value, json};
use snek_proto::frame::Channel;

/// The channels that the user can see.
#[derive(Debug, Default)]
pub(super) struct Channels {
    pub(super) all: Vec<Channel>,
    /// The uid of the one that is written to.
    pub(super) current: Option<Str>,
}

impl Channels {
    /// Finds a channel by its uid or its name, and writes to it from now on; `false` if there is none.
    pub(super) fn choose(&mut self, wanted: &str) -> bool {
        let wanted = wanted.trim_start_matches(['#', '@']);
        let mut all = self.all.iter();
        let by_uid = all.clone().find(|it| it.uid.as_str() == wanted);
        let by_name = || all.find(|it| it.name.to_lowercase() == wanted.to_lowercase());
        let found = by_uid.or_else(by_name);
        let found = found.map(|it| Str::from(it.uid.as_str()));
        let is_found = found.is_some();
        self.current = found.or(self.current.take());
        is_found
    }

    /// Writes to the first channel if the current one is gone.
    pub(super) fn keep_current(&mut self) {
        let mut uids = self.all.iter().map(|it| it.uid.as_str());
        let is_there = |uid: &Str| uids.clone().any(|it| it == &**uid);
        if !self.current.as_ref().is_some_and(is_there) {
            self.current = uids.next().map(Str::from);
        }
    }

    pub(super) fn is_current(&self, uid: &str) -> bool {
        self.current.as_deref() == Some(uid)
    }

    /// A channel as people see it: `#General`, or `@Bob` for messages between two.
    pub(super) fn name(&self, uid: &str) -> String {
        let known = self.all.iter().find(|it| it.uid.as_str() == uid);
        let mark = if known.is_some_and(Channel::is_dm) {
            '@'
        } else {
            '#'
        };
        let name = known.map(|it| &*it.name).filter(|name| !name.is_empty());
        format!("{mark}{}", name.unwrap_or(uid))
    }

    /// All of them, for programs.
    pub(super) fn json(&self) -> Value {
        json!({ "channel": self.current, "channels": self.all })
    }

    /// All of them, a line for each, for people.
    pub(super) fn list(&self) -> String {
        let lines = self.all.iter().map(|channel| {
            let uid = channel.uid.as_str();
            let mark = if self.is_current(uid) { '*' } else { ' ' };
            format!("{mark} {} ({uid})", self.name(uid))
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
