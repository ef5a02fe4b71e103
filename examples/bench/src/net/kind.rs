//! [`Kind`]: whose end it is and what is asked of it, as the processes are told by name.

pub(super) const PING: &str = "ping";
pub(super) const STATUS: &str = "status";
pub(super) const CHAT: &str = "chat of ten";
pub(super) const ACOLYTE_CHAT: &str = "chat of ten, Acolyte";
pub(super) const ECHO: &str = "echo, 42 B";
/// Through a relay.
pub(super) const RELAYED: &str = "echo, 100 B";
pub(super) const SEND_MESSAGE: &str = "send_message";
pub(super) const MESSAGE: &str = "message and ack";
pub(super) const INPUT: &str = "INPUT to OUTPUT";
/// Connections of as many users.
pub(super) const USERS: &str = "users";

/// Our ends with limits that let very many calls be in flight.
const WIDE: &str = ", wide limits";

/// An end: `jsonrpsee: status`, `exoclaw: ping, wide limits`, or `exoclaw`, which is for a `ping`,
/// or to hold connections and for streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind<'a> {
    pub(super) end: &'a str,
    pub(super) work: &'a str,
    pub(super) wide: bool,
}

impl<'a> Kind<'a> {
    pub(super) fn parse(name: &'a str) -> Self {
        let (name, wide) = match name.strip_suffix(WIDE) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let (end, work) = name.split_once(": ").unwrap_or((name, PING));
        Self { end, work, wide }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_whose_end_it_is_what_it_does_and_how_widely() {
        let kind = |end, work, wide| Kind { end, work, wide };
        let parsed = Kind::parse("jsonrpsee: echo, 42 B");
        assert_eq!(parsed, kind("jsonrpsee", ECHO, false));
        let parsed = Kind::parse("exoclaw: ping, wide limits");
        assert_eq!(parsed, kind("exoclaw", PING, true));
        let parsed = Kind::parse("echo, no RPC");
        assert_eq!(parsed, kind("echo, no RPC", PING, false));
    }
}
