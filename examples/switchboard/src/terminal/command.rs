//! [`Command`]: what a line can ask for with a slash: for `/help`, for completion, and for mistakes.

use super::Line;

/// A command of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What follows the name, such as `NAME` or `[COUNT]`; may be empty.
    pub arguments: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
}

impl Command {
    /// Creates a command.
    #[must_use]
    pub const fn new(name: &'static str, arguments: &'static str, help: &'static str) -> Self {
        Self {
            name,
            arguments,
            help,
        }
    }

    /// The command as people write it.
    pub(super) fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments)
            .trim_end()
            .to_owned()
    }
}

/// Splits `/name rest` into its two parts. `None` for a text.
#[must_use]
pub fn split_command(text: &str) -> Option<(&str, &str)> {
    let command = text.trim_end().strip_prefix('/')?;
    let (name, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    Some((name, rest.trim()))
}

/// Returns the text of `/help`: what lines do, in `intro`, then the commands and the keys.
#[must_use]
pub fn help<L: Line>(intro: &str) -> String {
    let commands = L::commands().iter();
    let commands = commands.map(|command| (command.usage(), command.help));
    let stop = L::stop().map(|_| ("Esc", "stop what runs"));
    let keys = [
        (
            "Alt-Enter, Shift-Enter",
            "begin another line, as \\ before Enter",
        ),
        ("Tab", "complete a command"),
        ("Up, Down", "move between lines, then to earlier ones"),
    ];
    let end = match stop {
        Some(_) => [
            ("Ctrl-C", "stop what runs, or else leave"),
            ("Ctrl-D", "leave"),
        ],
        None => [("Ctrl-C", "leave"), ("Ctrl-D", "leave")],
    };
    let keys = keys.into_iter().chain(stop).chain(end);
    let rows: Vec<_> = commands
        .chain(keys.map(|(key, help)| (key.to_owned(), help)))
        .collect();
    let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0);
    let rows = rows
        .iter()
        .map(|(left, help)| format!("  {left:width$}  {help}"));
    let end = "A text that begins with a slash goes out with a blank before it.";
    let lines = [intro.to_owned()].into_iter().chain(rows);
    lines.chain([end.to_owned()]).collect::<Vec<_>>().join("\n")
}

/// Returns the message about a command that does not exist, with the nearest one that does.
#[must_use]
pub fn unknown<L: Line>(name: &str) -> String {
    let commands = L::commands().iter();
    let nearest = commands
        .map(|command| (distance(name, command.name), command))
        .filter(|(distance, command)| {
            *distance <= command.name.len() / 2 || command.name.starts_with(name)
        })
        .min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((_, command)) => {
            format!(
                "there is no command /{name}: did you mean {}?",
                command.usage()
            )
        }
        None => format!("there is no command /{name}: see /help"),
    }
}

/// How many letters must be changed, added or left out.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (number, left) in (1..).zip(from.chars().take(32)) {
        let mut before = number - 1;
        let mut last = number;
        if let Some(first) = row.first_mut() {
            *first = number;
        }
        for (cell, right) in row.iter_mut().skip(1).zip(to.chars()) {
            let change = before + usize::from(left != right);
            before = *cell;
            last = change.min(before + 1).min(last + 1);
            *cell = last;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Any;

    impl Line for Any {
        const MAX_BYTES: usize = 1;

        fn parse(_: &str) -> Option<Self> {
            None
        }

        fn wrong(_: String) -> Self {
            Self
        }

        fn quit() -> Self {
            Self
        }

        fn commands() -> &'static [Command] {
            const {
                &[
                    Command::new("history", "[COUNT]", "show the last turns"),
                    Command::new("help", "", "show this"),
                    Command::new("quit", "", "leave"),
                ]
            }
        }
    }

    #[test]
    fn a_mistake_is_told_the_nearest_command() {
        for (name, nearest) in [
            ("histroy", "did you mean /history [COUNT]?"),
            ("halp", "did you mean /help?"),
            ("hi", "did you mean /history [COUNT]?"),
            ("fly", "see /help"),
            ("", "did you mean /help?"),
        ] {
            let message = unknown::<Any>(name);
            assert!(message.ends_with(nearest), "{name}: {message}");
        }
    }

    #[test]
    fn help_is_one_table() {
        let help = help::<Any>("Write.");
        let lines: Vec<_> = help.lines().collect();
        assert_eq!(lines[0], "Write.");
        assert_eq!(lines[1], "  /history [COUNT]        show the last turns");
        assert_eq!(lines[5], "  Tab                     complete a command");
    }

    #[test]
    fn a_command_has_a_name_and_a_rest() {
        assert_eq!(
            split_command("/join  My Room \n"),
            Some(("join", "My Room"))
        );
        assert_eq!(split_command("/quit"), Some(("quit", "")));
        assert_eq!(split_command(" /quit"), None);
    }
}
