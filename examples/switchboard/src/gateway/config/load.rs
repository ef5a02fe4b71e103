//! Finding and reading the file, and resolving its relative paths.

use std::io;
use std::path::{Path, PathBuf};

use super::{Config, DataDir, PluginSource};
use crate::bounded;
use crate::text::{printable, shortened};

/// The environment variable that names the file.
pub const PATH_VARIABLE: &str = "EXOCLAW_CONFIG";
/// The folder of the file below the home folder, and its name there.
const FOLDER: &str = ".exoclaw";
const NAME: &str = "config.toml";
/// Largest file, in bytes. A configuration has a few hundred lines.
const MAX_BYTES: u64 = 1024 * 1024;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 400;
/// The warning that nothing says where a file and data could be.
const HOMELESS: &str = "HOME is not set, or is no text, so no configuration is read, and sessions, memory and budgets \
    are kept in memory only; name a file with --config, and its folder is used";

/// A valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// The file, which need not exist.
    pub file: Option<PathBuf>,
    /// The folder of its relative paths.
    pub folder: Option<PathBuf>,
    /// What is odd about the file, such as that others can read its keys.
    pub warnings: Vec<String>,
}

/// Says where a text has a mistake, without values that may be secret.
fn invalid(file: &Path, text: &str, mut error: toml::de::Error) -> String {
    let before = error.span().and_then(|at| text.get(..at.start));
    let before = before.unwrap_or_default();
    // The line, and a text in place of something else, may be a key.
    error.set_input(None);
    let shown = error.to_string();
    let (what, place) = shown.trim_end().split_once("\nin ").unzip();
    let what = what.unwrap_or(shown.trim_end());
    let what = match what.rsplit_once("\", expected ") {
        Some((start, expected)) if start.starts_with("invalid type: string") => {
            format!("invalid type: string, expected {expected}")
        }
        _ => what.to_owned(),
    };
    let message = match place.map(|it| it.trim_matches('`')) {
        Some("gateway") if what.starts_with("unknown field `token`") => {
            format!("gateway: {what}; the token comes from --token or EXOCLAW_TOKEN")
        }
        Some(place) => format!("{place}: {what}"),
        None => what,
    };
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = shortened(&message, MAX_MESSAGE);
    format!(
        "{}:{line}:{column}: {}",
        file.display(),
        printable(&message)
    )
}

/// The file of a text: messages name it, and relative paths start at its folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// What `~` stands for. Default none: paths with it are errors.
    pub home: Option<PathBuf>,
}

impl Origin {
    /// The folder of the file, whether or not there is one. What comes from a pipe or a device has that of the usual
    /// file.
    fn folder(&self) -> PathBuf {
        match self.file.metadata() {
            Ok(of) if !of.is_file() => self.home.as_ref().map(|home| home.join(FOLDER)),
            _ => self.file.parent().map(Path::to_owned),
        }
        .unwrap_or_default()
    }

    /// Resolves a path in the file: `~` is the home folder, and relative paths start at the folder
    /// of the file. `None` if there is no home folder.
    pub fn resolve(&self, path: &str) -> Option<PathBuf> {
        let folder = self.folder();
        match path.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with(['/', std::path::MAIN_SEPARATOR]) => {
                let rest = rest.trim_start_matches(['/', std::path::MAIN_SEPARATOR]);
                self.home.as_ref().map(|home| home.join(rest))
            }
            _ => Some(folder.join(path)),
        }
    }

    fn place(&self, path: &mut PathBuf) -> Result<(), String> {
        let text = path.to_string_lossy();
        let resolved = self.resolve(&text).ok_or_else(|| {
            let file = self.file.display();
            format!("{file}: {text}: `~` is unknown, since HOME is not set")
        })?;
        // Without a dot at its end.
        *path = resolved.components().collect();
        Ok(())
    }
}

impl Config {
    /// Parses a text. Never panics.
    ///
    /// # Errors
    /// The first mistake, with its line and its character, or a path with `~` and no home. The same text fails again.
    pub fn parse(text: &str, origin: &Origin) -> Result<Self, String> {
        let config = toml::from_str(text);
        let mut config: Self = config.map_err(|error| invalid(&origin.file, text, error))?;
        let (model, nats) = (&mut config.agent.model, &mut config.nats);
        for header in &mut model.model_header {
            if let Some(file) = header.expose().strip_prefix('@') {
                let mut file = PathBuf::from(file);
                origin.place(&mut file)?;
                *header = format!("@{}", file.display()).into();
            }
        }
        let plugins = config.plugins.iter_mut().map(|it| match &mut it.source {
            PluginSource::File(path) => Some(path),
            PluginSource::Builtin(_) => None,
        });
        let data = match &mut config.gateway.data {
            DataDir::Folder(folder) => Some(folder),
            DataDir::Memory => None,
        };
        let files = [
            &mut model.key_file,
            &mut config.agent.soul_path,
            &mut nats.password_file,
            &mut nats.token_file,
            &mut nats.nkey_file,
            &mut nats.creds_file,
            &mut nats.ca,
        ];
        let files = files.into_iter().map(Option::as_mut);
        for path in files.chain(plugins).chain([data]).flatten() {
            origin.place(path)?;
        }
        Ok(config)
    }

    /// Reads the file that the command line names, or else [`PATH_VARIABLE`], or else
    /// `~/.exoclaw/config.toml`. Only the first must exist. Without the others everything has its
    /// default, and data is kept in the folder where the file would be; if a file named by the
    /// environment is missing, there is a warning. `variable` reads the environment. Blocks on the
    /// file system.
    ///
    /// # Errors
    /// Why the file cannot be read, or is invalid. Retrying helps only after a change of the file.
    pub fn load(
        named: Option<&Path>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Loaded, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = variable("HOME").or_else(|| variable("USERPROFILE"));
        let home = home
            .filter(|home| !home.contains('\u{fffd}'))
            .map(PathBuf::from);
        let named = named.map(Path::to_owned);
        let must_exist = named.is_some();
        let named = named.or_else(|| variable(PATH_VARIABLE).map(PathBuf::from));
        let expected = named.is_some();
        let usual = || Some(home.as_ref()?.join(FOLDER).join(NAME));
        let Some(file) = named.or_else(usual) else {
            return Ok(Loaded {
                config: Self::default(),
                file: None,
                folder: None,
                warnings: vec![HOMELESS.to_owned()],
            });
        };
        let origin = Origin { file, home };
        let loaded = |config, warnings| Loaded {
            config,
            file: Some(origin.file.clone()),
            folder: Some(origin.folder()),
            warnings,
        };
        match bounded::piped_text(&origin.file, MAX_BYTES) {
            Ok(text) => {
                let config = Self::parse(&text, &origin)?;
                let is_empty = text.trim().is_empty();
                let empty = is_empty.then_some("is empty; everything has its default");
                let exposed = exposed(&config, &origin.file);
                let about = |message| format!("{}: {message}", origin.file.display());
                let warnings = exposed.into_iter().chain(empty.map(str::to_owned));
                Ok(loaded(config, warnings.map(about).collect()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => {
                let file = origin.file.display();
                let missing = format!(
                    "{PATH_VARIABLE} names {file}, which does not exist; everything has its default"
                );
                let warnings = expected.then_some(missing).into_iter().collect();
                Ok(loaded(Self::parse("", &origin)?, warnings))
            }
            Err(error) => Err(format!(
                "cannot read {}: {error}; choose another with --config or EXOCLAW_CONFIG",
                origin.file.display()
            )),
        }
    }
}

/// Returns a warning if the file contains a key and other users can read it.
#[cfg(unix)]
fn exposed(config: &Config, path: &Path) -> Option<String> {
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
    (mode & 0o077 != 0).then_some(message)
}

#[cfg(not(unix))]
fn exposed(_: &Config, _: &Path) -> Option<String> {
    None
}
