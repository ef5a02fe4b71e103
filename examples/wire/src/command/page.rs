//! `switchboard wire page`: frames in a browser, and as a file for a bug report.

use std::io::{BufWriter, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Protocol;
use crate::cli::{self, Failure, Reach, Signals, TlsArgs, complain, print_line};
use crate::explain::Explainer;
use crate::lock;
use crate::page::{Site, http_config, offline};
use crate::recording;
use crate::secrets::Shown;
use crate::text::{counted, printable};
use crate::view::{Shared, View, open};
use rpc_core::net::server::{Accepted, HttpConfig, ProtocolServer, ServerProtocol};
use serde_json::json;

/// How long an answer may take at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// Shows a recording in the browser: frames, calls, and what went wrong. Other recordings open when they
/// are dropped on the page.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The recording: a transcript, a HAR file of a browser, or either compressed with gzip.
    file: Option<PathBuf>,
    /// Write the page with the recording to this file in place of serving it: it opens without a server.
    /// It must not exist.
    #[arg(long, value_name = "FILE", requires = "file")]
    html: Option<PathBuf>,
    /// The address to listen on.
    #[arg(long, default_value = "127.0.0.1:7180", value_name = "ADDRESS", value_parser = cli::address)]
    listen: SocketAddr,
    /// The protocol. Default: the one that the recording names, or its frames show.
    #[arg(long)]
    protocol: Option<Protocol>,
    #[command(flatten)]
    shown: Shown,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

pub(super) async fn run(mut args: Args) -> Result<(), Failure> {
    if args.file.is_none() {
        args.file = args.shown.take_file();
    }
    let name = args.file.as_deref().map_or("", name);
    let view = View::named(name);
    let file = args.file.as_deref().map(super::open).transpose()?;
    let explainer = Explainer::new(args.protocol, args.shown.clone());
    let fill = {
        let (view, name) = (Arc::clone(&view), name.to_owned());
        move || match file {
            Some(file) => {
                let is_complete = !super::is_written(&file);
                recording::open(file)
                    .and_then(|lines| open(lines, explainer, &view, is_complete))
                    .map_err(|error| Failure::new(format_args!("{name}: {error}")))
            }
            None => {
                lock(&view).end(&[]);
                Ok(())
            }
        }
    };
    if let Some(html) = &args.html {
        fill()?;
        return save(&view, html);
    }
    let site = Site::new(view, false, args.protocol, args.shown.clone());
    let signals = Signals::listen();
    let server = serve(site, args.listen, &args.reach, args.json).await?;
    let (handle, filled) = (server.handle(), tokio::task::spawn_blocking(fill));
    signals.serve(server.run(), handle.drain(DRAIN)).await?;
    match filled.await {
        Ok(filled) => filled,
        Err(error) => Err(Failure::new(error)),
    }
}

/// The server of a page, without WebSockets.
pub(super) struct Pages;

impl ServerProtocol for Pages {
    type App = Arc<Site>;
    type Options = HttpConfig;

    fn new(site: Arc<Site>, config: HttpConfig) -> (Arc<Self>, HttpConfig) {
        let config = config.with_http(move |request, _| Arc::clone(&site).respond(request));
        (Arc::new(Self), config)
    }

    async fn serve(self: Arc<Self>, _: Accepted) {}
}

/// Binds the server of a page, and says where it is.
pub(super) async fn serve(
    site: Site,
    address: SocketAddr,
    reach: &Reach,
    json: bool,
) -> Result<ProtocolServer<Pages>, Failure> {
    let is_public = reach.check(address)?;
    let mut config = http_config();
    config.guards = cli::guards(config.guards, &reach.hosts, &[])?;
    let server = ProtocolServer::bind(address, Arc::new(site), config).await;
    let server = server
        .map_err(|error| Failure::new(format_args!("cannot listen on {address}: {error}")))?;
    let url = format!("http://{}/", server.local_addr());
    match json {
        true => print_line(json!({ "event": "page", "url": url })),
        false => print_line(format_args!("the page is {url}")),
    }
    if is_public {
        reach.warn(&TlsArgs::default());
    }
    Ok(server)
}

/// The name of a file, for people.
pub(super) fn name(file: &Path) -> &str {
    let name = file.file_name().and_then(|name| name.to_str());
    name.unwrap_or("a recording")
}

fn save(view: &Shared, html: &Path) -> Result<(), Failure> {
    let wrong =
        |error: std::io::Error| Failure::usage(format_args!("--html {}: {error}", html.display()));
    let mut out = BufWriter::new(super::create("--html", html)?);
    let view = lock(view);
    offline(&view, &mut out)
        .and_then(|()| out.flush())
        .map_err(wrong)?;
    let problems = view
        .rows
        .iter()
        .filter(|row| row.explained.problem.is_some());
    complain(format_args!(
        "{}: {} frames, {}",
        printable(&html.display().to_string()),
        view.rows.len(),
        counted(problems.count(), "problem")
    ));
    super::judge(&view.name, view.bad)
}
