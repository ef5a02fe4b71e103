//! Who decides which client gets a text: [`RouteRequest`] in, [`Choice`]s out.
//!
//! [`Keywords`] decides without a network, from the words of names, capabilities and descriptions.
//! Anything else implements `Router` (feature `tokio`), for example with a language model.
//!
//! ```
//! use smarthole_proto::frame::Registration;
//! use smarthole_proto::router::{Candidate, Keywords, RouteRequest};
//!
//! let notes = Registration::new("notes", "Keeps notes and shopping lists.");
//! let lights = Registration::new("lights", "Switches lamps on and off.");
//! let request = RouteRequest::new("put milk on the shopping list")
//!     .with_candidates([Candidate::from(&notes), Candidate::from(&lights)]);
//! let choices = Keywords::new().choose(&request);
//! assert_eq!(choices.len(), 1);
//! assert_eq!(choices[0].client, "notes");
//! assert_eq!(choices[0].reason.as_deref(), Some("\"shopping\" and \"list\" match what notes does"));
//! ```

mod error;
mod keywords;
mod words;

use std::sync::Arc;

use rpc_core::Str;

use crate::frame::{InputMethod, Registration};

pub use error::RouterError;
pub use keywords::Keywords;

/// A text that needs a client, and everything that helps to choose one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RouteRequest {
    /// What the user said, whole.
    pub text: Str,
    /// How the user said it.
    pub input_method: InputMethod,
    /// How sure the speech recognition is, from 0 to 1; for voice only.
    pub confidence: Option<f64>,
    /// Who may be chosen, in the order of registration.
    pub candidates: Vec<Candidate>,
    /// The names of those who may not: they rejected the message, or have it already.
    pub excluded: Vec<Str>,
    /// Who rejected the message so far and why, in that order.
    pub rejections: Vec<Rejection>,
}

/// A client that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Candidate {
    /// Its name.
    pub name: Str,
    /// What it does, in natural language.
    pub description: Str,
    /// Hints at what it can do; shared by all questions in which the client may be chosen.
    pub capabilities: Arc<[Str]>,
}

/// A client that did not take a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// Its name.
    pub client: Str,
    /// Its reason, or what stands for one: [`NO_REASON`](crate::limits::NO_REASON),
    /// [`RESPONSE_TIMEOUT_REASON`](crate::limits::RESPONSE_TIMEOUT_REASON).
    pub reason: Str,
}

/// A client that a router chose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Its name, one of the candidates'.
    pub client: Str,
    /// What the client gets instead of the user's text.
    pub text: Option<Str>,
    /// Why it was chosen; the client is told.
    pub reason: Option<Str>,
}

/// Decides who gets a text.
///
/// Called beside everything else, several times at once; it may take its time, up to the deadline
/// of whoever calls it. Dropping the future gives the question up.
///
/// ```
/// use async_trait::async_trait;
/// use smarthole_proto::router::{Choice, RouteRequest, Router, RouterError};
///
/// struct Newest;
///
/// #[async_trait]
/// impl Router for Newest {
///     async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
///         let newest = request.candidates.last();
///         Ok(newest.map(|client| Choice::new(client.name.clone())).into_iter().collect())
///     }
/// }
/// ```
#[cfg(feature = "tokio")]
#[async_trait::async_trait]
pub trait Router: Send + Sync + 'static {
    /// Chooses among the candidates. Nobody, one or several; names that are no candidates' and
    /// repeated ones are skipped.
    ///
    /// # Errors
    /// [`RouterError`] if there is no decision; the user is told.
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError>;
}

#[cfg(feature = "tokio")]
#[async_trait::async_trait]
impl Router for Keywords {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        Ok(self.choose(request))
    }
}

#[cfg(feature = "tokio")]
#[async_trait::async_trait]
impl<R: Router + ?Sized> Router for Arc<R> {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        (**self).route(request).await
    }
}

impl RouteRequest {
    /// A typed text without anybody to choose from.
    pub fn new(text: impl Into<Str>) -> Self {
        Self {
            text: text.into(),
            input_method: InputMethod::Text,
            confidence: None,
            candidates: Vec::new(),
            excluded: Vec::new(),
            rejections: Vec::new(),
        }
    }

    /// Sets [`input_method`](Self::input_method) and [`confidence`](Self::confidence).
    #[must_use]
    pub fn with_input_method(mut self, method: InputMethod, confidence: Option<f64>) -> Self {
        self.input_method = method;
        self.confidence = confidence;
        self
    }

    /// Sets [`candidates`](Self::candidates).
    #[must_use]
    pub fn with_candidates(mut self, candidates: impl IntoIterator<Item = Candidate>) -> Self {
        self.candidates = candidates.into_iter().collect();
        self
    }

    /// Sets [`rejections`](Self::rejections), and [`excluded`](Self::excluded) to their clients.
    #[must_use]
    pub fn with_rejections(mut self, rejections: impl IntoIterator<Item = Rejection>) -> Self {
        self.rejections = rejections.into_iter().collect();
        self.excluded = self.rejections.iter().map(|r| r.client.clone()).collect();
        self
    }
}

impl Candidate {
    /// A client of this name that does this.
    pub fn new(name: impl Into<Str>, description: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            capabilities: Arc::default(),
        }
    }

    /// Adds one of the [`capabilities`](Self::capabilities).
    #[must_use]
    pub fn with_capability(mut self, capability: impl Into<Str>) -> Self {
        let before = self.capabilities.iter().cloned();
        self.capabilities = before.chain([capability.into()]).collect();
        self
    }
}

impl From<&Registration> for Candidate {
    fn from(registration: &Registration) -> Self {
        Self {
            name: registration.name.clone(),
            description: registration.description.clone(),
            capabilities: registration.capabilities.iter().cloned().collect(),
        }
    }
}

impl Rejection {
    /// This client did not take the message, for this reason.
    pub fn new(client: impl Into<Str>, reason: impl Into<Str>) -> Self {
        Self {
            client: client.into(),
            reason: reason.into(),
        }
    }
}

impl Choice {
    /// This client gets the user's text.
    pub fn new(client: impl Into<Str>) -> Self {
        Self {
            client: client.into(),
            text: None,
            reason: None,
        }
    }

    /// Sets [`text`](Self::text).
    #[must_use]
    pub fn with_text(mut self, text: impl Into<Str>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Sets [`reason`](Self::reason).
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<Str>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}
