//! [`Checklist`]: what is to be done in a chat.

use std::borrow::Cow;

use crate::frame::owned;

/// A list of what is to be done, named `checklist` by releases and `tasklist` by later servers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checklist<'a> {
    /// By which name it was sent, or is to be sent.
    pub tag: ChecklistTag,
    /// Which list.
    pub group_id: Cow<'a, str>,
    /// What the list is called.
    pub group_title: Cow<'a, str>,
    /// Its items, as they were sent; see [`ChecklistItem::order`].
    pub items: Vec<ChecklistItem<'a>>,
}

/// The two names of a checklist. Exhaustive: an event of another name is another event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecklistTag {
    /// `checklist`: the specification, and all releases.
    #[default]
    Checklist,
    /// `tasklist`: servers after 0.22.
    Tasklist,
}

/// An item of a [`Checklist`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChecklistItem<'a> {
    /// Which item.
    pub id: Cow<'a, str>,
    /// What is to be done.
    pub label: Cow<'a, str>,
    /// How far it is.
    pub status: ItemStatus<'a>,
    /// Where it stands in the list.
    pub order: u64,
}

/// How far an item is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemStatus<'a> {
    /// Nothing was done yet.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Done,
    /// It could not be done.
    Failed,
    /// A word that this crate does not know.
    Other(Cow<'a, str>),
}

impl<'a> Checklist<'a> {
    /// A list without items, sent as `checklist`.
    pub fn new(group_id: impl Into<Cow<'a, str>>, group_title: impl Into<Cow<'a, str>>) -> Self {
        Self {
            tag: ChecklistTag::default(),
            group_id: group_id.into(),
            group_title: group_title.into(),
            items: Vec::new(),
        }
    }

    /// Sets [`tag`](Self::tag).
    #[must_use]
    pub const fn with_tag(mut self, tag: ChecklistTag) -> Self {
        self.tag = tag;
        self
    }

    /// Adds an item behind the others.
    #[must_use]
    pub fn with_item(mut self, item: ChecklistItem<'a>) -> Self {
        self.items.push(item);
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Checklist<'static> {
        Checklist {
            tag: self.tag,
            group_id: owned(self.group_id),
            group_title: owned(self.group_title),
            items: self
                .items
                .into_iter()
                .map(ChecklistItem::into_owned)
                .collect(),
        }
    }
}

impl ChecklistTag {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checklist => "checklist",
            Self::Tasklist => "tasklist",
        }
    }
}

impl<'a> ChecklistItem<'a> {
    /// An item that nothing was done for yet.
    pub fn new(id: impl Into<Cow<'a, str>>, label: impl Into<Cow<'a, str>>, order: u64) -> Self {
        Self {
            id: id.into(),
            label: label.into(),
            status: ItemStatus::Pending,
            order,
        }
    }

    /// Sets [`status`](Self::status).
    #[must_use]
    pub fn with_status(mut self, status: ItemStatus<'a>) -> Self {
        self.status = status;
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ChecklistItem<'static> {
        ChecklistItem {
            id: owned(self.id),
            label: owned(self.label),
            status: self.status.into_owned(),
            order: self.order,
        }
    }
}

impl<'a> ItemStatus<'a> {
    /// The word on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Other(name) => name,
        }
    }

    /// The status of this name.
    #[must_use]
    pub fn parse(name: Cow<'a, str>) -> Self {
        match &*name {
            "pending" => Self::Pending,
            "in_progress" => Self::InProgress,
            "done" => Self::Done,
            "failed" => Self::Failed,
            _ => Self::Other(name),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ItemStatus<'static> {
        match self {
            Self::Pending => ItemStatus::Pending,
            Self::InProgress => ItemStatus::InProgress,
            Self::Done => ItemStatus::Done,
            Self::Failed => ItemStatus::Failed,
            Self::Other(name) => ItemStatus::Other(owned(name)),
        }
    }
}
