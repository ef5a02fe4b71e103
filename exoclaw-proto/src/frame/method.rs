//! [`Method`]: the names of the methods.

/// A method that the specification names, under *Methods* or *Future Methods*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Is the gateway there?
    Ping,
    /// Its version, plugins and sessions.
    Status,
    /// Say something and get a streamed answer.
    ChatSend,
    /// The plugins that are loaded.
    PluginList,
    /// The turns of a session. Named for the future.
    ChatHistory,
    /// The sessions. Named for the future.
    SessionList,
    /// Forget the turns of a session. Named for the future.
    SessionClear,
    /// Load a plugin. Named for the future.
    PluginLoad,
    /// Unload a plugin. Named for the future.
    PluginUnload,
    /// What is used of the token budgets. Named for the future.
    BudgetStatus,
    /// Search what is remembered. Named for the future.
    MemorySearch,
}

impl Method {
    /// All of them, in the specification's order.
    pub const ALL: [Self; 11] = [
        Self::Ping,
        Self::Status,
        Self::ChatSend,
        Self::PluginList,
        Self::ChatHistory,
        Self::SessionList,
        Self::SessionClear,
        Self::PluginLoad,
        Self::PluginUnload,
        Self::BudgetStatus,
        Self::MemorySearch,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Status => "status",
            Self::ChatSend => "chat.send",
            Self::PluginList => "plugin.list",
            Self::ChatHistory => "chat.history",
            Self::SessionList => "session.list",
            Self::SessionClear => "session.clear",
            Self::PluginLoad => "plugin.load",
            Self::PluginUnload => "plugin.unload",
            Self::BudgetStatus => "budget.status",
            Self::MemorySearch => "memory.search",
        }
    }

    /// The method of this exact name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Whether the specification only reserves the name: a gateway answers `unknown method`, unless
    /// its extensions are switched on.
    #[must_use]
    pub const fn is_future(self) -> bool {
        !matches!(
            self,
            Self::Ping | Self::Status | Self::ChatSend | Self::PluginList
        )
    }

    /// Whether a server with extensions hands the method to its application: the future methods
    /// that only read, and `session.clear`.
    #[must_use]
    pub const fn is_extension(self) -> bool {
        self.is_future() && !matches!(self, Self::PluginLoad | Self::PluginUnload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.name()), Some(method));
        }
        for name in ["Ping", "ping ", "chat_send", ""] {
            assert_eq!(Method::parse(name), None, "{name:?}");
        }
        assert_eq!(Method::ALL.iter().filter(|m| m.is_future()).count(), 7);
        assert_eq!(Method::ALL.iter().filter(|m| m.is_extension()).count(), 5);
    }
}
