//! [`Violations`]: what the server refuses for lack of permission.

use std::future::pending;

use async_nats::ServerError;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::store::StoreError;
use crate::sync::Mutex;

/// How the server's text begins.
const VIOLATION: &str = "Permissions Violation";
/// How many are kept for a waiting caller, and how many are known as reported.
const MAX: usize = 32;

/// What the server refuses for lack of permission. It says so beside the request, which is never
/// answered.
pub(super) struct Violations {
    texts: broadcast::Sender<String>,
    /// How each text names the subjects of answers.
    inbox: String,
    /// What was reported already.
    reported: Mutex<Vec<String>>,
}

impl Violations {
    /// `inbox` is the prefix of the subjects of answers.
    pub(super) fn new(inbox: &str) -> Self {
        Self {
            texts: broadcast::Sender::new(MAX),
            inbox: format!("\"{inbox}."),
            reported: Mutex::default(),
        }
    }

    /// Takes an error that the server reports. Returns whether it is new, and has to be reported.
    pub(super) fn report(&self, error: &ServerError) -> bool {
        let text = error.to_string();
        if let ServerError::Other(text) = error
            && text.starts_with(VIOLATION)
        {
            // No one may wait for it.
            let _ = self.texts.send(text.clone());
        }
        let mut reported = self.reported.lock();
        let is_new = !reported.contains(&text);
        if is_new {
            reported.truncate(MAX - 1);
            reported.insert(0, text);
        }
        is_new
    }

    /// Waits for the answer to a request, or until the server refuses this subject, or the answer.
    pub(super) async fn or_denied<T>(
        &self,
        subject: &str,
        request: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let subject = format!("\"{subject}\"");
        let mut violations = self.texts.subscribe();
        let denied = async {
            loop {
                match violations.recv().await {
                    Ok(text) if text.contains(&subject) || text.contains(&self.inbox) => {
                        return text;
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => pending().await,
                }
            }
        };
        tokio::select! {
            answer = request => answer,
            message = denied => Err(StoreError::Denied { message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_reported_once() {
        let violations = Violations::new("p._inbox");
        let refusal = |subject: usize| {
            let text = format!("Permissions Violation for Publish to \"p.{subject}\"");
            violations.report(&ServerError::Other(text))
        };
        assert!(refusal(0));
        assert!(!refusal(0));
        for other in 1..=MAX {
            assert!(refusal(other));
            assert!(!refusal(other));
        }
        assert!(refusal(0), "long ago");
    }
}
