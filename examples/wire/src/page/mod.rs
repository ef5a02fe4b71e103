//! [`Site`]: the page that shows the frames of a proxy or of a recording, and [`offline`], the page as a
//! file of its own.

use std::io;
use std::sync::Arc;

use crate::transcript::Header;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use percent_encoding::percent_decode_str;
use rpc_core::net::server::{HttpConfig, is_read};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::explain::Explainer;
use super::recording::{self, MAX_HAR};
use super::secrets::Shown;
use super::view::{Row, Shared, View, open};
use super::{Protocol, lock};
use crate::web::{Asset, json, not_allowed, page, text};

const HTML: &str = include_str!("page.html");
const STYLE: &str = concat!(
    include_str!("../../../switchboard/src/page/base.css"),
    include_str!("page.css")
);
/// One module of all files: a page that is a file cannot load others.
const SCRIPT: &str = concat!(
    include_str!("../../../switchboard/src/page/dom.js"),
    include_str!("model.js"),
    include_str!("list.js"),
    include_str!("tree.js"),
    include_str!("detail.js"),
    include_str!("draw.js"),
    include_str!("source.js"),
    include_str!("faults.js"),
    include_str!("main.js"),
);
const HEAD: &str = "<link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/page.css\">\n\
    <script src=\"/page.js\" type=\"module\"></script>";
/// What the frames of a page that is a file stand in, and how many in one: no task of the page has too many.
const BEGIN: &str = "<script type=\"application/x-ndjson\" class=\"recording\">";
const BATCH: usize = 500;
/// Most frames of an answer, and most bytes before the last one of them.
const MAX_ANSWER: (usize, usize) = (2000, 1024 * 1024);

/// What the page asks for.
pub(crate) struct Site {
    view: Shared,
    is_live: bool,
    faults: Option<String>,
    protocol: Option<Protocol>,
    shown: Shown,
}

/// What is new to the page.
#[derive(Serialize)]
struct News<'a> {
    rows: Vec<&'a Row>,
    /// Whether there is more already.
    more: bool,
    /// The last line that there is.
    last: usize,
    dropped: usize,
    complete: bool,
    live: bool,
    name: &'a str,
    header: &'a Header,
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<&'a str>,
}

impl Site {
    /// Creates the site of a view: of a running proxy if it `is_live`. Recordings that the user opens on
    /// the page are explained for this protocol, or for the one that they show.
    pub(crate) fn new(
        view: Shared,
        is_live: bool,
        protocol: Option<Protocol>,
        shown: Shown,
    ) -> Self {
        Self {
            view,
            is_live,
            faults: None,
            protocol,
            shown,
        }
    }

    /// Shows the rules of these faults.
    pub(crate) fn with_faults(mut self, faults: String) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Answers a request.
    ///
    /// - `GET /rows?after=N`: the frames behind line N, or the first of them.
    /// - `POST /open?NAME`: a recording, which replaces the one that is shown, unless that is of a running proxy.
    /// - `GET /recording.html`: the page as a file, with the frames.
    ///
    /// # Cancel safety
    /// Dropping the future loses the recording of the request.
    pub(crate) async fn respond(self: Arc<Self>, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let is_post = parts.method == Method::POST;
        let changed = match path {
            "/open" if !self.is_live && is_post => self.open(query, body).await,
            "/open" => return not_allowed("POST"),
            _ if !is_read(&parts.method) => return not_allowed("GET, HEAD"),
            "/rows" => return self.rows(query),
            "/recording.html" => return self.saved(),
            _ => return file(path),
        };
        match changed {
            Ok(()) => text(StatusCode::OK, ""),
            Err(why) => text(StatusCode::BAD_REQUEST, why),
        }
    }

    /// Shows a recording in place of the one before.
    async fn open(&self, name: &str, recorded: Bytes) -> Result<(), String> {
        let explainer = Explainer::new(self.protocol, self.shown.clone());
        let opened = View::named(percent_decode_str(name).decode_utf8_lossy());
        let opening = tokio::task::spawn_blocking(move || {
            open(recording::open(&*recorded)?, explainer, &opened, true)?;
            io::Result::Ok(std::mem::take(&mut *lock(&opened)))
        });
        let opened = opening.await.map_err(|error| error.to_string())?;
        *lock(&self.view) = opened.map_err(|error| error.to_string())?;
        Ok(())
    }

    fn saved(&self) -> Response<Bytes> {
        let mut file = Vec::new();
        match offline(&lock(&self.view), &mut file) {
            Ok(()) => page(file.into()),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    }

    fn rows(&self, query: &str) -> Response<Bytes> {
        let after = query.strip_prefix("after=").and_then(|it| it.parse().ok());
        let Some(after) = after else {
            return text(StatusCode::BAD_REQUEST, "`after` is not a number");
        };
        let view = lock(&self.view);
        let mut bytes = 0;
        let start = view.place_after(after);
        let rows = view.rows.range(start..).take(MAX_ANSWER.0);
        let rows: Vec<_> = rows
            .take_while(|row| {
                let before = bytes;
                bytes += row.data.len();
                before < MAX_ANSWER.1
            })
            .collect();
        answer(&News {
            more: start + rows.len() < view.rows.len(),
            last: view.rows.back().map_or(0, |row| row.n),
            rows,
            dropped: view.dropped,
            complete: view.is_complete,
            live: self.is_live,
            name: &view.name,
            header: &view.header,
            faults: self.faults.as_deref(),
        })
    }
}

/// Returns what does not change.
fn file(path: &str) -> Response<Bytes> {
    match path {
        "/" => page(HTML.replace("{head}", HEAD).into()),
        "/page.css" => Asset::style(STYLE.as_bytes()).respond(),
        "/page.js" => Asset::script(SCRIPT.as_bytes()).respond(),
        "/icon.svg" => Asset::drawing(include_bytes!(
            "../../../switchboard/src/page/gateway/icon.svg"
        ))
        .respond(),
        _ => text(StatusCode::NOT_FOUND, "there is nothing here"),
    }
}

/// Returns the limits and guards of a server of a [`Site`], which has no WebSockets: only its own page may
/// ask for anything.
pub(crate) fn http_config() -> HttpConfig {
    let largest = usize::try_from(MAX_HAR).unwrap_or(usize::MAX);
    let mut config = HttpConfig::default()
        .with_on_upgrade(|_, _| Err((StatusCode::NOT_FOUND, "no WebSockets here".into())));
    config.limits.max_connections = 64;
    config.limits.max_body_bytes = largest;
    config.guards.same_origin = true;
    config
}

fn answer(value: &impl Serialize) -> Response<Bytes> {
    match serde_json::to_vec(value) {
        Ok(text) => json(text),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// Writes the page as a file that shows this view, and needs no program. Its policy allows its own script and style.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn offline(view: &View, mut out: impl io::Write) -> io::Result<()> {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; \
         style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n<style>{STYLE}</style>",
        hash(SCRIPT),
        hash(STYLE)
    );
    // The frames come before the script, which finds them there.
    let page = HTML.replace("{head}", &head);
    let (before, after) = page.split_once("</body>").unwrap_or((&page, ""));
    let about = json!({ "name": &view.name, "header": &view.header, "dropped": view.dropped });
    write!(out, "{before}{BEGIN}")?;
    // Markup within a text would end the element.
    let write = |out: &mut dyn io::Write, line: &str| {
        out.write_all(line.replace('<', "\\u003c").as_bytes())?;
        out.write_all(b"\n")
    };
    write(&mut out, &about.to_string())?;
    for (index, row) in view.rows.iter().enumerate() {
        if index > 0 && index % BATCH == 0 {
            write!(out, "</script>{BEGIN}")?;
        }
        write(&mut out, &serde_json::to_string(row)?)?;
    }
    let script = format!("<script type=\"module\">{SCRIPT}</script>");
    write!(out, "</script>\n{script}\n</body>{after}")
}

#[cfg(test)]
mod tests;
