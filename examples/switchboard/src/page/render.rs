//! [`Renderer`]: Markdown as HTML, for pages that show it while it grows.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};
use http::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::markdown::html;
use crate::web::{json, text};

/// The longest request, in bytes.
pub const MAX_BODY: usize = 512 * 1024;
/// Most texts in a request.
const MAX_TEXTS: usize = 256;
/// Most requests at a time.
const MAX_AT_ONCE: usize = 4;

/// What a text becomes; see [`crate::markdown::Html`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Html {
    /// The length of the part that no later text changes, in UTF-16 units, as scripts count.
    pub closed: usize,
    /// That part.
    pub done: String,
    /// The rest.
    pub open: String,
}

impl Html {
    fn of(text: &str) -> Self {
        let rendered = html(text);
        let closed = text.get(..rendered.closed).unwrap_or_default();
        Self {
            closed: closed.encode_utf16().count(),
            done: rendered.done,
            open: rendered.open,
        }
    }
}

/// Renders Markdown, a few requests at a time.
#[derive(Clone, Debug)]
pub struct Renderer {
    slots: Arc<Semaphore>,
}

impl Default for Renderer {
    fn default() -> Self {
        let slots = Arc::new(Semaphore::new(MAX_AT_ONCE));
        Self { slots }
    }
}

impl Renderer {
    /// Answers `POST /markdown`: a list of texts, as JSON, becomes a list of [`Html`]. The content type
    /// has to be JSON, which pages of other hosts cannot send without being asked first.
    ///
    /// # Cancel safety
    /// Dropping the future loses the answer only. What runs still takes its place until it ends.
    pub async fn respond(&self, headers: &HeaderMap, body: Bytes) -> Response<Bytes> {
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if kind.is_none_or(|kind| !kind.starts_with("application/json")) {
            let why = "the content type has to be application/json";
            return text(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
        }
        if body.len() > MAX_BODY {
            let why = format!("at most {MAX_BODY} bytes of Markdown at a time");
            return text(StatusCode::PAYLOAD_TOO_LARGE, why);
        }
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            let why = "too much is being rendered; try again";
            return text(StatusCode::SERVICE_UNAVAILABLE, why);
        };
        let rendered = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            let texts: Vec<String> = rpc_core::json::from_slice(&body).ok()?;
            let texts = Some(texts).filter(|texts| texts.len() <= MAX_TEXTS)?;
            let rendered: Vec<_> = texts.iter().map(|text| Html::of(text)).collect();
            serde_json::to_vec(&rendered).ok()
        });
        match rendered.await {
            Ok(Some(rendered)) => json(rendered),
            Ok(None) => {
                let why = format!("send a JSON list of at most {MAX_TEXTS} texts");
                text(StatusCode::BAD_REQUEST, why)
            }
            Err(error) => {
                tracing::error!(%error, "Markdown was not rendered");
                text(StatusCode::INTERNAL_SERVER_ERROR, "not rendered")
            }
        }
    }

    /// Takes the place of all that can be rendered at a time.
    #[cfg(test)]
    pub(super) fn take_all(&self) -> Option<tokio::sync::OwnedSemaphorePermit> {
        let all = u32::try_from(MAX_AT_ONCE).ok()?;
        Arc::clone(&self.slots).try_acquire_many_owned(all).ok()
    }
}
