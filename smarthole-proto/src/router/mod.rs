//! Chooses the clients for a text: [`RouteRequest`] in, [`Choice`]s out.
//!
//! [`Keywords`] decides without a network, from the words of names, capabilities and descriptions.
//! Anything else implements [`Router`], for example with a language model.
//!
//! ```
//! use smarthole_proto::frame::Registration;
//! use smarthole_proto::router::{Candidate, Keywords, RouteRequest};
//!
//! let notes = Registration::new("notes", "Keeps notes and shopping lists.");
//! let lights = Registration::new("lights", "Switches lamps on and off.");
//! let request = RouteRequest {
//!     candidates: vec![Candidate::of(&notes), Candidate::of(&lights)],
//!     ..RouteRequest::new("put milk on the shopping list")
//! };
//! let choices = Keywords::new().choose(&request);
//! assert_eq!(choices.len(), 1);
//! assert_eq!(choices[0].client, "notes");
//! assert_eq!(choices[0].reason.as_deref(), Some("\"shopping\" and \"list\" match what notes does"));
//! ```

mod error;
mod keywords;
mod words;

use std::future::Future;
use std::sync::Arc;

use rpc_core::Str;

use crate::frame::{InputMethod, Registration};

pub use error::RouterError;
pub use keywords::Keywords;

/// A text that needs a client, and the information to choose one.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteRequest {
    /// The user's whole text.
    pub text: Str,
    /// How the user entered it.
    pub input_method: InputMethod,
    /// The confidence of the speech recognition, from 0 to 1; for voice only.
    pub confidence: Option<f64>,
    /// The clients that may be chosen, in the order of registration.
    pub candidates: Vec<Candidate>,
    /// The names of clients that may not be chosen: they rejected the message, or have it already.
    pub excluded: Vec<Str>,
    /// The rejections so far, in order.
    pub rejections: Vec<Rejection>,
}

/// A client that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub name: Str,
    /// The client's purpose, in natural language.
    pub description: Str,
    /// Hints at what it can do; shared by all questions with this candidate.
    pub capabilities: Arc<[Str]>,
}

/// A client's rejection of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// Its name.
    pub client: Str,
    /// Its reason, or the one recorded instead: `No reason provided`, `Response timeout`.
    pub reason: Str,
}

/// A client that a router chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The name of one of the candidates.
    pub client: Str,
    /// The text for the client, instead of the user's.
    pub text: Option<Str>,
    /// Why it was chosen; sent to the client.
    pub reason: Option<Str>,
}

/// Chooses the clients for a text: implement it as `async fn`.
///
/// Several calls may run at once, beside everything else. A call may take its time, up to the
/// caller's deadline. Dropping the future cancels the question.
///
/// ```
/// use smarthole_proto::router::{Choice, RouteRequest, Router, RouterError};
///
/// struct Newest;
///
/// impl Router for Newest {
///     async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
///         let newest = request.candidates.last();
///         Ok(newest.map(|client| Choice::new(client.name.clone())).into_iter().collect())
///     }
/// }
/// ```
pub trait Router: Send + Sync + 'static {
    /// Chooses no, one or several candidates. Names that are not candidates and repeated names are
    /// skipped.
    ///
    /// # Errors
    /// [`RouterError`] if there is no decision; it is reported to the user.
    fn route(
        &self,
        request: &RouteRequest,
    ) -> impl Future<Output = Result<Vec<Choice>, RouterError>> + Send;
}

#[cfg(feature = "tokio")]
rpc_core::dynamic! {
    /// Any [`Router`]: for a program that chooses one when it starts.
    pub struct DynRouter(any_router): Router {
        async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError>;
    }
}

impl Router for Keywords {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        Ok(self.choose(request))
    }
}

impl RouteRequest {
    /// Creates a request for a typed text, without candidates.
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
}

impl Candidate {
    /// Creates a candidate with this name and description.
    pub fn new(name: impl Into<Str>, description: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            capabilities: Arc::default(),
        }
    }

    /// Returns the candidate that this registration makes.
    #[must_use]
    pub fn of(registration: &Registration) -> Self {
        Self {
            name: registration.name.clone(),
            description: registration.description.clone(),
            capabilities: registration.capabilities.iter().cloned().collect(),
        }
    }
}

impl Rejection {
    /// Creates a rejection by this client, with this reason.
    pub fn new(client: impl Into<Str>, reason: impl Into<Str>) -> Self {
        Self {
            client: client.into(),
            reason: reason.into(),
        }
    }
}

impl Choice {
    /// Chooses this client, with the user's text.
    pub fn new(client: impl Into<Str>) -> Self {
        Self {
            client: client.into(),
            text: None,
            reason: None,
        }
    }
}
