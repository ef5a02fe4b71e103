//! [`Line`]: what is written, and [`Command`]: what a line can ask for with a slash.

/// A command of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What follows the name, such as `NAME` or `[COUNT]`; may be empty.
    pub arguments: &'static str,
    /// What it does, in a few words.
    pub help: &'static str,
    /// When it waits for what runs.
    pub waits: Waits,
}

/// When a command waits for what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Always.
    Always,
    /// In a pipe, where one line comes after the other.
    InPipe,
    /// Never: it is about what runs.
    Never,
}

impl Command {
    /// Creates a command that waits until nothing runs.
    pub const fn new(name: &'static str, arguments: &'static str, help: &'static str) -> Self {
        Self {
            name,
            arguments,
            help,
            waits: Waits::Always,
        }
    }

    /// Sets when it waits.
    pub const fn waits(mut self, waits: Waits) -> Self {
        self.waits = waits;
        self
    }

    /// Returns the command as people write it.
    pub fn usage(&self) -> String {
        format!("/{} {}", self.name, self.arguments)
            .trim_end()
            .to_owned()
    }
}

/// What a person writes, or a key that is not a part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A text; may be empty.
    Text(String),
    /// The name of a command, and the rest.
    Command(String, String),
    /// Esc.
    Stop,
    /// Ctrl-C.
    Interrupt,
    /// Something else, and why it is not a line.
    Wrong(String),
}

impl Line {
    /// Parses a line.
    pub fn parse(text: &str) -> Self {
        let Some(command) = text.trim_end().strip_prefix('/') else {
            return Self::Text(text.trim().to_owned());
        };
        let (name, rest) = command
            .split_once(char::is_whitespace)
            .unwrap_or((command, ""));
        let name = match name {
            "?" => "help",
            "exit" => "quit",
            "abort" | "interrupt" => "stop",
            name => name,
        };
        Self::Command(name.to_owned(), rest.trim().to_owned())
    }

    /// Returns the line as it was written, unless it is a key.
    pub(in crate::chat) fn into_text(self) -> Option<String> {
        match self {
            // It was written with a blank before it.
            Self::Text(text) if text.starts_with('/') => Some(format!(" {text}")),
            Self::Text(text) => Some(text),
            Self::Command(name, rest) => Some(format!("/{name} {rest}").trim_end().to_owned()),
            _ => None,
        }
    }

    /// Returns whether nothing is read after it.
    pub(super) fn is_last(&self) -> bool {
        matches!(self, Self::Command(name, _) if name == "quit")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_text_or_a_command() {
        let text = |text: &str| Line::Text(text.to_owned());
        let command = |name: &str, rest: &str| Line::Command(name.to_owned(), rest.to_owned());
        for (line, expected) in [
            (" hello \r\n", text("hello")),
            ("", text("")),
            (" /quit", text("/quit")),
            ("/join  My Room \n", command("join", "My Room")),
            ("/exit", command("quit", "")),
            ("/abort", command("stop", "")),
            ("/?", command("help", "")),
        ] {
            assert_eq!(Line::parse(line), expected, "{line:?}");
        }
    }
}
