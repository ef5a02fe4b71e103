//! Finding the file, and resolving its relative paths.

use std::io;
use std::path::{Path, PathBuf};

use super::diagnostic::{ConfigError, Diagnostic};
use super::{Config, DataDir, read};
use crate::bounded;

/// The environment variable that names the file.
pub const PATH_VARIABLE: &str = "EXOCLAW_CONFIG";
/// The folder of the file below the home folder, and its name there.
const FOLDER: &str = ".exoclaw";
const NAME: &str = "config.toml";
/// Largest file, in bytes. A configuration has a few hundred lines.
const MAX_BYTES: u64 = 1024 * 1024;

/// A valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Likely mistakes in the file, such as unknown keys.
    pub warnings: Vec<Diagnostic>,
}

/// The file of a text: messages name it, and relative paths start at its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    file: PathBuf,
    home: Option<PathBuf>,
}

impl Origin {
    /// Creates the origin of a text, without a home folder: paths with `~` are errors.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        Self { file, home: None }
    }

    /// Sets the folder that `~` stands for.
    pub fn with_home(mut self, home: Option<PathBuf>) -> Self {
        self.home = home;
        self
    }

    /// Returns the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Resolves a path in the file: `~` is the home folder, and relative paths start at the folder
    /// of the file. `None` if there is no home folder.
    pub fn resolve(&self, path: &str) -> Option<PathBuf> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with(['/', std::path::MAIN_SEPARATOR]) => {
                let rest = rest.trim_start_matches(['/', std::path::MAIN_SEPARATOR]);
                self.home.as_ref().map(|home| home.join(rest))
            }
            _ => Some(folder.join(path)),
        }
    }

    /// Returns the default folder for data, which is that of the file.
    pub(super) fn default_data(&self) -> DataDir {
        match self.file.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => DataDir::Folder(folder.to_owned()),
            Some(_) => DataDir::Folder(PathBuf::from(".")),
            None => DataDir::Memory,
        }
    }
}

impl Config {
    /// Parses a text. Never panics.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`]: the first mistake of TOML or of a type, else all others. The same
    /// text fails again.
    pub fn parse(text: &str, origin: &Origin) -> Result<Loaded, ConfigError> {
        read::read(text, origin)
    }

    /// Reads the file that the command line names, or else [`PATH_VARIABLE`], or else
    /// `~/.exoclaw/config.toml`. Only the first must exist. Without the others everything has its
    /// default, and data is kept in the folder where the file would be; if a file named by the
    /// environment is missing, there is a warning. `variable` reads the environment. Blocks on the
    /// file system.
    ///
    /// # Errors
    /// [`ConfigError`] if the file cannot be read, or is invalid.
    pub fn load(
        named: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Loaded, ConfigError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let home = home.map(PathBuf::from);
        let named = named.map(Path::to_owned);
        let must_exist = named.is_some();
        let named = named.or_else(|| variable(PATH_VARIABLE).map(PathBuf::from));
        let expected = named.is_some();
        let usual = || Some(home.as_ref()?.join(FOLDER).join(NAME));
        let Some(file) = named.or_else(usual) else {
            return Ok(Loaded {
                config: Self::default(),
                warnings: vec![homeless()],
            });
        };
        let origin = Origin { file, home };
        match bounded::text(&origin.file, MAX_BYTES) {
            Ok(text) => {
                let mut loaded = Self::parse(&text, &origin)?;
                let warnings = &mut loaded.warnings;
                warnings.extend(exposed(&loaded.config, &origin.file));
                if text.trim().is_empty() {
                    let message = "is empty; everything has its default";
                    warnings.push(whole(&origin.file, message.to_owned()));
                }
                Ok(loaded)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {
                let mut loaded = Self::parse("", &origin)?;
                loaded
                    .warnings
                    .extend(expected.then(|| missing(&origin.file)));
                Ok(loaded)
            }
            Err(error) => Err(ConfigError::Unreadable {
                path: origin.file,
                reason: error.to_string(),
            }),
        }
    }
}

/// Returns a warning that nothing says where a file and data could be.
fn homeless() -> Diagnostic {
    let message = "is not set, so no configuration is read, and sessions, memory and budgets are kept in memory only; \
                   name a file with --config, and its folder is used";
    Diagnostic {
        file: "HOME".into(),
        line: 0,
        column: 0,
        message: message.to_owned(),
    }
}

/// Returns a warning that a file named by the environment does not exist.
fn missing(path: &Path) -> Diagnostic {
    let message = "names this file, which does not exist; everything has its default";
    whole(path, format!("{PATH_VARIABLE} {message}"))
}

/// Returns a problem of a file as a whole.
fn whole(path: &Path, message: String) -> Diagnostic {
    Diagnostic {
        file: path.to_owned(),
        line: 1,
        column: 1,
        message,
    }
}

/// Returns a warning if the file contains a key and other users can read it.
#[cfg(unix)]
fn exposed(config: &Config, path: &Path) -> Option<Diagnostic> {
    use std::os::unix::fs::PermissionsExt as _;
    let url = config.nats.url.as_ref();
    let keys = [
        ("agent.api_key", config.agent.model.key.is_some()),
        (
            "nats.url",
            url.is_some_and(|url| url.expose().contains('@')),
        ),
    ];
    let (key, _) = keys.into_iter().find(|(_, is_secret)| *is_secret)?;
    let mode = path.metadata().ok()?.permissions().mode();
    let message = format!("{key}: other users can read this file; chmod 600 it");
    (mode & 0o077 != 0).then(|| whole(path, message))
}

#[cfg(not(unix))]
fn exposed(_: &Config, _: &Path) -> Option<Diagnostic> {
    None
}
