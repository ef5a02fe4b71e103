//! `switchboard router serve`: runs a router, with a conversation at the terminal.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use smarthole_proto::hub::HubConfig;
use smarthole_proto::limits::{MAX_CONNECTIONS, ROUTING_LIMIT};
use smarthole_proto::net::{Server, ServerOptions, http_config};

use super::model;
use crate::chat::router::console::{Console, ConsoleConfig};
use crate::chat::router::show::Show;
use crate::chat::{self, Options};
use crate::cli::{self, Failure, TlsArgs};
use crate::router::http::Http;
use crate::{metrics, web};

/// How long a request to `/input` may wait for what becomes of its message.
const HTTP_PATIENCE: Duration = Duration::from_secs(110);
/// How much longer its connection may be there.
const HTTP_REST: Duration = Duration::from_secs(10);
/// Most requests at once, beside the clients: each may wait for the end of its message.
const MAX_REQUESTS: usize = 4_096;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The loopback address to listen on; port 0 takes a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9473", value_parser = cli::address)]
    listen: SocketAddr,
    /// How long to wait for a client's answer before its message goes to another client.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = cli::timeout)]
    response_timeout: Duration,
    /// How many clients to try, one after another, if each rejects the message.
    #[arg(long, value_name = "COUNT", default_value_t = ROUTING_LIMIT)]
    routing_limit: u32,
    /// If a client rejects a message that was addressed to it by name, try others.
    #[arg(long)]
    reroute_direct: bool,
    /// The most clients at once.
    #[arg(
        long, value_name = "COUNT", default_value_t = MAX_CONNECTIONS,
        value_parser = RangedU64ValueParser::<usize>::new().range(1..)
    )]
    max_clients: usize,
    /// Take every frame of a registered client as a sign of life, not only its pongs.
    #[arg(long)]
    any_frame: bool,
    /// An origin of web pages that may connect, as SCHEME://HOST; may be repeated. Programs other than
    /// browsers, and Obsidian, may always connect.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Print one JSON object for each event.
    #[arg(long)]
    json: bool,
    /// The history file of the terminal. Default: one in ~/.local/state/switchboard
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Read no lines before this many clients have registered.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    clients: usize,
    /// Exit when the input has ended and every message is settled; fail if a message reached no client.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    model: model::ChooserArgs,
    #[command(flatten)]
    pings: cli::Pings,
    #[command(flatten)]
    tls: TlsArgs,
}

pub(crate) async fn serve(args: Args) -> Result<(), Failure> {
    metrics::install()?;
    let address = args.listen;
    if !address.ip().to_canonical().is_loopback() {
        return Err(Failure::usage(format_args!(
            "a router accepts connections from this machine only, and {address} is not a loopback address: \
             listen on 127.0.0.1 or [::1]"
        )));
    }
    let _ = cli::raise_file_limit(u64::MAX);
    let (router, decides) = model::router(&args.model)?;
    let options = options(&args)?;
    let server = Server::bind(address, router, options)
        .await
        .map_err(|error| cli::cannot_listen(address, "--listen", &error))?;

    let (runtime, handle, url) = (server.runtime(), server.handle(), server.url());
    let post = format!("http://{}/input", server.local_addr());
    let wanted = ConsoleConfig {
        url: args.tls.url(&url),
        input: args.tls.url(&post),
        clients: args.clients,
        once: args.once,
        model: decides,
    };
    let show = Show::new(cli::wants_colour(&std::io::stdout()));
    let mut console = Console::new(runtime, handle, show, wanted);
    cli::ready();
    let running = tokio::spawn(server.run());
    let conversation = Options {
        once: None,
        json: args.json,
        history: args.history,
        place: url,
    };
    let ended = chat::run(&mut console, conversation).await;
    let (sent, lost) = console.lost();
    if args.once && lost > 0 {
        return Err(Failure::new(format_args!(
            "no client took {lost} of {sent} messages"
        )));
    }
    ended?;
    running.await.map_err(Failure::new)?;
    if let Some(report) = console.report {
        let (finished, aborted) = (report.finished, report.aborted);
        tracing::info!(finished, aborted, "connections closed and cut");
    }
    Ok(())
}

fn options(args: &Args) -> Result<ServerOptions, Failure> {
    let hub = HubConfig {
        response_timeout: args.response_timeout,
        routing_limit: args.routing_limit,
        reroute_direct: args.reroute_direct,
        ..HubConfig::default()
    };
    let mut options = ServerOptions::new(hub);
    options.router.timeout = args.model.timeout();
    options.connection.keep_alive = args.pings.over(options.connection.keep_alive);
    options.connection.only_pongs = !args.any_frame;
    let mut http = http_config();
    http.guards = cli::guards(http.guards, &[], &args.origins)?;
    http.limits.max_websockets = Some(args.max_clients);
    http.limits.max_connections = args.max_clients.saturating_add(MAX_REQUESTS);
    http.limits.handshake_timeout = HTTP_PATIENCE + HTTP_REST;
    let service = Arc::new(Http {
        runtime: options.runtime.clone(),
        patience: HTTP_PATIENCE,
    });
    options.http = args
        .tls
        .http(metrics::guard(http))?
        .with_http(move |request, _| {
            let service = Arc::clone(&service);
            async move {
                match metrics::respond(&request).or_else(|| web::health(&request, Ok(()))) {
                    Some(answer) => answer,
                    None => service.answer(request).await,
                }
            }
        });
    Ok(options)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn all_clients_and_waiting_requests_have_room() {
        for (line, clients) in [
            (&["router"][..], 100),
            (&["router", "--max-clients=5000"], 5000),
        ] {
            let options = options(&Line::parse_from(line).args).unwrap();
            let limits = options.http.limits;
            assert_eq!(limits.max_websockets, Some(clients));
            assert_eq!(limits.max_connections, clients + MAX_REQUESTS);
        }
    }
}
