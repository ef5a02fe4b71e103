//! [`NatsArgs`]: the options of the NATS server where the nodes of a cluster keep what they share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::Secret;
use rpc_core::net::nats::{self, NatsConfig};
use rpc_core::net::ws::redact_urls;
use rpc_core::store::{Store, StoreError};
use tokio::time::sleep;

use crate::bounded;
use crate::cli::{Failure, complain, nats_failure, remark, secret, secret_file, trusted};
use crate::gateway::config::NatsSettings;

/// The pause before NATS is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// The variables beside the options: those that these may come from, and the secrets.
const URL: &str = "NATS_URL";
const USER: &str = "NATS_USER";
const CREDS: &str = "NATS_CREDS";
const PASSWORD: &str = "NATS_PASSWORD";
const TOKEN: &str = "NATS_TOKEN";
const NKEY: &str = "NATS_NKEY";

/// A NATS server with JetStream, and who we are there.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct NatsArgs {
    #[command(flatten)]
    own: NatsSettings,
    /// What the configuration file says.
    #[arg(skip)]
    file: NatsSettings,
}

impl NatsArgs {
    /// Takes from a configuration file what neither options nor variables say.
    pub(crate) fn or(self, file: NatsSettings) -> Self {
        Self { file, ..self }
    }

    fn url(&self) -> Option<&str> {
        let url = self.own.url.as_ref().or(self.file.url.as_ref());
        url.map(|url| url.expose().trim())
            .filter(|url| !url.is_empty())
    }

    /// Returns whether this is a node of a cluster.
    pub(crate) fn is_on(&self) -> bool {
        self.url().is_some()
    }

    /// Warns if something is set that only a node of a cluster needs.
    fn warn_alone(&self) {
        let own = &self.own;
        let user = own.user.is_some() && std::env::var_os(USER).is_none();
        let creds = own.creds_file.is_some() && std::env::var_os(CREDS).is_none();
        let given = [
            ("--nats-prefix", own.prefix.is_some()),
            ("--nats-user", user),
            ("--nats-password-file", own.password_file.is_some()),
            ("--nats-token-file", own.token_file.is_some()),
            ("--nats-nkey-file", own.nkey_file.is_some()),
            ("--nats-creds", creds),
            ("--nats-ca", own.ca.is_some()),
            ("--nats-replicas", own.replicas.is_some()),
            ("[nats]", self.file != NatsSettings::default()),
        ];
        if let Some((what, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
            complain(format_args!(
                "warning: {what} has no effect without the URL of a NATS server (--nats, {URL}): this node runs alone"
            ));
        }
    }

    /// Returns the configuration; `None` if this node is alone.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read.
    pub(crate) fn config(&self) -> Result<Option<NatsConfig>, Failure> {
        let Some(url) = self.url() else {
            self.warn_alone();
            return Ok(None);
        };
        let mut config = NatsConfig::new(url);
        if let Some(prefix) = self.own.prefix.as_ref().or(self.file.prefix.as_ref()) {
            config.prefix.clone_from(prefix);
        }
        if let Some(replicas) = self.own.replicas.or(self.file.replicas) {
            config.replicas = replicas.into();
        }
        config = self.login(config)?;
        let tls = match &self.own.ca {
            Some(file) => trusted("--nats-ca", Some(file)),
            None => trusted("[nats] ca", self.file.ca.as_deref()),
        };
        config.tls = tls?.or(config.tls);
        Ok(Some(config))
    }

    /// Chooses one way to log in: of the options and variables if they have any, else of the file.
    fn login(&self, config: NatsConfig) -> Result<NatsConfig, Failure> {
        let (own, file) = (&self.own, &self.file);
        let mut user = own.user.as_ref();
        let mut token = from("--nats-token-file", own.token_file.as_ref(), TOKEN)?;
        let mut nkey = from("--nats-nkey-file", own.nkey_file.as_ref(), NKEY)?;
        // An empty variable is none.
        let creds = own.creds_file.as_deref();
        let creds = creds.filter(|it| !it.as_os_str().is_empty());
        let mut creds = ("--nats-creds", creds);
        if user.is_none() && token.is_none() && nkey.is_none() && creds.1.is_none() {
            user = file.user.as_ref();
            token = content("[nats] token_file", file.token_file.as_ref())?;
            nkey = content("[nats] nkey_file", file.nkey_file.as_ref())?;
            creds = ("[nats] creds_file", file.creds_file.as_deref());
        }
        if let Some(user) = user {
            let option = "--nats-password-file";
            let mut password = from(option, own.password_file.as_ref(), PASSWORD)?;
            if password.is_none() {
                password = content("[nats] password_file", file.password_file.as_ref())?;
            }
            let password = password.ok_or_else(|| {
                Failure::usage(format_args!(
                    "the user on NATS needs a password: {option} or {PASSWORD}"
                ))
            })?;
            return Ok(config.with_user(user, password));
        }
        if let (option, Some(file)) = creds {
            let place = format!("{option} {}", file.display());
            let config = config.with_creds(bounded::given_text(&place, file)?);
            return config.map_err(|error| Failure::usage(format_args!("{place}: {error}")));
        }
        Ok(match (token, nkey) {
            (Some(token), _) => config.with_token(token),
            (None, Some(seed)) => config.with_nkey(seed),
            (None, None) => config,
        })
    }

    /// Connects as soon as NATS serves, and says what it waits for; `None` if this node is alone.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, or NATS refuses.
    pub(crate) async fn connect(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        let mut last = String::new();
        loop {
            let error = match self.open().await? {
                Ok(Some((prefix, store))) => {
                    remark(format_args!("a node of the cluster {prefix}"));
                    return Ok(Some(store));
                }
                Ok(None) => return Ok(None),
                Err(error @ StoreError::Unavailable { .. }) => error,
                Err(error) => return Err(self.failure(&error)),
            };
            let why = self.reason(&error);
            if why != last {
                complain(format_args!("warning: {why}. This program waits for it"));
                last = why;
            }
            sleep(PAUSE).await;
        }
    }

    /// Connects at once; `None` if this node is alone.
    ///
    /// # Errors
    /// [`Failure`] if a file cannot be read, NATS does not serve or refuses.
    pub(crate) async fn connect_now(&self) -> Result<Option<Arc<dyn Store>>, Failure> {
        let opened = self.open().await?.map_err(|error| self.failure(&error))?;
        Ok(opened.map(|(_, store)| store))
    }

    /// Connects once. Returns the name of the cluster, too.
    async fn open(&self) -> Result<Result<Option<(String, Arc<dyn Store>)>, StoreError>, Failure> {
        let Some(config) = self.config()? else {
            return Ok(Ok(None));
        };
        let prefix = config.prefix.clone();
        let opened = nats::connect(config).await;
        Ok(opened.map(|store| Some((prefix, store))))
    }

    fn failure(&self, error: &StoreError) -> Failure {
        match error {
            StoreError::Unavailable { .. } => Failure::refused(self.reason(error)),
            error => nats_failure(error),
        }
    }

    /// Says why NATS does not serve, and what to do.
    fn reason(&self, error: &StoreError) -> String {
        let place = redact_urls(self.url().unwrap_or_default());
        let message = match error {
            StoreError::Unavailable { message } => message.clone(),
            error => error.to_string(),
        };
        format!(
            "no NATS server with JetStream answers at {place}: {message}. Start one with: nats-server -js"
        )
    }
}

/// The secret in the file of an option, else in the environment.
fn from(option: &str, file: Option<&PathBuf>, name: &str) -> Result<Option<Secret>, Failure> {
    match file {
        Some(_) => content(option, file),
        None => Ok(secret(name)?),
    }
}

/// The secret in a file. `place` names the file in messages.
fn content(place: &str, file: Option<&PathBuf>) -> Result<Option<Secret>, Failure> {
    let read = file.map(|file| secret_file(place, file)).transpose()?;
    Ok(read.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;
    use clap::Parser;
    use rpc_core::store::LogConfig;
    use switchboard_testing::nats::NatsServer;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        nats: NatsArgs,
        /// Options of programs with the same names: their ids must differ.
        #[arg(long)]
        url: Option<String>,
        #[arg(long)]
        token: Option<String>,
    }

    fn parse(args: &[&str]) -> NatsArgs {
        let args = [&["node"], args].concat();
        Command::try_parse_from(args).unwrap().nats
    }

    #[test]
    fn without_a_url_a_node_is_alone() {
        assert!(parse(&["--nats-prefix", "x"]).config().unwrap().is_none());
    }

    #[test]
    fn a_user_needs_a_password_and_a_password_is_never_printed() {
        let folder = Folder::new();
        let file = folder.file("password", "wonder\n").display().to_string();
        let args = ["--nats", "nats://a", "--nats-user", "ann"];
        parse(&args).config().unwrap_err();
        let args = [&args[..], &["--nats-password-file", &file]].concat();
        let config = parse(&args).config().unwrap().unwrap();
        assert!(!format!("{config:?}").contains("wonder"));
    }

    #[test]
    fn a_password_in_the_url_logs_in_and_is_never_printed() {
        let args = parse(&["--nats", "nats://ann:wonder@a"]);
        let config = args.config().unwrap().unwrap();
        let expected = NatsConfig::new("nats://a").with_user("ann", "wonder");
        assert_eq!(format!("{config:?}"), format!("{expected:?}"));
        assert!(!format!("{args:?} {config:?}").contains("wonder"));
    }

    #[test]
    fn the_file_says_what_the_options_do_not() {
        let folder = Folder::new();
        let mut file = NatsSettings::default();
        assert!(!parse(&[]).or(file.clone()).is_on());
        file.url = Some("nats://ann:wonder@b".into());
        file.prefix = Some("p".to_owned());
        file.replicas = Some(3);
        file.user = Some("ann".to_owned());
        file.password_file = Some(folder.file("password", "sesame"));
        let of_file = parse(&[]).or(file.clone()).config().unwrap().unwrap();
        let mut expected = NatsConfig::new("nats://ann:wonder@b").with_user("ann", "sesame");
        expected.prefix = "p".to_owned();
        expected.replicas = 3;
        assert_eq!(format!("{of_file:?}"), format!("{expected:?}"));
        // Options go before it, each for itself; a login is one thing.
        let token = folder.file("token", "t").display().to_string();
        let args = [
            "--nats",
            "nats://a",
            "--nats-token-file",
            &token,
            "--nats-replicas",
            "1",
        ];
        let args = parse(&args).or(file.clone());
        let mut expected = NatsConfig::new("nats://a").with_token("t");
        expected.prefix = "p".to_owned();
        let config = args.config().unwrap().unwrap();
        assert_eq!(format!("{config:?}"), format!("{expected:?}"));
        assert!(!format!("{args:?}").contains("wonder"));
        file.ca = Some(folder.join("none"));
        let error = parse(&[]).or(file).config().unwrap_err();
        assert!(format!("{error:?}").contains("[nats] ca"), "{error:?}");
    }

    #[tokio::test]
    #[ignore = "needs nats-server"]
    async fn replicas_refused_by_the_server_are_a_usage_error_with_its_message() {
        let server = NatsServer::start();
        let args = parse(&["--nats", &server.url(), "--nats-replicas", "3"]);
        let nats = args.connect_now().await.unwrap().unwrap();
        let error = nats.log("test", LogConfig::new("test")).await.unwrap_err();
        let failure = nats_failure(&error);
        assert_eq!(failure.code(), crate::cli::USAGE);
        let text = format!("{failure:?}");
        assert!(text.contains("replicas > 1 not supported"), "{text}");
        let message = "no".to_owned();
        let failure = nats_failure(&StoreError::Denied { message });
        assert_eq!(failure.code(), crate::cli::REFUSED);
    }

    #[test]
    fn a_creds_file_logs_in_and_a_bad_one_is_named() {
        let folder = Folder::new();
        let seed = "SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM";
        let text = format!(
            "-----BEGIN NATS USER JWT-----\neyJ0.x.y\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let good = folder.file("good.creds", &text).display().to_string();
        let args = parse(&["--nats", "nats://a", "--nats-creds", &good]);
        let config = args.config().unwrap().unwrap();
        let expected = NatsConfig::new("nats://a")
            .with_creds(text.as_str())
            .unwrap();
        assert_eq!(format!("{config:?}"), format!("{expected:?}"));
        assert!(format!("{config:?}").contains("Creds"));
        assert!(!format!("{config:?}").contains(seed));
        let none = folder.join("none.creds");
        for bad in [
            folder.file("empty.creds", ""),
            folder.file("half.creds", text.split("\n\n").next().unwrap()),
            folder.file("damaged.creds", text.replace("SUAIO", "SUAIX")),
            // {"exp":1}
            folder.file("old.creds", text.replace(".x.", ".eyJleHAiOjF9.")),
            none,
        ] {
            let bad = bad.display().to_string();
            let args = parse(&["--nats", "nats://a", "--nats-creds", &bad]);
            let error = format!("{:?}", args.config().unwrap_err());
            assert!(
                error.contains("--nats-creds") && error.contains(&bad),
                "{error}"
            );
            assert!(!error.contains("SUAI"), "{error}");
        }
    }

    #[tokio::test]
    async fn an_absent_server_is_named() {
        let args = parse(&["--nats", "nats://127.0.0.1:1"]);
        let error = args.connect_now().await.unwrap_err();
        let text = format!("{error:?}");
        assert!(text.contains("127.0.0.1:1"), "{text}");
        assert!(text.contains("nats-server -js"), "{text}");
    }

    #[tokio::test]
    #[ignore = "needs nats-server"]
    async fn a_program_waits_for_a_server_that_is_not_there_yet() {
        let mut server = NatsServer::start();
        server.kill();
        let args = parse(&["--nats", &server.url()]);
        args.connect_now().await.unwrap_err();
        let mut connecting = std::pin::pin!(args.connect());
        let early = tokio::time::timeout(Duration::from_millis(50), &mut connecting).await;
        assert!(early.is_err());
        server.restart();
        assert!(connecting.await.unwrap().is_some());
    }
}
