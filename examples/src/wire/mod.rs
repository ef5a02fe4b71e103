//! What passes between a client and a server of one of the five protocols: found, explained, changed.

pub mod check;

/// A protocol of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub enum Protocol {
    /// Snek, a chat platform.
    Snek,
    /// Exoclaw, a gateway to language models.
    Exoclaw,
    /// SmartHole, a router of spoken messages.
    #[value(name = "smarthole")]
    SmartHole,
    /// ConnectOnion, sessions with agents.
    #[value(name = "connectonion")]
    ConnectOnion,
    /// Acolyte, a coding agent.
    Acolyte,
}

impl Protocol {
    const ALL: [Self; 5] = [
        Self::Snek,
        Self::Exoclaw,
        Self::SmartHole,
        Self::ConnectOnion,
        Self::Acolyte,
    ];

    /// Returns the name in lower case, as in transcripts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Snek => "snek",
            Self::Exoclaw => "exoclaw",
            Self::SmartHole => "smarthole",
            Self::ConnectOnion => "connectonion",
            Self::Acolyte => "acolyte",
        }
    }

    /// Returns the protocol of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}
