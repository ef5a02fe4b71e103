//! Our own clients, in memory, each with one thing to do.

use std::io;

use async_trait::async_trait;
use rpc_core::net::ws::{WsDialer, WsStream};
use rpc_core::net::{DialError, Dialer};
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, oneshot};

use super::*;

/// Dials a script.
#[derive(Clone)]
pub(super) struct ToScript {
    sender: mpsc::Sender<BoxStream>,
    url: &'static str,
    subprotocol: Option<&'static str>,
}

impl Dialer for ToScript {
    type Transport = WsStream<DuplexStream>;

    async fn dial(&self) -> Result<Self::Transport, DialError> {
        let (here, there) = tokio::io::duplex(256 * 1024);
        let sent = self.sender.send(Box::new(there)).await;
        sent.map_err(|_| DialError::Exhausted)?;
        let mut dialer = WsDialer::new(self.url)?;
        if let Some(name) = self.subprotocol {
            let with = dialer.with_subprotocol(name);
            dialer = with.map_err(|error| DialError::Handshake(error.to_string()))?;
        }
        dialer.upgrade(here).await
    }
}

/// A client that is a function of its dialer.
pub(super) struct InMemory<F> {
    pub(super) url: &'static str,
    pub(super) run: F,
}

#[async_trait]
impl<F, R> Client for InMemory<F>
where
    F: Fn(ToScript) -> R + Send + Sync,
    R: Future<Output = Ended> + Send + 'static,
{
    async fn start(&self, _: &str, _: &Variables) -> io::Result<Started> {
        let (sender, connections) = mpsc::channel(16);
        let work = (self.run)(ToScript {
            sender,
            url: self.url,
            subprotocol: None,
        });
        let (told, telling) = oneshot::channel();
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            let _ = told.send(work.await);
        });
        let ended = Box::pin(async move {
            let _tasks = tasks;
            telling.await.unwrap_or_default()
        });
        Ok(Started {
            connections,
            ended,
            guards: None,
        })
    }
}

/// Returns a setup for a client.
pub(super) fn client<F, R>(
    url: &'static str,
    variables: Vec<(&'static str, &'static str)>,
    run: F,
) -> Setup
where
    F: Fn(ToScript) -> R + Send + Sync + 'static,
    R: Future<Output = Ended> + Send + 'static,
{
    let peer = Peer::Client(Arc::new(InMemory { url, run }));
    Setup { peer, variables }
}

mod exoclaw {
    use exoclaw_proto::client::ClientConfig;
    use exoclaw_proto::net::connect_with;
    use rpc_core::CallError;

    use super::*;

    async fn chat(dialer: ToScript, config: ClientConfig) -> Ended {
        let (client, _events, connection) = connect_with(dialer, config);
        let connection = tokio::spawn(connection.run());
        let said = async {
            client.ready().await.map_err(|_| 3)?;
            client
                .chat("hello")
                .await
                .finish()
                .await
                .map_err(|error| match error {
                    CallError::Remote(_) => 1,
                    _ => 4,
                })
        };
        let (code, output) = match said.await {
            Ok(output) => (0, output),
            Err(code) => (code, String::new()),
        };
        client.close();
        let _ = connection.await;
        Ended {
            code: Some(code),
            output: output.to_string(),
            ..Ended::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_one_fault_fails_one_row() {
        let suite = Suite::load(Protocol::Exoclaw, Side::Client).unwrap();
        let url = "ws://localhost/ws";
        let setups = [
            client(url, vec![("prompt", "hello")], |dialer| {
                chat(dialer, ClientConfig::default())
            }),
            client(
                url,
                vec![("token", "s3cret"), ("prompt", "hello")],
                |dialer| chat(dialer, ClientConfig::new("s3cret")),
            ),
        ];
        conforms(&suite, &setups).await;
    }
}

mod snek {
    use snek_proto::bot::{Bot, BotConfig, Handler};

    use super::*;

    struct Quiet;

    impl Handler for Quiet {}

    async fn bot(dialer: ToScript) -> Ended {
        let bot = Bot::with_dialer(dialer, BotConfig::new("mybot", "bot-secret"), Quiet);
        let ended = bot.run_until(std::future::pending::<()>()).await;
        Ended {
            code: Some(i32::from(ended.is_err())),
            ..Ended::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_bot_with_one_fault_fails_one_row() {
        let suite = Suite::load(Protocol::Snek, Side::Client).unwrap();
        let variables = vec![("username", "mybot"), ("password", "bot-secret")];
        let setup = client("ws://localhost/rpc.ws", variables, bot);
        conforms(&suite, &[setup]).await;
    }
}

mod smarthole {
    use smarthole_proto::frame::Registration;
    use smarthole_proto::plugin::{Plugin, PluginConfig, handler_fn};

    use super::*;

    async fn plugin(dialer: ToScript) -> Ended {
        let registration = Registration {
            version: Some("1.0.0".into()),
            ..Registration::new("notes", "Keeps notes.")
        };
        let config = PluginConfig::new(Registration {
            capabilities: vec!["lists".into()],
            ..registration
        });
        let plugin =
            Plugin::with_dialer(dialer, config.unwrap(), handler_fn(|_, _| async { Ok(()) }));
        plugin.run_until(std::future::pending::<()>()).await;
        Ended::default()
    }

    #[tokio::test(start_paused = true)]
    async fn a_plugin_with_one_fault_fails_one_row() {
        let suite = Suite::load(Protocol::SmartHole, Side::Client).unwrap();
        let setup = client("ws://localhost/", Vec::new(), plugin);
        conforms(&suite, &[setup]).await;
    }
}

mod acolyte {
    use acolyte_proto::client::{ClientConfig, Outcome};
    use acolyte_proto::frame::ChatRequest;
    use acolyte_proto::net::connect_with;

    use super::*;

    async fn chat(dialer: ToScript) -> Ended {
        let (client, _events, connection) = connect_with(dialer, ClientConfig::default());
        let connection = tokio::spawn(connection.run());
        let request = ChatRequest::new("hello", "gpt-5-mini");
        let (code, output) = match client.ready().await {
            Ok(_) => match client.chat(request).await.finish().await {
                Outcome::Done(reply) => (0, reply.output.to_string()),
                Outcome::Failed(_) | Outcome::Refused { .. } => (1, String::new()),
                _ => (4, String::new()),
            },
            Err(_) => (3, String::new()),
        };
        client.close();
        let _ = connection.await;
        Ended {
            code: Some(code),
            output,
            ..Ended::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_one_fault_fails_one_row() {
        let suite = Suite::load(Protocol::Acolyte, Side::Client).unwrap();
        let setup = client(
            "ws://localhost/v1/rpc",
            vec![("token", "s3cret")],
            |dialer| {
                chat(ToScript {
                    subprotocol: Some("bearer.s3cret"),
                    ..dialer
                })
            },
        );
        conforms(&suite, &[setup]).await;
    }
}

mod connectonion {
    use connectonion_proto::auth::Signer;
    use connectonion_proto::client::ClientConfig;
    use connectonion_proto::net::connect_with;
    use rpc_core::Secret;

    use super::*;

    async fn ask(dialer: ToScript) -> Ended {
        let signer = Signer::generate().unwrap();
        let options = ClientConfig {
            invite_code: Some(Secret::from("open sesame")),
            ..ClientConfig::default()
        };
        let (agent, _events, connection) = connect_with(dialer, signer, options);
        let connection = tokio::spawn(connection.run());
        let said = async {
            agent.ready().await.map_err(|_| 3)?;
            let output = agent.chat("hello").await.finish().await;
            output
                .map(|output| output.result.to_string())
                .map_err(|_| 1)
        };
        let (code, output) = match said.await {
            Ok(output) => (0, output),
            Err(code) => (code, String::new()),
        };
        agent.close();
        let _ = connection.await;
        Ended {
            code: Some(code),
            output,
            ..Ended::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_one_fault_fails_one_row() {
        let suite = Suite::load(Protocol::ConnectOnion, Side::Client).unwrap();
        let setup = client(
            "ws://localhost/ws",
            vec![("prompt", "hello"), ("invite", "open sesame")],
            ask,
        );
        conforms(&suite, &[setup]).await;
    }
}
