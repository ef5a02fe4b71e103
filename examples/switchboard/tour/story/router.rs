//! The first hop, SmartHole: a person, a router, and two programs that take what the person says.

use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::net::Queued;
use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::hub::{HubEvent, Input};
use smarthole_proto::net::{
    HubEvents, InboundMessage, RouterRuntime, Server, ServerHandle, ServerOptions, link_config,
};
use smarthole_proto::plugin::{Context, Ended, Handler, Plugin, PluginConfig, PluginError};
use smarthole_proto::router::Keywords;
use switchboard::cli::Failure;
use switchboard::screen::smarthole::Frames;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::agent::Remote;
use super::hop::Hop;
use crate::tour::patience::{expect, in_time};

/// A program that takes messages: passes them on to an agent, and shows the person what it answers.
struct Assistant {
    agent: Remote,
}

impl Handler for Assistant {
    async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), PluginError> {
        let answer = self.agent.asks(&message.text).await;
        let text = answer.unwrap_or_else(|why| format!("It failed: {why}"));
        let shown = Notification::titled("Done", text);
        message.notify(shown).await?;
        Ok(())
    }
}

/// A program that is there, and not concerned.
struct Lamps;

impl Handler for Lamps {
    async fn on_message(&self, _: &Context, _: &InboundMessage) -> Result<(), PluginError> {
        Err(PluginError::rejected("I switch lamps."))
    }
}

/// The router, with its programs.
pub(super) struct Router {
    runtime: RouterRuntime,
    events: HubEvents,
    programs: Vec<(oneshot::Sender<()>, JoinHandle<Ended>)>,
    server: JoinHandle<()>,
    handle: ServerHandle,
}

/// Opens it.
pub(super) async fn open(hop: &Hop, agent: Remote) -> Result<Router, Failure> {
    // It compares words. `switchboard::router::ModelRouter` asks a language model.
    let server = Server::bind("127.0.0.1:0", Keywords::new(), ServerOptions::default())
        .await
        .map_err(Failure::new)?;
    let (url, runtime, handle) = (server.url(), server.runtime(), server.handle());
    hop.event(&format!("listens on {url}"));
    let server = tokio::spawn(server.run().map(drop));

    let lamps = Registration::new("lamps", "Switches lamps.");
    let assistant = Registration::new("assistant", "Has poems and programs written.");
    let programs = vec![
        register(hop, &url, lamps, Lamps).await?,
        register(hop, &url, assistant, Assistant { agent }).await?,
    ];
    Ok(Router {
        events: runtime.events(),
        runtime,
        programs,
        server,
        handle,
    })
}

async fn register(
    hop: &Hop,
    url: &str,
    registration: Registration,
    handler: impl Handler,
) -> Result<(oneshot::Sender<()>, JoinHandle<Ended>), Failure> {
    let mut config = PluginConfig::new(registration).map_err(Failure::new)?;
    config.link = link_config().with_observer(hop.line(hop.name, Frames::default()));
    // The work may take longer than a router waits.
    config.ack_on_receipt = true;
    let plugin = Plugin::new(url, config, handler).map_err(Failure::new)?;
    let client = plugin.client();
    let (stop, stopped) = oneshot::channel::<()>();
    let program = tokio::spawn(plugin.run_until(async {
        let _ = stopped.await;
    }));
    in_time("a registration", client.ready())
        .await?
        .map_err(Failure::new)?;
    Ok((stop, program))
}

impl Router {
    /// The person says something, and the assistant takes it.
    pub(super) async fn hears(&self, text: &str) -> Result<(), Failure> {
        let asked = self.runtime.ask(Input::voice(text, Some(0.97)));
        let settled = in_time("a program that takes it", asked).await?;
        let settled = settled.map_err(Failure::new)?;
        let asked: Vec<_> = settled.outcomes.iter().map(|at| &*at.client).collect();
        let is_right = settled.is_taken() && asked == ["assistant"];
        expect(is_right, "the assistant, and nobody else, to take it")
    }

    /// What the person is shown next.
    pub(super) async fn shows(&mut self) -> Result<String, Failure> {
        in_time("something to show", self.next()).await?
    }

    async fn next(&mut self) -> Result<String, Failure> {
        while let Some(event) = self.events.next().await {
            if let Queued::Item(HubEvent::Notification { body, .. }) = event {
                return Ok(body.to_string());
            }
        }
        Err(Failure::new("expected something to show"))
    }

    pub(super) async fn close(self, within: Duration) -> Result<(), Failure> {
        for (stop, program) in self.programs {
            let _ = stop.send(());
            let ended = in_time("the end of a program", program).await?;
            let ended = ended.map_err(Failure::new)?;
            expect(ended.exit_code() == 0, "a program to end when asked to")?;
        }
        self.handle.drain(within).await;
        in_time("the end of the router", self.server)
            .await?
            .map_err(Failure::new)
    }
}
