//! [`ToolArgs`]: the options of what the agent may do in its folder; [`Tools`] is what comes of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::agreed;
use crate::cli::{self, Failure, complain};
use crate::daemon::command::{CommandConfig, Commands, Confinement, GitAccess, Network};
use crate::daemon::git::{self, Outside};
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
    /// A folder or file that commands may also read, such as ~/.config/pip; may be repeated.
    #[arg(long = "readable", value_name = "PATH")]
    readable: Vec<PathBuf>,
    /// A folder that commands may also write; may be repeated. In one of Git, config and hooks stay read-only.
    #[arg(long = "writable", value_name = "FOLDER")]
    writable: Vec<PathBuf>,
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
    /// What is to be known of the folders that commands reach.
    pub(crate) remarks: Vec<String>,
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
        let mut config = CommandConfig::default()
            .with_confinement(place)
            .with_network(args.network)
            .with_git(args.git)
            .with_variables(args.variables.clone())
            .with_timeout(args.command_timeout);
        config.readable = real("--readable", &args.readable)?;
        config.writable = real("--writable", &args.writable)?;
        let mut remarks = Vec::new();
        if place == Confinement::Workspace {
            let remark = match git::outside(workspace.path()) {
                Some(outside) => Some(open_git(&mut config, outside, workspace.path())),
                None => one_sided(&mut config, workspace.path()),
            };
            remarks.extend(remark);
        }
        let mut commands = Commands::new(config.clone());
        let network = commands.check(&workspace).await;
        if let Err(why) = &network {
            complain(format_args!(
                "warning: {why}; '--unconfined' runs commands without confinement"
            ));
            // None is offered.
            config.confinement = Confinement::Off;
            commands = Commands::new(config);
        }
        Ok(Self {
            workspace,
            place: commands.confinement(),
            toolbox: Toolbox::new(commands),
            network: network.ok(),
            remarks,
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
                    "commands stay there, without a network: no namespace for one, so Landlock and a filter forbid it, \
                     but for netlink, which shows the interfaces of this machine"
                }
            },
            Confinement::Open => "commands go anywhere",
            Confinement::Off => "no commands",
        }
    }
}

/// The real paths that an option names.
fn real(option: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let real = paths.iter().map(|path| {
        path.canonicalize()
            .map_err(|error| Failure::usage(format_args!("{option} {}: {error}", path.display())))
    });
    real.collect()
}

/// Returns what is to be known of a folder that the workspace names as Git's, and that does not name it in return.
fn one_sided(config: &mut CommandConfig, workspace: &Path) -> Option<String> {
    let git = git::named(workspace)?;
    if config.writable.iter().any(|it| git.starts_with(it)) || git.starts_with(workspace) {
        return None;
    }
    let git = git.display();
    let remark = format!(
        "Git does not work in commands, because .git names {git}, which does not name this workspace in return: if it \
         belongs to it, '--writable {git}' opens it"
    );
    config.git_remark = Some(remark.clone());
    Some(remark)
}

/// Opens Git's folder outside of the workspace if the person has agreed to that, and returns what is to be known.
fn open_git(config: &mut CommandConfig, outside: Outside, workspace: &Path) -> String {
    let Some(git) = outside.writable.first().map(|it| it.display().to_string()) else {
        return String::new();
    };
    let files = outside.readable.as_ref();
    let files = files.map_or(String::new(), |it| format!(", and read {}", it.display()));
    let is_given = |it: &PathBuf| outside.writable.iter().any(|git| git.starts_with(it));
    let question = format!(
        "Git's folder of this workspace is outside of it. May commands write {git}{files}? Config and hooks stay read-only."
    );
    if config.writable.iter().any(is_given) || agreed::ask_once(workspace, &git, &question) {
        config.writable.extend(outside.writable);
        config.readable.extend(outside.readable);
        return format!("commands write {git}{files}; config and hooks are read-only there");
    }
    let remark = format!(
        "Git does not work in commands, because its folder is outside of the workspace: '--writable {git}' opens it{files}"
    );
    config.git_remark = Some(remark.clone());
    remark
}
