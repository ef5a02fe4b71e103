//! `switchboard`: a bot, a gateway, a router, an agent and a coding agent, in one program. Each part uses those below it:
//!
//! - `commands/`: the command line. A folder for each command has its options, what it serves, and its chat.
//! - `agent/` `bot/` `daemon/` `gateway/` `router/`: the servers, and the bot.
//! - `chat/`: conversations at a terminal (`terminal/`), and the five clients behind them.
//! - `page/`: what browsers get.
//! - `assistant/`: a turn with a model, conversations, and the tools that all share.
//! - `model/`: what speaks to the providers of models.
//! - `markdown/`, `metrics.rs`, `fsync.rs`: Markdown of models, what servers count, and when a file is on the disk.
//!
//! Failures, signals, secrets, files and TLS of command lines are in `examples/cli`, the command `wire` in `examples/wire`.

use std::process::ExitCode;

use switchboard::commands;
use switchboard::daemon::command::supervise;

fn main() -> ExitCode {
    // Tools that run commands start this program again, to supervise them.
    supervise().unwrap_or_else(commands::main)
}
