//! [`Site`]: the gateway's HTTP service: its page, the page's chats, and the webhooks of chat services.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::frame::{ChatSend, StreamEvent};
use exoclaw_proto::net::{AppError, Gone};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use rpc_core::net::Cancellation;
use rpc_core::net::server::{Body, is_read};
use serde::de::IgnoredAny;
use serde_json::json;

use super::engine::{Engine, NOT_STORED, Reply};
use super::page_chats::{Chats, is_id};
use super::tool::{ChannelAdapter, Incoming, Outgoing, PostError, Tools};
use crate::page::gateway;
use crate::web::{bearer, json, not_allowed, ready, text};

/// The environment variable with the secret that chat services send.
pub const SECRET_VARIABLE: &str = "EXOCLAW_WEBHOOK_SECRET";
/// The headers that may have the secret, besides `Authorization: Bearer`.
const SECRET_HEADERS: [&str; 2] = ["x-webhook-secret", "x-telegram-bot-api-secret-token"];
/// What the path of a chat begins with.
const CHATS: &str = "/chats/";
/// Where the page finds the models.
const MODELS: &str = "/models";
/// Where the page looks for words in chats.
const SEARCH: &str = "/search";
/// The parts of a chat.
const ANSWER: &str = "/answer";
const MEMORY: &str = "/memory";
/// Longest answer to a webhook, in bytes.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// The gateway's HTTP service.
pub struct Site {
    engine: Arc<Engine>,
    auth: Auth,
    adapters: Tools,
    secret: Option<Auth>,
    chats: Chats,
}

rpc_core::debug_fields!([] Site, this => { auth: this.auth, adapters: this.adapters });

impl Site {
    /// Creates a site. `auth` is that of the gateway, and protects the page's chats; `secret` is what chat
    /// services must send to the channel adapters among the tools. Without it their webhooks are refused.
    pub fn new(engine: Arc<Engine>, auth: Auth, adapters: Tools, secret: Option<Auth>) -> Self {
        Self {
            chats: Chats::new(Arc::clone(&engine)),
            engine,
            auth,
            adapters,
            secret,
        }
    }

    /// Answers a request that is not [refused](Self::refusal).
    ///
    /// - `POST /webhook/{channel}`: the channel adapter of this name parses the body, the engine
    ///   answers the message like any chat, and the adapter formats the answer.
    /// - `/chats/{id}`: a chat of the page. `GET` returns what was said and what happens, `POST` asks, `DELETE`
    ///   forgets it, `DELETE /chats/{id}/answer` stops its answer. `GET /chats/{id}/memory` returns what is known
    ///   from it, and `DELETE` forgets a relation of a subject.
    /// - `GET /models`: the model that answers, and those that the provider lists.
    /// - `POST /search`: which chats have some words in them.
    /// - `GET /ready`: 503 while this gateway counts as gone in its cluster. `/health` is 200 meanwhile: it
    ///   comes back by itself.
    /// - Anything else: [`gateway::respond`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the chat of a webhook; the tokens it has used are counted.
    pub async fn respond(&self, request: Request<Bytes>) -> Response<Body> {
        let is_ready = self.engine.is_ready();
        let state = is_ready.then_some(()).ok_or("not in the cluster");
        if let Some(answer) = ready(&request, state) {
            return answer.map(Body::from);
        }
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if let Some((channel, adapter)) = self.adapter(&parts) {
            let answer = self.webhook(channel, adapter, &body).await;
            return answer.unwrap_or_else(|failure| failure).map(Body::from);
        }
        match path.strip_prefix(CHATS) {
            Some(chat) => self.chat(&parts, chat, &body).await,
            None if path == MODELS && is_read(&parts.method) => {
                self.chats.models().await.map(Body::from)
            }
            None if path == SEARCH && parts.method == Method::POST => {
                self.chats.search(&body).await.map(Body::from)
            }
            None => gateway::respond(&parts.method, path).map(Body::from),
        }
    }

    /// Answers a request about a chat of the page. `path` begins with its id.
    async fn chat(&self, parts: &Parts, path: &str, body: &Bytes) -> Response<Body> {
        let Some((id, part)) = chat_of(path) else {
            return text(StatusCode::NOT_FOUND, "there is no such chat").map(Body::from);
        };
        let answer = match (&parts.method, part) {
            (&Method::GET, "") => {
                let stopping = parts.extensions.get::<Cancellation>().cloned();
                return self.chats.follow(id, stopping);
            }
            // Pages of other hosts cannot send this type without being asked first.
            (&Method::POST, "") if !is_json(&parts.headers) => {
                let why = "the content type has to be application/json";
                text(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
            }
            (&Method::POST, "") => self.chats.ask(id, body).await,
            (&Method::DELETE, "") => self.chats.delete(id).await,
            (&Method::DELETE, ANSWER) => self.chats.stop(id),
            (&Method::GET, MEMORY) => self.chats.memory(id).await,
            (&Method::DELETE, MEMORY) => self.chats.forget(id, body).await,
            (_, "") => not_allowed("GET, POST, DELETE"),
            (_, ANSWER) => not_allowed("DELETE"),
            _ => not_allowed("GET, DELETE"),
        };
        answer.map(Body::from)
    }

    /// Stops the answers to the page. Returns how many there were.
    ///
    /// # Cancel safety
    /// As for [`Chats::close`].
    pub async fn close(&self) -> usize {
        self.chats.close().await
    }

    /// Returns the answer to a request without the right token or secret, before its body is read.
    pub fn refusal(&self, parts: &Parts) -> Option<Response<Body>> {
        let refusal = match self.door(parts)? {
            Door::Webhook => self.without_secret(&parts.headers),
            Door::Chat => self.stranger(&parts.headers),
        };
        refusal.map(|refusal| refusal.map(Body::from))
    }

    /// Returns the name of the secret that a request needs, if it can be guessed.
    pub fn guessable(&self, parts: &Parts) -> Option<&'static str> {
        let (secret, name) = match self.door(parts)? {
            Door::Webhook => (self.secret.as_ref()?, SECRET_VARIABLE),
            // As for WebSockets.
            Door::Chat => (&self.auth, "token"),
        };
        secret.is_guessable().then_some(name)
    }

    /// Returns which secret a request needs.
    fn door(&self, parts: &Parts) -> Option<Door> {
        if self.adapter(parts).is_some() {
            return Some(Door::Webhook);
        }
        let path = parts.uri.path();
        let is_chat = path.strip_prefix(CHATS).and_then(chat_of).is_some();
        (is_chat || [MODELS, SEARCH].contains(&path)).then_some(Door::Chat)
    }

    /// Returns the channel of a webhook, and its adapter.
    fn adapter<'a>(&'a self, parts: &'a Parts) -> Option<(&'a str, &'a dyn ChannelAdapter)> {
        let channel = parts.uri.path().strip_prefix("/webhook/");
        let channel = channel.filter(|_| parts.method == Method::POST)?;
        Some((channel, self.adapters.adapter(channel)?))
    }

    fn without_secret(&self, headers: &HeaderMap) -> Option<Response<Bytes>> {
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
            Err(AppError::Refused(error) | AppError::Failed(error)) => error.message().to_owned(),
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
}

/// A door with a secret of its own.
enum Door {
    Webhook,
    Chat,
}

/// Splits the path of a chat behind [`CHATS`]: its id, and which part is meant.
fn chat_of(path: &str) -> Option<(&str, &str)> {
    let (id, part) = path.split_at_checked(32)?;
    (is_id(id) && ["", ANSWER, MEMORY].contains(&part)).then_some((id, part))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
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
    async fn event(&mut self, event: StreamEvent) -> Result<(), Gone> {
        let StreamEvent::Text(text) = event else {
            return Ok(());
        };
        if self.0.len() + text.len() > MAX_ANSWER {
            return Err(Gone);
        }
        self.0.push_str(&text);
        Ok(())
    }
}
