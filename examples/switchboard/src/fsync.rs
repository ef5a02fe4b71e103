//! [`FsyncArgs`]: when a server's file is on the disk, as an option and in configuration files.

use rpc_core::store::Fsync;

use crate::cli;

/// When what a server stores in its file is on the disk.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct FsyncArgs {
    /// When what is stored is on the disk: always (before it is acknowledged), after a time such as 1s, or never
    /// (when the system likes). A loss of power takes what is not; the end of the process takes nothing.
    /// Default: always.
    #[arg(long, value_name = "WHEN", value_parser = fsync, help_heading = "Storage")]
    pub(crate) fsync: Option<Fsync>,
}

/// Parses `always`, `never`, or a time like `1s` or `250ms`.
///
/// # Errors
/// A description of the mistake.
pub(crate) fn fsync(text: &str) -> Result<Fsync, String> {
    match text {
        "always" => Ok(Fsync::Always),
        "never" => Ok(Fsync::Never),
        time => match cli::timeout(time) {
            Ok(time) => Ok(Fsync::Every(time)),
            Err(_) => Err("write always, never, or a time like 1s or 250ms".to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn parses_words_and_times_above_0() {
        assert_eq!(fsync("always"), Ok(Fsync::Always));
        assert_eq!(fsync("never"), Ok(Fsync::Never));
        assert_eq!(fsync("250ms"), Ok(Fsync::Every(Duration::from_millis(250))));
        for text in ["", "0", "-1s", "sometimes", "Always"] {
            assert!(fsync(text).is_err(), "{text}");
        }
    }
}
