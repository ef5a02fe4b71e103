//! [`Checklist`]: the list of steps of a chat.

use rpc_core::{Id, Str, words};
use serde::{Deserialize, Deserializer, Serialize};

use super::Event;
use crate::loose;

/// A list of things to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checklist {
    /// The id of the list.
    pub group_id: Id<Checklist>,
    /// The title of the list.
    #[serde(default, deserialize_with = "loose::text")]
    pub group_title: Str,
    /// Its items, as they were sent; see [`ChecklistItem::order`].
    #[serde(deserialize_with = "items")]
    pub items: Vec<ChecklistItem>,
}

/// An item of a [`Checklist`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecklistItem {
    /// The id of the item.
    pub id: Id<ChecklistItem>,
    /// The text of the item.
    pub label: Str,
    /// Its progress.
    #[serde(default, deserialize_with = "loose::text")]
    pub status: ItemStatus,
    /// Its position in the list.
    #[serde(default, deserialize_with = "loose::count")]
    pub order: u64,
}

words! {
    /// The progress of an item.
    #[derive(Default)]
    pub enum ItemStatus {
        /// Not started.
        #[default]
        "pending" => Pending,
        /// In progress.
        "in_progress" => InProgress,
        /// Done.
        "done" => Done,
        /// Failed.
        "failed" => Failed,
        .. => Other,
    }
}

words! {
    /// The two names of the checklist event. Exhaustive: any other name is another event.
    #[derive(Default)]
    pub enum ChecklistTag {
        /// The name in the specification and in all releases.
        #[default]
        "checklist" => Checklist,
        /// The name in servers after 0.22.
        "tasklist" => Tasklist,
    }
}

/// Reads the items, leaving out null.
fn items<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ChecklistItem>, D::Error> {
    let items = Vec::<Option<ChecklistItem>>::deserialize(from)?;
    Ok(items.into_iter().flatten().collect())
}

impl Checklist {
    /// Creates a list without items.
    pub fn new(group_id: impl Into<Id<Self>>, group_title: impl Into<Str>) -> Self {
        Self {
            group_id: group_id.into(),
            group_title: group_title.into(),
            items: Vec::new(),
        }
    }
}

impl ChecklistTag {
    /// Returns the event under this name, if it is a list under the other one.
    pub(crate) fn rename(self, event: &Event) -> Option<Event> {
        match (self, event) {
            (Self::Checklist, Event::Tasklist(list)) => Some(Event::Checklist(list.clone())),
            (Self::Tasklist, Event::Checklist(list)) => Some(Event::Tasklist(list.clone())),
            _ => None,
        }
    }
}

impl ChecklistItem {
    /// Creates an item that is not started.
    pub fn new(id: impl Into<Id<Self>>, label: impl Into<Str>, order: u64) -> Self {
        Self {
            id: id.into(),
            label: label.into(),
            status: ItemStatus::Pending,
            order,
        }
    }
}
