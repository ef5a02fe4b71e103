//! The words of the protocol: enums with `Other` for unknown ones, because peers may be newer and
//! agents have words of their own.

use rpc_core::words;

words! {
    /// The actions that an agent may take without asking. ConnectOnion specification, *CONNECT* (`session.mode`).
    pub enum Mode {
        /// It asks before it changes anything.
        "safe" => Safe,
        /// It only makes a plan.
        "plan" => Plan,
        /// It may change files.
        "accept_edits" => AcceptEdits,
        /// It works on its own for a number of turns.
        "ulw" => Ulw,
        /// The newer name of [`Safe`](Self::Safe).
        "read-only" => ReadOnly,
        /// The newer name of [`AcceptEdits`](Self::AcceptEdits).
        "auto" => Auto,
        /// It may do everything. Newer hosts only.
        "full-access" => FullAccess,
        .. => Other,
    }
}

words! {
    /// How long an approval holds. ConnectOnion specification, *`APPROVAL_RESPONSE`*.
    pub enum Scope {
        /// For this call only.
        "once" => Once,
        /// For this tool until the session ends.
        "session" => Session,
        .. => Other,
    }
}

words! {
    /// The consequence of a refused approval. Not in the specification.
    #[derive(Default)]
    pub enum Rejection {
        /// The agent goes on without the tool.
        "reject_soft" => Soft,
        /// The agent stops. The default of a response without a mode.
        #[default]
        "reject_hard" => Hard,
        /// The agent explains what it wanted.
        "reject_explain" => Explain,
        .. => Other,
    }
}

words! {
    /// How to continue when the turns of the mode `ulw` are used up. Any other word stops the
    /// agent.
    pub enum UlwAction {
        /// Go on for some more turns.
        "continue" => Continue,
        /// Go on in another mode.
        "switch_mode" => SwitchMode,
        .. => Other,
    }
}

words! {
    /// The status of a tool, in events and chat items.
    pub enum ToolStatus {
        /// It is running. In chat items.
        "running" => Running,
        /// It succeeded. In chat items.
        "done" => Done,
        /// It succeeded.
        "success" => Success,
        /// It failed.
        "error" => Error,
        /// The tool does not exist.
        "not_found" => NotFound,
        /// It is running. Newer hosts.
        "in_progress" => InProgress,
        /// It succeeded. Newer hosts.
        "completed" => Completed,
        /// It failed. Newer hosts.
        "failed" => Failed,
        .. => Other,
    }
}

impl ToolStatus {
    /// Returns whether the tool has failed.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error | Self::NotFound | Self::Failed)
    }
}

words! {
    /// How a stranger may become a contact. ConnectOnion specification, *Trust Gate*.
    pub enum OnboardMethod {
        /// With an invite code.
        "invite_code" => InviteCode,
        /// By a payment.
        "payment" => Payment,
        .. => Other,
    }
}

words! {
    /// An administrator's command: the types of the frames ADMIN_*. Not in the specification.
    pub enum AdminAction {
        /// Raises a client's level.
        "ADMIN_PROMOTE" => Promote,
        /// Lowers a client's level.
        "ADMIN_DEMOTE" => Demote,
        /// Blocks a client.
        "ADMIN_BLOCK" => Block,
        /// Unblocks a client.
        "ADMIN_UNBLOCK" => Unblock,
        /// Returns a client's level.
        "ADMIN_GET_LEVEL" => GetLevel,
        /// Adds an administrator.
        "ADMIN_ADD" => Add,
        /// Removes an administrator.
        "ADMIN_REMOVE" => Remove,
        .. => Other,
    }
}
