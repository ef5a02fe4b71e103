//! A SmartHole plugin: its handler takes and rejects messages, over one line and the next, until it is told to stop.

use smarthole_proto::frame::Registration;
use smarthole_proto::id::ClientId;
use smarthole_proto::net::InboundMessage;
use smarthole_proto::plugin::{AppError, Context, Ended, Handler, Plugin, PluginConfig};
use tokio::{sync::watch, try_join};
use wasm_bindgen::JsValue;

use super::{Line, Outcome, expect, failed, fails, soon};

/// Counts registrations.
struct Milk(watch::Sender<u64>);

impl Handler for Milk {
    async fn on_message(&self, _: &Context, message: &InboundMessage) -> Result<(), AppError> {
        match *self.0.borrow() {
            1 if message.text == *"milk" => Ok(()),
            _ => Err(AppError::rejected("no more milk")),
        }
    }

    async fn on_ready(&self, _: &Context, _: Option<&ClientId>) {
        self.0.send_modify(|count| *count += 1);
    }
}

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let (count, mut registered) = watch::channel(0);
    let registration = Registration::new("page", "Keeps milk.");
    let config = PluginConfig::new(registration).map_err(failed)?;
    let plugin = Plugin::new(url, config, Milk(count)).map_err(failed)?;
    let (stop, mut stopped) = watch::channel(());
    let asked = async {
        soon(registered.wait_for(|count| *count == 1))
            .await?
            .map_err(failed)?;
        let answer = line.control("ask").await?;
        expect(answer.contains("page"), answer)?;
        line.control("drop").await?;
        soon(registered.wait_for(|count| *count == 2))
            .await?
            .map_err(failed)?;
        let answer = line.control("ask").await?;
        expect(answer.contains("no more milk"), answer)?;
        drop(stop);
        Ok(())
    };
    let ran = plugin.run_until(async move {
        let _ = stopped.changed().await;
    });
    let ran = async { Ok::<_, JsValue>(ran.await) };
    let (ended, ()) = try_join!(ran, asked)?;
    fails(ended, |it| matches!(it, Ended::Stopped(_)))
}
