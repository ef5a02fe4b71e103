//! [`Checklist`]: what is to be done in a chat.

use rpc_core::json::lenient;
use rpc_core::{Str, words};
use serde::{Deserialize, Deserializer, Serialize};

use super::Event;
use crate::loose;

/// A list of what is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Checklist {
    /// Which list.
    #[serde(deserialize_with = "lenient::id")]
    pub group_id: Str,
    /// What the list is called.
    #[serde(default, deserialize_with = "loose::text")]
    pub group_title: Str,
    /// Its items, as they were sent; see [`ChecklistItem::order`].
    #[serde(deserialize_with = "items")]
    pub items: Vec<ChecklistItem>,
}

/// An item of a [`Checklist`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChecklistItem {
    /// Which item.
    #[serde(deserialize_with = "lenient::id")]
    pub id: Str,
    /// What is to be done.
    pub label: Str,
    /// How far it is.
    #[serde(default, deserialize_with = "loose::text")]
    pub status: ItemStatus,
    /// Where it stands in the list.
    #[serde(default, deserialize_with = "loose::count")]
    pub order: u64,
}

words! {
    /// How far an item is.
    #[derive(Default)]
    pub enum ItemStatus {
        /// Nothing was done yet.
        #[default]
        "pending" => Pending,
        /// It is being done.
        "in_progress" => InProgress,
        /// It is done.
        "done" => Done,
        /// It could not be done.
        "failed" => Failed,
        .. => Other,
    }
}

words! {
    /// The two names of a checklist's event. Exhaustive: an event of another name is another event.
    #[derive(Default)]
    pub enum ChecklistTag {
        /// The specification, and all releases.
        #[default]
        "checklist" => Checklist,
        /// Servers after 0.22.
        "tasklist" => Tasklist,
    }
}

/// Items that are null are left out.
fn items<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<ChecklistItem>, D::Error> {
    let items = Vec::<Option<ChecklistItem>>::deserialize(from)?;
    Ok(items.into_iter().flatten().collect())
}

impl Checklist {
    /// A list without items.
    pub fn new(group_id: impl Into<Str>, group_title: impl Into<Str>) -> Self {
        Self {
            group_id: group_id.into(),
            group_title: group_title.into(),
            items: Vec::new(),
        }
    }

    /// Adds an item behind the others.
    #[must_use]
    pub fn with_item(mut self, item: ChecklistItem) -> Self {
        self.items.push(item);
        self
    }
}

impl ChecklistTag {
    /// The event by this name, if it is a list that has the other one.
    pub(crate) fn rename(self, event: &Event) -> Option<Event> {
        match (self, event) {
            (Self::Checklist, Event::Tasklist(list)) => Some(Event::Checklist(list.clone())),
            (Self::Tasklist, Event::Checklist(list)) => Some(Event::Tasklist(list.clone())),
            _ => None,
        }
    }
}

impl ChecklistItem {
    /// An item that nothing was done for yet.
    pub fn new(id: impl Into<Str>, label: impl Into<Str>, order: u64) -> Self {
        Self {
            id: id.into(),
            label: label.into(),
            status: ItemStatus::Pending,
            order,
        }
    }

    /// Sets [`status`](Self::status).
    #[must_use]
    pub fn with_status(mut self, status: ItemStatus) -> Self {
        self.status = status;
        self
    }
}
