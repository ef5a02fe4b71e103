//! [`Notice`]: something that people should know.

use std::borrow::Cow;

use crate::frame::owned;

/// Something that people should know and that does not end the chat. Servers from 0.22.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice<'a> {
    /// How bad it is.
    pub level: NoticeLevel<'a>,
    /// What to show.
    pub message: Cow<'a, str>,
    /// Where it comes from.
    pub source: Option<Cow<'a, str>>,
}

/// How bad a notice is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoticeLevel<'a> {
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
    /// A word that this crate does not know.
    Other(Cow<'a, str>),
}

impl<'a> Notice<'a> {
    /// A warning with these words.
    pub fn warn(message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            level: NoticeLevel::Warn,
            message: message.into(),
            source: None,
        }
    }

    /// An error with these words, which does not end the chat.
    pub fn error(message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            level: NoticeLevel::Error,
            ..Self::warn(message)
        }
    }

    /// Sets [`source`](Self::source).
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cow<'a, str>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Notice<'static> {
        Notice {
            level: self.level.into_owned(),
            message: owned(self.message),
            source: self.source.map(owned),
        }
    }
}

impl<'a> NoticeLevel<'a> {
    /// The word on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Other(name) => name,
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn parse(name: Cow<'a, str>) -> Self {
        match &*name {
            "warn" => Self::Warn,
            "error" => Self::Error,
            _ => Self::Other(name),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> NoticeLevel<'static> {
        match self {
            Self::Warn => NoticeLevel::Warn,
            Self::Error => NoticeLevel::Error,
            Self::Other(name) => NoticeLevel::Other(owned(name)),
        }
    }
}
