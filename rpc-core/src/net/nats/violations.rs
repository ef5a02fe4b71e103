//! [`Violations`]: what the server refuses for lack of permission.

use std::future::pending;
use std::sync::Arc;

use async_nats::ServerError;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::NatsError;

/// How the server's text begins.
const VIOLATION: &str = "Permissions Violation";
/// How many are kept for whoever waits.
const MAX: usize = 32;

/// What the server refuses for lack of permission. It says so beside the request, which is never
/// answered. Clones are the same.
#[derive(Clone)]
pub(super) struct Violations {
    texts: broadcast::Sender<Arc<str>>,
    /// How each text names the subjects of answers.
    inbox: Arc<str>,
}

impl Violations {
    /// `inbox` is the prefix of the subjects of answers.
    pub(super) fn new(inbox: &str) -> Self {
        Self {
            texts: broadcast::Sender::new(MAX),
            inbox: format!("\"{inbox}.").into(),
        }
    }

    pub(super) fn report(&self, error: &ServerError) {
        if let ServerError::Other(text) = error
            && text.starts_with(VIOLATION)
        {
            // Nobody may wait for it.
            let _ = self.texts.send(text.as_str().into());
        }
    }

    /// Waits for the answer to a request, or until the server refuses what has this name in its subject,
    /// or the answer.
    pub(super) async fn or_denied<T>(
        &self,
        name: &str,
        request: impl Future<Output = Result<T, NatsError>>,
    ) -> Result<T, NatsError> {
        let mut violations = self.texts.subscribe();
        let denied = async {
            loop {
                match violations.recv().await {
                    Ok(text) if text.contains(name) || text.contains(&*self.inbox) => return text,
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => pending().await,
                }
            }
        };
        tokio::select! {
            answer = request => answer,
            text = denied => Err(NatsError::Denied { message: text.as_ref().to_owned() }),
        }
    }
}
