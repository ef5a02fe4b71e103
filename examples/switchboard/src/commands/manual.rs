//! `switchboard completions` and `switchboard man`: what is made of the commands' own descriptions.

use std::io::Write as _;
use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;
use crate::cli::{self, Failure, Stdout};

/// Prints completions of the command line for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples, for this shell, or for all in the file that it reads at its start:
  bash, zsh:
    source <(switchboard completions bash)
  fish:
    switchboard completions fish | source
  PowerShell:
    switchboard completions powershell | Out-String | Invoke-Expression")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "switchboard", &mut text);
    // Whether it could be written is reported at the end of the program.
    let _ = Stdout.write_all(&text);
    Ok(())
}

/// Prints the manual page, or writes a page for each command into a folder.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// The folder, created if it is missing. Pages in it are overwritten.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(folder) = &args.folder else {
        let mut text = Vec::new();
        Man::new(Cli::command())
            .render(&mut text)
            .map_err(Failure::new)?;
        let _ = Stdout.write_all(&text);
        return Ok(());
    };
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder));
    written.map_err(|error| {
        cli::cannot_write(
            format_args!("{}: {error}", folder.display()),
            "FOLDER",
            error.kind(),
        )
    })
}
