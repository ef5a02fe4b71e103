//! [`Home`]: the option for the folder of keys, lists and sessions.

use std::path::{Path, PathBuf};

use connectonion_proto::auth::Signer;

use crate::cli::{self, Failure};

#[derive(Debug, clap::Args)]
pub(crate) struct Home {
    /// The folder for keys, lists and sessions. Default: ~/.agent
    #[arg(long, value_name = "FOLDER", env = "AGENT_HOME")]
    home: Option<PathBuf>,
}

impl Home {
    pub(crate) fn folder(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.home {
            return Ok(folder.clone());
        }
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let home = home.ok_or_else(|| {
            Failure::usage("there is no folder for keys, because HOME is not set: use --home FOLDER, or set AGENT_HOME")
        })?;
        Ok(PathBuf::from(home).join(".agent"))
    }

    /// The key in the given file, or in the file of this name at home; made if it is missing.
    pub(crate) fn key(&self, given: Option<&Path>, name: &str) -> Result<Signer, Failure> {
        let (option, file) = match given {
            Some(file) => ("--key", file.to_owned()),
            None => ("--home", self.folder()?.join(name)),
        };
        Signer::load_or_generate(file).map_err(|error| {
            cli::cannot_write(format_args!("{option}: {error}"), option, error.kind())
        })
    }
}
