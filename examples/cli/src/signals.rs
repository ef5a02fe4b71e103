//! [`Signals`]: the signals that end a server.

use std::pin::{Pin, pin};

use futures_util::FutureExt as _;
use rpc_core::net::DrainReport;

use super::{Failure, complain, end_signal, second_signal};

/// The signals that end a program: the first one asks for a graceful end, the second one forces it.
pub struct Signals {
    first: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whether the first one has already arrived.
    is_asked: bool,
}

rpc_core::debug_fields!([] Signals, this => { is_asked: this.is_asked });

impl Signals {
    /// Starts listening. Call it before announcing the server, so that no signal is missed.
    #[must_use]
    pub fn listen() -> Self {
        Self {
            first: Box::pin(end_signal()),
            is_asked: false,
        }
    }

    /// Waits for the first signal.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn asked(&mut self) {
        if !self.is_asked {
            self.first.as_mut().await;
            self.is_asked = true;
        }
    }

    /// Waits for `work`, after the first signal or without one, unless a second one arrives.
    ///
    /// # Errors
    /// [`Failure`] if the second signal arrived.
    ///
    /// # Cancel safety
    /// Dropping the future drops `work`.
    pub async fn finish<R>(self, work: impl Future<Output = R>) -> Result<R, Failure> {
        let cut = || Failure::aborted_with("ended before everything was finished");
        // Only now: it would have heard the first signal too.
        let second = second_signal();
        tokio::select! {
            done = work => Ok(done),
            () = second => Err(cut()),
        }
    }

    /// Serves until the first signal, or until the server ends by itself. After the signal, `drain`
    /// finishes the work in progress, unless a second signal arrives.
    ///
    /// # Errors
    /// [`Failure`] if some work was not finished, or the server panicked.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the server running.
    pub async fn serve(
        mut self,
        serving: impl Future<Output = DrainReport> + Send + 'static,
        drain: impl Future<Output = DrainReport>,
    ) -> Result<(), Failure> {
        ready();
        let mut serving = tokio::spawn(serving);
        tokio::select! {
            // A signal that came before there was anything to serve is not lost.
            biased;
            () = self.asked() => {}
            report = &mut serving => return ended(report.map_err(Failure::new)?),
        }
        let drain = async {
            let mut drain = pin!(drain);
            // Begun before the message: from then on no client is accepted.
            let done = drain.as_mut().now_or_never();
            complain("finishing the work in progress; Ctrl-C again ends at once");
            match done {
                Some(report) => report,
                None => drain.await,
            }
        };
        let report = self.finish(drain).await?;
        serving.await.map_err(Failure::new)?;
        ended(report)
    }
}

/// Tells systemd that the server serves (`Type=notify`), and then that it lives (`WatchdogSec=`), if it wants to know.
pub fn ready() {
    #[cfg(unix)]
    if let Err(error) = notify("READY=1\n") {
        complain(format_args!("warning: systemd (NOTIFY_SOCKET): {error}"));
    } else if let Some(limit) = sd_notify::watchdog_enabled() {
        tokio::spawn(async move {
            while notify("WATCHDOG=1\n").is_ok() {
                tokio::time::sleep(limit / 2).await;
            }
        });
    }
}

/// Sends the service manager a change of state, if there is one, at a path or a name that is in no folder.
#[cfg(unix)]
fn notify(state: &str) -> std::io::Result<()> {
    use std::os::unix::net::UnixDatagram;

    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(());
    };
    let socket = UnixDatagram::unbound()?;
    #[cfg(target_os = "linux")]
    if let Some(name) = address.as_encoded_bytes().strip_prefix(b"@") {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
        return socket.send_to_addr(state.as_bytes(), &address).map(|_| ());
    }
    socket.send_to(state.as_bytes(), address).map(|_| ())
}

fn ended(report: DrainReport) -> Result<(), Failure> {
    let (finished, aborted) = (report.finished, report.aborted);
    complain(format_args!(
        "ended: {finished} connections closed, {aborted} cut"
    ));
    Ok(())
}
