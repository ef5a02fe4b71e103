//! A ConnectOnion client with a key of its own: it gives tasks, allows what a tool asks for, waits too long, loses its
//! line within a run and hears the rest of it, stops a run, and leaves.

use connectonion_proto::auth::Signer;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::frame::Scope;
use connectonion_proto::net::{self, Run, RunEvent};
use futures_util::FutureExt as _;
use wasm_bindgen_futures::spawn_local;

use super::{Line, MOMENT, Outcome, connects, failed, fails, is_late, leaves, soon};

/// Waits until a run says something that fits.
async fn shows(
    run: &mut Run,
    fits: impl Fn(&RunEvent) -> bool,
) -> Result<RunEvent, wasm_bindgen::JsValue> {
    while let Some(event) = run.next().await {
        let event = event.map_err(failed)?;
        if fits(&event) {
            return Ok(event);
        }
    }
    Err(failed("the run is over"))
}

async fn gives(mut run: Run, text: &str) -> Outcome {
    fails(run.finish().await, |it| {
        it.as_ref().is_ok_and(|it| it.result.contains(text))
    })
}

pub(super) async fn life(url: &str, line: &Line) -> Outcome {
    let options = ClientConfig {
        answer_timeout: Some(MOMENT),
        ..ClientConfig::default()
    };
    let signer = Signer::from_seed(&[7; 32]);
    let connected = net::connect(url, signer, options).await;
    let (client, _events, connection) = connected.map_err(failed)?;
    spawn_local(connection.run().map(drop));
    gives(client.chat("/call list_files").await, "found").await?;

    let write = r#"/call write_file {"path": "a.txt", "text": "milk"}"#;
    let mut run = client.chat(write).await;
    match shows(&mut run, |it| matches!(it, RunEvent::Approval(_))).await? {
        RunEvent::Approval(asked) => asked.approve(Scope::Once).await.map_err(failed)?,
        other => return Err(failed(format!("{other:?}"))),
    }
    gives(run, "a.txt").await?;

    line.control("hold").await?;
    is_late(client.status("no-session").await)?;
    line.control("release").await?;
    client.status("no-session").await.map_err(failed)?;

    let mut run = client.chat("/slow 8 100").await;
    shows(&mut run, |it| matches!(it, RunEvent::Step(_))).await?;
    line.control("drop").await?;
    soon(gives(run, "7 8")).await??;
    connects(&client, 2).await?;

    let mut run = client.chat("/slow 100 50").await;
    shows(&mut run, |it| matches!(it, RunEvent::Step(_))).await?;
    client.interrupt().await.map_err(failed)?;
    fails(soon(run.finish()).await?, Result::is_ok)?;

    leaves(&client).await
}
