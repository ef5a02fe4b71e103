//! [`Method`]: the names of the methods.

use rpc_core::words;

words! {
    /// A method that the specification names, under *Methods* or *Future Methods*.
    #[non_exhaustive]
    pub enum Method {
        /// Is the gateway there?
        "ping" => Ping,
        /// Its version, plugins and sessions.
        "status" => Status,
        /// Say something and get a streamed answer.
        "chat.send" => ChatSend,
        /// The plugins that are loaded.
        "plugin.list" => PluginList,
        /// The turns of a session. Named for the future.
        "chat.history" => ChatHistory,
        /// The sessions. Named for the future.
        "session.list" => SessionList,
        /// Forget the turns of a session. Named for the future.
        "session.clear" => SessionClear,
        /// Load a plugin. Named for the future.
        "plugin.load" => PluginLoad,
        /// Unload a plugin. Named for the future.
        "plugin.unload" => PluginUnload,
        /// What is used of the token budgets. Named for the future.
        "budget.status" => BudgetStatus,
        /// Search what is remembered. Named for the future.
        "memory.search" => MemorySearch,
    }
}

impl Method {
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
