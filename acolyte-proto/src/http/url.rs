//! The URLs of the endpoints: [`rpc_url`], [`stream_url`], [`status_url`].

use super::{RPC_PATH, STATUS_PATH, STREAM_PATH};

/// Returns the URL of the WebSocket for the URL of a server: `http` becomes `ws` and `https`
/// becomes `wss`, base path and query are kept, and a fragment is dropped.
#[must_use]
pub(crate) fn rpc_url(server: &str) -> String {
    endpoint(server, ["ws", "wss"], RPC_PATH)
}

/// Returns the URL of the event stream for the URL of a server or of its WebSocket, by the reverse
/// rule: `ws` becomes `http`.
#[must_use]
pub(crate) fn stream_url(server: &str) -> String {
    endpoint(server, ["http", "https"], STREAM_PATH)
}

/// Returns the URL of the status document, by the same rule.
#[must_use]
pub(crate) fn status_url(server: &str) -> String {
    endpoint(server, ["http", "https"], STATUS_PATH)
}

fn endpoint(server: &str, [plain, encrypted]: [&str; 2], path: &str) -> String {
    let server = server.split('#').next().unwrap_or_default();
    let (server, query) = server.split_at(server.find('?').unwrap_or(server.len()));
    let (scheme, rest) = server.split_once("://").unwrap_or(("", server));
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" | "ws" => plain,
        "https" | "wss" => encrypted,
        // The dialer reports what is wrong with it.
        _ => scheme,
    };
    let mut base = rest.trim_end_matches('/');
    for known in [RPC_PATH, STREAM_PATH, STATUS_PATH] {
        if let Some(shorter) = base.strip_suffix(known) {
            base = shorter.trim_end_matches('/');
            break;
        }
    }
    if scheme.is_empty() {
        return format!("{base}{path}{query}");
    }
    format!("{scheme}://{base}{path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_changes_and_the_base_path_stays() {
        for (given, rpc, stream) in [
            ("http://h:1", "ws://h:1/v1/rpc", "http://h:1/v1/chat/stream"),
            ("HTTPS://h", "wss://h/v1/rpc", "https://h/v1/chat/stream"),
            ("ws://h/", "ws://h/v1/rpc", "http://h/v1/chat/stream"),
            (
                "wss://h/a/b//",
                "wss://h/a/b/v1/rpc",
                "https://h/a/b/v1/chat/stream",
            ),
            ("ftp://h", "ftp://h/v1/rpc", "ftp://h/v1/chat/stream"),
            ("h:1", "h:1/v1/rpc", "h:1/v1/chat/stream"),
        ] {
            assert_eq!(rpc_url(given), rpc, "{given}");
            assert_eq!(stream_url(given), stream, "{given}");
        }
    }

    #[test]
    fn a_path_that_is_already_present_is_not_added_again() {
        for given in [
            "http://h/a/v1/rpc",
            "ws://h/a/v1/rpc/",
            "http://h/a/v1/chat/stream",
            "http://h/a/v1/status",
        ] {
            assert_eq!(rpc_url(given), "ws://h/a/v1/rpc", "{given}");
            assert_eq!(status_url(given), "http://h/a/v1/status", "{given}");
        }
        assert_eq!(rpc_url("http://h/v1/rpcs"), "ws://h/v1/rpcs/v1/rpc");
    }

    #[test]
    fn a_query_stays_and_a_fragment_is_dropped() {
        for (given, rpc) in [
            ("http://h?a=b/", "ws://h/v1/rpc?a=b/"),
            ("ws://h/v1/rpc?a", "ws://h/v1/rpc?a"),
            ("http://h/#x", "ws://h/v1/rpc"),
            ("http://h/?a#b", "ws://h/v1/rpc?a"),
        ] {
            assert_eq!(rpc_url(given), rpc, "{given}");
        }
    }
}
