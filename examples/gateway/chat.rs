//! `gateway chat`: says something to a gateway and prints the reply as it comes.

use std::io::Write as _;

use examples::cli::{Failure, complain};
use examples::screen::{printable, printable_lines};
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{connect_with, dialer, link_config};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseReason, Secret};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to say.
    text: String,
    /// The gateway.
    #[arg(long, value_name = "URL", default_value = "ws://127.0.0.1:7200")]
    url: String,
    /// The gateway's token. Better given in the environment: others can see command lines.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "EXOCLAW_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
    /// Whom to be: the conversation is remembered under channel, account and peer.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    channel: String,
    /// The account within the channel.
    #[arg(long, value_name = "NAME", default_value = "user")]
    account: String,
    /// The peer.
    #[arg(long, value_name = "NAME", default_value = "main")]
    peer: String,
}

pub(crate) async fn chat(args: Args) -> Result<(), Failure> {
    let mut config = ClientConfig::new()
        .with_channel(args.channel)
        .with_account(args.account)
        .with_peer(args.peer);
    config.token = args
        .token
        .filter(|token| !token.is_empty())
        .map(Secret::from);
    let dialer = dialer(&args.url, &config).map_err(Failure::usage)?;
    // A gateway that is not there is told at once, not waited for.
    let link = link_config().with_reconnect(ReconnectPolicy::off());
    let (client, _, connection) = connect_with(dialer, config, link);
    let connection = tokio::spawn(connection.run());
    client.ready().await.map_err(|reason| {
        let hint = match reason {
            CloseReason::Authentication { .. } => " (the token comes from EXOCLAW_TOKEN)",
            _ => "",
        };
        Failure::new(format_args!(
            "no connection to {}: {reason}{hint}",
            args.url
        ))
    })?;

    let mut chat = client.chat(&args.text).await;
    let mut out = std::io::stdout();
    let (mut ended_line, mut failed) = (true, None);
    while let Some(event) = chat.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                failed = Some(match error {
                    // The gateway's own words.
                    CallError::Remote(error) => error.to_string(),
                    other => other.to_string(),
                });
                break;
            }
        };
        match event {
            StreamEvent::Text(text) => {
                // A reader that went away is no reason to panic.
                let _ = write!(out, "{}", printable_lines(&text)).and_then(|()| out.flush());
                ended_line = text.ends_with('\n');
            }
            StreamEvent::ToolUse(tool) => complain(format_args!(
                "[{} {}]",
                printable(&tool.name),
                printable(tool.input.get())
            )),
            StreamEvent::ToolResult(result) => complain(format_args!(
                "[{}{}]",
                if result.is_error { "failed: " } else { "" },
                printable(&result.content)
            )),
            _ => {}
        }
    }
    if !ended_line {
        let _ = writeln!(out);
    }
    client.close();
    connection.await.map_err(Failure::new)?;
    failed.map_or(Ok(()), |words| Err(Failure::new(words)))
}
