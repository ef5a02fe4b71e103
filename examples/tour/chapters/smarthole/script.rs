//! [`Player`], a client that does as the script says, and [`Ann`], who talks to the router and
//! complains if it does not go as she expects.

use std::sync::Arc;

use examples::cli::Failure;
use examples::screen::{Colour, Screen};
use rpc_core::net::{LinkConfig, Observer, Queued};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CloseFrame, CloseReason};
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::{Notification, Registration};
use smarthole_proto::hub::{HubEvent, Input, Outcome, Settlement};
use smarthole_proto::net::{
    Client, HubEvents, InboundMessage, RouterRuntime, Settled, connect_with, dialer, link_config,
};
use smarthole_proto::plugin::{Context, Ended, Handler, Plugin, PluginConfig, PluginError};
use tokio::task::JoinHandle;

use crate::tour::patience::{expect, in_time};

/// What a client does with its messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    /// Takes them, and notifies.
    Takes,
    /// Rejects them, for this reason.
    Rejects(&'static str),
    /// Says nothing until it has to end.
    Sleeps,
}

impl Handler for Does {
    async fn on_message(&self, cx: &Context, message: &InboundMessage) -> Result<(), PluginError> {
        match self {
            Self::Takes => {
                message.ack().await?;
                let shown = Notification::titled("Done", &message.text);
                message.notify(shown).await?;
                Ok(())
            }
            Self::Rejects(reason) => Err(PluginError::rejected(*reason)),
            Self::Sleeps => {
                cx.cancellation().cancelled().await;
                Ok(())
            }
        }
    }
}

/// A client of the router. It does not come back by itself, so that its end can be seen.
pub(crate) struct Player {
    ended: JoinHandle<CloseReason>,
}

impl Player {
    /// A client that is registered, and answers with a handler.
    pub(crate) async fn register(
        url: &str,
        registration: Registration,
        does: Does,
        shown: Arc<dyn Observer>,
    ) -> Result<Self, Failure> {
        let mut config = PluginConfig::new(registration).map_err(Failure::new)?;
        config.link = link(shown);
        let plugin = Plugin::new(url, config, does).map_err(Failure::new)?;
        let client = plugin.client();
        let ended = tokio::spawn(async move {
            match plugin.run().await {
                Ended::GaveUp(reason) => reason,
                _ => CloseReason::Local,
            }
        });
        is_registered(&client).await?;
        Ok(Self { ended })
    }

    /// A client that is registered, takes events, and lets messages fall.
    pub(crate) async fn register_sieve(
        url: &str,
        registration: Registration,
        shown: Arc<dyn Observer>,
    ) -> Result<Self, Failure> {
        let config = ClientConfig::new(registration).map_err(Failure::new)?;
        let dialer = dialer(url, &config).map_err(Failure::new)?;
        let (client, mut events, connection) = connect_with(dialer, config, link(shown));
        let ended = tokio::spawn(connection.run());
        is_registered(&client).await?;
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                // A message among them ends here.
                drop(event);
            }
            drop(client);
        });
        Ok(Self { ended })
    }

    /// Waits until the router has closed the connection.
    pub(crate) async fn goes_home(self) -> Result<(), Failure> {
        let ended = in_time("the end of a client", self.ended).await?;
        let ended = ended.map_err(Failure::new)?;
        let said_goodbye =
            matches!(&ended, CloseReason::Peer(frame) if frame.code == CloseFrame::GOING_AWAY);
        expect(said_goodbye, "the router to say goodbye with code 1001")
    }
}

fn link(shown: Arc<dyn Observer>) -> LinkConfig {
    let mut link = link_config().with_observer(shown);
    link.reconnect = ReconnectPolicy::off();
    link
}

async fn is_registered(client: &Client) -> Result<(), Failure> {
    in_time("a registration", client.ready())
        .await?
        .map_err(Failure::new)?;
    Ok(())
}

/// Somebody who talks to the router.
pub(crate) struct Ann {
    runtime: RouterRuntime,
    events: HubEvents,
    screen: Arc<Screen>,
    said: usize,
    deliveries: usize,
    again: usize,
    shown: usize,
}

impl Ann {
    pub(crate) fn new(runtime: &RouterRuntime, screen: &Arc<Screen>) -> Self {
        Self {
            events: runtime.events(),
            runtime: runtime.clone(),
            screen: Arc::clone(screen),
            said: 0,
            deliveries: 0,
            again: 0,
            shown: 0,
        }
    }

    /// Says something, and waits until nothing about it is open.
    pub(crate) async fn says(&mut self, input: Input) -> Result<Settled, Failure> {
        self.screen
            .event("ann", Colour::Bold, &format!("says {:?}", &*input.text));
        let settled = in_time("the end of a message", self.runtime.ask(input)).await?;
        let settled = settled.map_err(Failure::new)?;
        self.said += 1;
        self.deliveries += settled.outcomes.len();
        let late = |at: &&Settlement| at.outcome == Outcome::TimedOut;
        for at in settled.outcomes.iter().filter(late) {
            let text = format!("{} did not answer in time", at.client);
            self.screen.event("router", Colour::Bold, &text);
        }
        if let Some(why) = &settled.unroutable {
            self.screen.event("router", Colour::Bold, &why.to_string());
        }
        Ok(settled)
    }

    /// Expects these clients to have got the message, one after the other or together, and the last
    /// of them to have taken it.
    pub(crate) fn is_taken_by(
        &mut self,
        settled: &Settled,
        clients: &[&str],
    ) -> Result<(), Failure> {
        let got: Vec<&str> = settled.outcomes.iter().map(|at| &*at.client).collect();
        let last = settled.outcomes.last();
        let taken = last.is_some_and(|at| at.outcome == Outcome::Acked);
        expect(
            taken && got == clients,
            &format!("{clients:?} to get it, and the last to take it, not {settled:?}"),
        )?;
        let rejected = |at: &&Settlement| !at.outcome.is_taken();
        self.again += settled.outcomes.iter().filter(rejected).count();
        Ok(())
    }

    /// Waits for the next notification, which has to have this text.
    pub(crate) async fn is_shown(&mut self, text: &str) -> Result<(), Failure> {
        let what = format!("a notification {text:?}");
        let (client, body) = in_time(&what, self.next_notification()).await??;
        expect(body == text, &what)?;
        self.shown += 1;
        self.screen.event(
            "router",
            Colour::Bold,
            &format!("shows a notification of {client}"),
        );
        Ok(())
    }

    async fn next_notification(&mut self) -> Result<(String, String), Failure> {
        while let Some(event) = self.events.next().await {
            if let Queued::Item(HubEvent::Notification { client, body, .. }) = event {
                return Ok((client.to_string(), body.to_string()));
            }
        }
        Err(Failure::new("the router has ended too early"))
    }

    pub(crate) fn summary(&self) -> String {
        format!(
            "{} messages to a router, delivered {} times, {} of them again, {} notifications",
            self.said, self.deliveries, self.again, self.shown
        )
    }
}
