//! [`help`] and mistakes: what lines can ask for.

use strsim::damerau_levenshtein;

use super::Peer;
use crate::chat::terminal::{Command, Waits};

/// Adds the commands of all conversations.
pub(super) fn add_common<P: Peer>(commands: &mut Vec<Command>) {
    if P::STOPS {
        commands.push(
            Command::new(
                "stop",
                "",
                "stop what runs; what waits goes back to the prompt",
            )
            .waits(Waits::Never),
        );
    }
    commands.push(Command::new("help", "", "show this").waits(Waits::InPipe));
    commands.push(Command::new("quit", "", "leave").waits(Waits::InPipe));
}

/// Returns the text of `/help`: what lines do, then the commands and the keys.
pub fn help<P: Peer>(commands: &[Command]) -> String {
    let commands = commands
        .iter()
        .map(|command| (command.usage(), command.help));
    let keys = [
        (
            "Alt-Enter, Shift-Enter",
            "begin another line, as \\ before Enter",
        ),
        ("Tab", "complete a command"),
        ("Up, Down", "move between lines, then to earlier ones"),
        (
            "Ctrl-R",
            "search the earlier lines; once more goes further back",
        ),
    ];
    let stop = P::STOPS.then_some(("Esc", "stop what runs"));
    let interrupt = match P::STOPS {
        true => "clear the line, or stop what runs, or leave",
        false => "clear the line, or leave",
    };
    let end = [("Ctrl-C", interrupt), ("Ctrl-D", "leave")];
    let keys = keys.into_iter().chain(stop).chain(end);
    let rows: Vec<_> = commands
        .chain(keys.map(|(key, help)| (key.to_owned(), help)))
        .collect();
    let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    let rows = rows
        .iter()
        .map(|(left, help)| format!("  {left:width$}  {help}"));
    let end = "A text that begins with a slash goes out with a blank before it.";
    let lines = [P::INTRO.to_owned()].into_iter().chain(rows);
    lines.chain([end.to_owned()]).collect::<Vec<_>>().join("\n")
}

/// Returns the message about a command that does not exist, with the nearest one that does.
pub(super) fn unknown(name: &str, commands: &[Command]) -> String {
    let nearest = commands
        .iter()
        .map(|command| (damerau_levenshtein(name, command.name), command))
        .filter(|(distance, command)| {
            *distance <= command.name.len() / 2 || command.name.starts_with(name)
        })
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, command)) => {
            let usage = command.usage();
            format!("there is no command /{name}: did you mean {usage}?")
        }
        None => format!("there is no command /{name}: see /help"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands() -> [Command; 3] {
        [
            Command::new("history", "[COUNT]", "show the last turns"),
            Command::new("help", "", "show this"),
            Command::new("quit", "", "leave"),
        ]
    }

    #[test]
    fn an_unknown_command_suggests_the_nearest_one() {
        for (name, nearest) in [
            ("histroy", "did you mean /history [COUNT]?"),
            ("halp", "did you mean /help?"),
            ("hi", "did you mean /history [COUNT]?"),
            ("fly", "see /help"),
            ("", "did you mean /help?"),
        ] {
            let message = unknown(name, &commands());
            assert!(message.ends_with(nearest), "{name}: {message}");
        }
    }
}
