//! [`Site`]: the gateway's HTTP service: its page, past conversations for the page, and the
//! webhooks of chat services.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::frame::{ChatSend, SessionRef, StreamEvent};
use exoclaw_proto::net::{ChatError, Gone};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use serde::de::IgnoredAny;
use serde_json::json;

use super::engine::{Engine, NOT_STORED, Reply};
use super::page;
use super::tool::{ChannelAdapter, Incoming, Outgoing, PostError, Tools};
use crate::page::{MARKDOWN_PATH, Renderer};
use crate::web::{bearer, json, reads, ready, text};

/// The environment variable with the secret that chat services send.
pub const SECRET_VARIABLE: &str = "EXOCLAW_WEBHOOK_SECRET";
/// The headers that may have the secret, besides `Authorization: Bearer`.
const SECRET_HEADERS: [&str; 2] = ["x-webhook-secret", "x-telegram-bot-api-secret-token"];
/// Longest answer to a webhook, in bytes.
const MAX_ANSWER: usize = 4 * 1024 * 1024;
/// The channel of the page's sessions. The peer is the browser's own id.
const PAGE_CHANNEL: &str = "web";
const PAGE_ACCOUNT: &str = "browser";
/// Most past turns that the page shows.
const PAGE_TURNS: u64 = 100;

/// The gateway's HTTP service.
pub struct Site {
    engine: Arc<Engine>,
    auth: Auth,
    adapters: Tools,
    secret: Option<Auth>,
    renderer: Renderer,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("auth", &self.auth)
            .field("adapters", &self.adapters)
            .finish_non_exhaustive()
    }
}

impl Site {
    /// Creates a site without webhooks. `auth` is that of the gateway, and protects past
    /// conversations.
    #[must_use]
    pub fn new(engine: Arc<Engine>, auth: Auth) -> Self {
        Self {
            engine,
            auth,
            adapters: Tools::new(),
            secret: None,
            renderer: Renderer::default(),
        }
    }

    /// Sets the channel adapters, and the secret that chat services must send. Without a secret
    /// their webhooks are refused.
    #[must_use]
    pub fn with_webhooks(mut self, adapters: Tools, secret: Option<Auth>) -> Self {
        self.adapters = adapters;
        self.secret = secret;
        self
    }

    /// Answers a request.
    ///
    /// - `POST /webhook/{channel}`: the channel adapter of this name parses the body, the engine
    ///   answers the message like any chat, and the adapter formats the answer.
    /// - `POST /markdown`: Markdown for the page, as HTML; see [`Renderer::respond`].
    /// - `GET /history/{peer}`: the past turns of the page's session with this peer, as JSON.
    /// - `GET /ready`: 503 while this gateway counts as gone in its cluster. `/health` is 200 meanwhile: it
    ///   comes back by itself.
    /// - Anything else: [`page::respond`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the chat of a webhook; the tokens it has used are counted.
    pub async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let is_ready = self.engine.is_ready();
        let state = is_ready.then_some(()).ok_or("not in the cluster");
        if let Some(answer) = ready(&request, state) {
            return answer;
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if parts.method == Method::POST
            && let Some(channel) = path.strip_prefix("/webhook/")
            && let Some(adapter) = self.adapters.adapter(channel)
        {
            if let Some(refusal) = self.refusal(&parts.headers) {
                return refusal;
            }
            let answer = self.webhook(channel, adapter, &body).await;
            return answer.unwrap_or_else(|failure| failure);
        }
        if parts.method == Method::POST && path == MARKDOWN_PATH {
            return match self.stranger(&parts.headers) {
                Some(refusal) => refusal,
                None => self.renderer.respond(&parts.headers, body).await,
            };
        }
        match path.strip_prefix("/history/") {
            Some(peer) if reads(&parts.method) && is_page_session(peer) => {
                match self.stranger(&parts.headers) {
                    Some(refusal) => refusal,
                    None => self.history(peer).await,
                }
            }
            _ => page::respond(&parts.method, path),
        }
    }

    /// Returns the answer to a request without the right secret.
    fn refusal(&self, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let Some(secret) = &self.secret else {
            let why = format!("webhooks need a secret: set {SECRET_VARIABLE}");
            return Some(text(StatusCode::FORBIDDEN, why));
        };
        let named = SECRET_HEADERS.iter().filter_map(|name| headers.get(*name));
        let mut offered = named
            .filter_map(|value| value.to_str().ok())
            .chain(bearer(headers));
        let why = "the webhook secret is missing or wrong";
        let is_shown = offered.any(|offered| secret.check(offered));
        (!is_shown).then(|| text(StatusCode::UNAUTHORIZED, why))
    }

    async fn webhook(
        &self,
        channel: &str,
        adapter: &dyn ChannelAdapter,
        body: &[u8],
    ) -> Result<Response<Bytes>, Response<Bytes>> {
        let bad = |why: String| text(StatusCode::BAD_REQUEST, why);
        let incoming = adapter.parse_incoming(body).await;
        let incoming = incoming.map_err(|error| bad(format!("parse_incoming failed: {error}")))?;
        if incoming.content.is_empty() {
            return Err(bad("empty message content".to_owned()));
        }
        let answer = self.ask(channel, incoming).await?;
        let formatted = match adapter.format_outgoing(&answer).await {
            Ok(formatted) => formatted,
            Err(error) => {
                tracing::warn!(channel, error, "format_outgoing failed");
                return Ok(text(StatusCode::OK, answer));
            }
        };
        let Ok(Outgoing { url, body }) = rpc_core::json::from_slice(&formatted) else {
            return Ok(payload(formatted));
        };
        let body = body.unwrap_or_else(|| json!({ "text": answer }));
        match adapter.post(&url, body.to_string().into_bytes()).await {
            Ok(answer) => Ok(payload(answer)),
            Err(error @ PostError::Denied { .. }) => {
                let why = format!("proxy denied: {error} for adapter '{channel}'");
                Err(text(StatusCode::FORBIDDEN, why))
            }
            Err(error) => {
                let why = format!("proxy call failed: {error}");
                Err(text(StatusCode::BAD_GATEWAY, why))
            }
        }
    }

    /// Returns the engine's whole answer.
    async fn ask(&self, channel: &str, incoming: Incoming) -> Result<String, Response<Bytes>> {
        let mut chat = ChatSend::new(channel, incoming.account, incoming.content);
        chat.session.peer = Some(incoming.peer.into());
        chat.session.guild = incoming.guild.map(Into::into);
        chat.session.team = incoming.team.map(Into::into);
        let mut answer = Answer::default();
        let error = match self.engine.chat(&chat, &mut answer).await {
            Ok(()) => return Ok(answer.0),
            Err(ChatError::Refused(error) | ChatError::Failed(error)) => error.message().to_owned(),
            Err(_) => format!("the answer is longer than {MAX_ANSWER} bytes"),
        };
        // The answer is whole all the same, and a service that is refused would ask again.
        if error == NOT_STORED {
            return Ok(answer.0);
        }
        let error = if error.starts_with("provider error: ") {
            error
        } else {
            format!("agent error: {error}")
        };
        Err(text(StatusCode::INTERNAL_SERVER_ERROR, error))
    }

    /// Returns the answer to a request of the page without the gateway's token.
    fn stranger(&self, headers: &HeaderMap) -> Option<Response<Bytes>> {
        let mut offered = bearer(headers);
        let is_let_in = self.auth.is_open() || offered.any(|offered| self.auth.check(offered));
        (!is_let_in).then(|| text(StatusCode::UNAUTHORIZED, "the token is missing or wrong"))
    }

    async fn history(&self, peer: &str) -> Response<Bytes> {
        let mut session = SessionRef::new(PAGE_CHANNEL, PAGE_ACCOUNT);
        session.peer = Some(peer.into());
        match self.engine.history(&session, Some(PAGE_TURNS)).await {
            Ok(turns) => json(json!(turns).to_string()),
            Err(error) => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                error.message().to_owned(),
            ),
        }
    }
}

/// Returns whether the page has made this id, which cannot be guessed.
fn is_page_session(peer: &str) -> bool {
    peer.len() == 32 && peer.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns an adapter's answer with the matching content type.
fn payload(bytes: Vec<u8>) -> Response<Bytes> {
    let is_json = bytes.first().is_some_and(|first| b"{[".contains(first))
        && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
    if is_json {
        json(bytes)
    } else {
        text(StatusCode::OK, bytes)
    }
}

/// A reply that collects its text.
#[derive(Default)]
struct Answer(String);

#[async_trait]
impl Reply for Answer {
    async fn text(&mut self, text: &str) -> Result<(), Gone> {
        if self.0.len() + text.len() > MAX_ANSWER {
            return Err(Gone);
        }
        self.0.push_str(text);
        Ok(())
    }

    async fn event(&mut self, _: StreamEvent) -> Result<(), Gone> {
        Ok(())
    }
}
