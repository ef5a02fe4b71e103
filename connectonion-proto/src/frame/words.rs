//! The words of the protocol: enums with `Other` for those that this crate does not know, because peers are
//! newer and agents have their own.

use rpc_core::words;

words! {
    /// What an agent may do without asking. ConnectOnion specification, *CONNECT* (`session.mode`).
    pub enum Mode {
        /// It asks before anything that changes something.
        "safe" => Safe,
        /// It only makes a plan.
        "plan" => Plan,
        /// It may change files.
        "accept_edits" => AcceptEdits,
        /// It goes on by itself for a number of turns.
        "ulw" => Ulw,
        /// What newer hosts call [`Safe`](Self::Safe).
        "read-only" => ReadOnly,
        /// What newer hosts call [`AcceptEdits`](Self::AcceptEdits).
        "auto" => Auto,
        /// It may do everything. Newer hosts only.
        "full-access" => FullAccess,
        .. => Other,
    }
}

words! {
    /// Who has changed the mode.
    pub enum Trigger {
        /// The agent itself.
        "agent" => Agent,
        /// The user.
        "user" => User,
        /// The turns of the mode `ulw` are used up.
        "ulw_checkpoint" => UlwCheckpoint,
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
    /// What follows when a tool is not approved. Not in the specification.
    #[derive(Default)]
    pub enum Rejection {
        /// The agent goes on without the tool.
        "reject_soft" => Soft,
        /// The agent stops. What a response without a mode means.
        #[default]
        "reject_hard" => Hard,
        /// The agent explains what it wanted.
        "reject_explain" => Explain,
        .. => Other,
    }
}

words! {
    /// What to do when the turns of the mode `ulw` are used up. Any other word stops the agent.
    pub enum UlwAction {
        /// Go on for some more turns.
        "continue" => Continue,
        /// Go on in another mode.
        "switch_mode" => SwitchMode,
        .. => Other,
    }
}

words! {
    /// How a tool stands, in events and chat items.
    pub enum ToolStatus {
        /// It runs. In chat items.
        "running" => Running,
        /// It has run. In chat items.
        "done" => Done,
        /// It has run.
        "success" => Success,
        /// It has failed.
        "error" => Error,
        /// There is no such tool.
        "not_found" => NotFound,
        /// It runs. Newer hosts.
        "in_progress" => InProgress,
        /// It has run. Newer hosts.
        "completed" => Completed,
        /// It has failed. Newer hosts.
        "failed" => Failed,
        .. => Other,
    }
}

impl ToolStatus {
    /// Whether the tool has ended badly.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        matches!(self, Self::Error | Self::NotFound | Self::Failed)
    }
}

words! {
    /// How far something is that starts and ends with events of one type: a model's call, compacting,
    /// understanding what is meant, judging what was done.
    pub enum Phase {
        /// A model is working.
        "running" => Running,
        /// A model has answered.
        "success" => Success,
        /// The conversation is being made shorter.
        "compacting" => Compacting,
        /// The agent finds out what is meant.
        "analyzing" => Analyzing,
        /// The agent knows what is meant.
        "understood" => Understood,
        /// The agent judges what it has done.
        "evaluating" => Evaluating,
        /// It has ended.
        "done" => Done,
        /// It has failed.
        "error" => Error,
        .. => Other,
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
    /// How a session stands, in the answer to a `SESSION_STATUS`.
    pub enum Standing {
        /// Its agent is working.
        "running" => Running,
        /// It is there and idle.
        "connected" => Connected,
        /// There is none, or it is not the caller's.
        "not_found" => NotFound,
        .. => Other,
    }
}

words! {
    /// What an administrator wants: the types of the frames ADMIN_*. Not in the specification.
    pub enum AdminAction {
        /// Raise a client's level.
        "ADMIN_PROMOTE" => Promote,
        /// Lower a client's level.
        "ADMIN_DEMOTE" => Demote,
        /// Block a client.
        "ADMIN_BLOCK" => Block,
        /// Unblock a client.
        "ADMIN_UNBLOCK" => Unblock,
        /// Tell a client's level.
        "ADMIN_GET_LEVEL" => GetLevel,
        /// Make somebody an administrator.
        "ADMIN_ADD" => Add,
        /// Make an administrator none.
        "ADMIN_REMOVE" => Remove,
        .. => Other,
    }
}
