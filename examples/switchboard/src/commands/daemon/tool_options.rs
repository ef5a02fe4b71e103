//! [`ToolArgs`]: the options of what the agent may do in its folder; [`Tools`] is what comes of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::{self, Failure, complain};
use crate::daemon::command::{CommandConfig, Commands, Confinement, GitAccess, Network};
use crate::daemon::{Toolbox, Workspace};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Commands that the agent runs")]
pub(crate) struct ToolArgs {
    /// What commands can reach. 'workspace' needs Linux 6.2 or newer with user namespaces; elsewhere no command
    /// is run.
    #[arg(long, value_enum, default_value_t = Confinement::Workspace)]
    commands: Confinement,
    /// The same as '--commands open'.
    #[arg(long, conflicts_with = "commands")]
    unconfined: bool,
    /// What confined commands reach over the network: a loopback of their own, or all that you reach.
    #[arg(long, value_enum, default_value_t = Network::Own)]
    network: Network,
    /// What confined commands do with the settings and hooks of Git in the workspace, which it runs when you call
    /// it there.
    #[arg(long, value_enum, default_value_t = GitAccess::Read)]
    git: GitAccess,
    /// A folder or file that commands may also read, such as ~/.cargo; may be repeated.
    #[arg(long = "readable", value_name = "PATH")]
    readable: Vec<PathBuf>,
    /// An environment variable to pass to commands, in addition to PATH and the like; may be repeated.
    #[arg(long = "pass-env", value_name = "NAME")]
    variables: Vec<String>,
    /// How long a command may run.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = cli::timeout)]
    command_timeout: Duration,
}

/// A folder, and what may be done there.
pub(crate) struct Tools {
    pub(crate) workspace: Workspace,
    pub(crate) toolbox: Toolbox,
    place: Confinement,
    /// `None` if no command is run.
    network: Option<Network>,
}

impl Tools {
    pub(crate) async fn open(folder: &Path, args: &ToolArgs) -> Result<Self, Failure> {
        let workspace = Workspace::open(folder).map_err(|error| {
            Failure::usage(format_args!("--workspace {}: {error}", folder.display()))
        })?;
        let place = match args.unconfined {
            true => Confinement::Open,
            false => args.commands,
        };
        let config = CommandConfig::default()
            .with_confinement(place)
            .with_network(args.network)
            .with_git(args.git)
            .with_readable(args.readable.clone())
            .with_variables(args.variables.clone())
            .with_timeout(args.command_timeout);
        let commands = Commands::new(config);
        let network = commands.check(&workspace).await.inspect_err(|why| {
            complain(format_args!(
                "warning: {why}; '--unconfined' runs commands without confinement"
            ));
        });
        Ok(Self {
            workspace,
            toolbox: Toolbox::new(commands),
            place,
            network: network.ok(),
        })
    }

    /// Whether commands reach the servers of this machine.
    pub(crate) fn reach_servers(&self) -> bool {
        self.place != Confinement::Off && self.network == Some(Network::On)
    }

    /// Where commands may go, in words.
    pub(crate) const fn words(&self) -> &'static str {
        match self.place {
            Confinement::Workspace => match self.network {
                Some(Network::Own) => "commands stay there, in a network of their own",
                Some(Network::On) => "commands stay there, with the network",
                _ => {
                    "commands stay there, without a network: no namespace for one, so Landlock and a filter forbid it"
                }
            },
            Confinement::Open => "commands go anywhere",
            Confinement::Off => "no commands",
        }
    }
}
