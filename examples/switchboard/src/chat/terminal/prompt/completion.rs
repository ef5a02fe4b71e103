//! Completion of commands: [`Prompt::complete`].

use super::Prompt;
use crate::chat::terminal::Command;
use crate::text::Colour;

impl Prompt {
    /// Completes the command at the beginning of the line, or shows which ones there are.
    pub(super) fn complete(&mut self) {
        let (before, after) = self.split();
        let Some(name) = before.strip_prefix('/').filter(|_| after.is_empty()) else {
            return;
        };
        let commands = self.commands.iter();
        let fits = |command: &&Command| command.name.starts_with(name);
        let found: Vec<&Command> = commands.filter(fits).collect();
        let value = match found.as_slice() {
            [] => return,
            [command] if command.arguments.is_empty() => format!("/{}", command.name),
            [command] => format!("/{} ", command.name),
            several => format!("/{}", common(several)),
        };
        let is_more = value != before;
        self.hints = hints(&found, self.columns);
        if is_more {
            self.set(value);
        }
    }
}

/// The beginning that all names have.
fn common<'a>(commands: &[&'a Command]) -> &'a str {
    let mut names = commands.iter().map(|command| command.name);
    let first = names.next().unwrap_or_default();
    names.fold(first, |common, name| {
        let same = common.bytes().zip(name.bytes());
        let length = same.take_while(|(left, right)| left == right).count();
        common.get(..length).unwrap_or_default()
    })
}

/// A row for each command, cut where the screen ends.
fn hints(commands: &[&Command], columns: usize) -> Vec<String> {
    let usages: Vec<_> = commands.iter().map(|command| command.usage()).collect();
    let width = usages.iter().map(String::len).max().unwrap_or_default();
    let rows = usages.iter().zip(commands);
    let rows = rows.map(|(usage, command)| format!("  {usage:width$}  {}", command.help));
    rows.map(|row| Colour::Dim.paint(&row.chars().take(columns).collect::<String>()))
        .collect()
}
