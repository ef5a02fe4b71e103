//! Notifications on the desktop, not too many at once. Needs the feature `desktop`.

use switchboard::cli::Failure;

/// A notification of a client.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "desktop"),
    expect(dead_code, reason = "there is no desktop to show it on")
)]
pub(crate) struct Shown {
    pub(crate) title: String,
    pub(crate) body: String,
    pub(crate) priority: smarthole_proto::frame::Priority,
}

pub(crate) use imp::{Desktop, open};

#[cfg(feature = "desktop")]
mod imp {
    use std::future::pending;
    use std::time::Instant;

    use notify_rust::{Notification, Urgency};
    use smarthole_proto::frame::Priority;
    use switchboard::cli::complain;
    use switchboard::router::Throttle;
    use switchboard::screen::printable;
    use tokio::sync::mpsc;

    use super::{Failure, Shown};

    /// Notifications that may be on their way to the throttle, which drops the oldest.
    const WAITING: usize = 64;

    /// Shows notifications in a task of its own.
    pub(crate) struct Desktop {
        sender: mpsc::Sender<Shown>,
    }

    pub(crate) fn open() -> Result<Desktop, Failure> {
        let (sender, receiver) = mpsc::channel(WAITING);
        tokio::spawn(run(receiver));
        Ok(Desktop { sender })
    }

    impl Desktop {
        /// Shows it soon, or never if there are too many.
        pub(crate) fn show(&self, shown: Shown) {
            if self.sender.try_send(shown).is_err() {
                tracing::warn!("a notification was dropped: there are too many");
            }
        }
    }

    async fn run(mut receiver: mpsc::Receiver<Shown>) {
        let mut throttle = Throttle::default();
        let mut works = true;
        loop {
            let wait = throttle.wait(Instant::now());
            let due = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                shown = receiver.recv() => match shown {
                    Some(shown) => {
                        if throttle.push(shown).is_some() {
                            tracing::warn!("a notification was dropped: there are too many");
                        }
                    }
                    None => return,
                },
                () = due => {
                    if let Some(shown) = throttle.pop(Instant::now()) {
                        let shown = show(&shown).await;
                        // Once is enough, for as long as it goes on.
                        if works && let Err(error) = &shown {
                            let error = error.to_string();
                            complain(format_args!("warning: no notification: {}", printable(&error)));
                        }
                        works = shown.is_ok();
                    }
                }
            }
        }
    }

    async fn show(shown: &Shown) -> notify_rust::error::Result<()> {
        let mut notification = Notification::new();
        notification
            .appname("router")
            .summary(&printable(&shown.title))
            .body(&escape(&shown.body));
        #[cfg(all(unix, not(target_os = "macos")))]
        notification.urgency(match shown.priority {
            Priority::Low => Urgency::Low,
            Priority::Normal => Urgency::Normal,
            Priority::High => Urgency::Critical,
        });
        notification.show_async().await.map(drop)
    }

    /// A body may hold markup, which a client is not asked for.
    fn escape(text: &str) -> String {
        let text = switchboard::screen::printable_lines(text);
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    }
}

#[cfg(not(feature = "desktop"))]
mod imp {
    use super::{Failure, Shown};

    /// Nothing: this build has no desktop.
    pub(crate) enum Desktop {}

    pub(crate) fn open() -> Result<Desktop, Failure> {
        Err(Failure::usage(
            "--desktop: this build cannot show notifications; build it with '--features desktop'",
        ))
    }

    impl Desktop {
        pub(crate) fn show(&self, _: Shown) {
            match *self {}
        }
    }
}
