//! [`Method`]: the names of the methods.

use rpc_core::words;

words! {
    /// A method of the specification, under *Methods* or *Future Methods*.
    #[non_exhaustive]
    pub enum Method {
        /// Check that the gateway responds.
        "ping" => Ping,
        /// Get version, plugins and sessions.
        "status" => Status,
        /// Send a chat message and get a streamed answer.
        "chat.send" => ChatSend,
        /// List the loaded plugins.
        "plugin.list" => PluginList,
        /// Get the turns of a session. Reserved for the future.
        "chat.history" => ChatHistory,
        /// List the sessions. Reserved for the future.
        "session.list" => SessionList,
        /// Forget the turns of a session. Reserved for the future.
        "session.clear" => SessionClear,
        /// Load a plugin. Reserved for the future.
        "plugin.load" => PluginLoad,
        /// Unload a plugin. Reserved for the future.
        "plugin.unload" => PluginUnload,
        /// Get the use of the token budgets. Reserved for the future.
        "budget.status" => BudgetStatus,
        /// Search the remembered facts. Reserved for the future.
        "memory.search" => MemorySearch,
    }
}

impl Method {
    /// Returns whether the specification only reserves the name: a gateway answers `unknown
    /// method`, unless its extensions are switched on.
    #[must_use]
    pub const fn is_future(self) -> bool {
        !matches!(
            self,
            Self::Ping | Self::Status | Self::ChatSend | Self::PluginList
        )
    }

    /// The methods that a server may hand to its application besides those of the specification:
    /// the future ones that only read, and `session.clear`.
    pub const EXTENSIONS: [Self; 5] = [
        Self::ChatHistory,
        Self::SessionList,
        Self::SessionClear,
        Self::BudgetStatus,
        Self::MemorySearch,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_are_case_sensitive() {
        for method in Method::ALL {
            assert_eq!(Method::parse(method.name()), Some(method));
        }
        for name in ["Ping", "ping ", "chat_send", ""] {
            assert_eq!(Method::parse(name), None, "{name:?}");
        }
        assert_eq!(Method::ALL.iter().filter(|m| m.is_future()).count(), 7);
        assert!(Method::EXTENSIONS.iter().all(|method| method.is_future()));
    }
}
