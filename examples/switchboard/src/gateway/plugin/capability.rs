//! The capabilities of plugins: `http:HOST` in the configuration.

use crate::gateway::tool::PluginError;

/// The hosts that a plugin may contact over HTTP, in lower case: a name, or `*.` and the domain above it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hosts(Vec<String>);

impl Hosts {
    /// Returns whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether this host of a URL is one of them.
    pub(super) fn allow(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.0
            .iter()
            .any(|allowed| match allowed.strip_prefix('*') {
                Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
                None => *allowed == host,
            })
    }
}

/// The capabilities of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Granted {
    pub(super) hosts: Hosts,
    /// The capabilities without effect.
    pub(super) without_effect: Vec<String>,
}

/// Parses capabilities: `http:HOST` with a name or an address, `http:*.HOST` for all subdomains;
/// `store:` and `host_function:` are known, but have no effect.
///
/// # Errors
/// [`PluginError::Capability`] for the first unknown one.
pub(super) fn parse(texts: &[String]) -> Result<Granted, PluginError> {
    let mut granted = Granted::default();
    for text in texts {
        let bad = |why| PluginError::Capability {
            capability: text.clone(),
            why,
        };
        match text.split_once(':') {
            Some(("http", host)) => {
                if !is_host(host.strip_prefix("*.").unwrap_or(host)) {
                    return Err(bad("a host is needed, without scheme, port and path"));
                }
                granted.hosts.0.push(host.to_ascii_lowercase());
            }
            Some(("store" | "host_function", what)) if !what.is_empty() => {
                granted.without_effect.push(text.clone());
            }
            _ => {
                return Err(bad(
                    "known are http:HOST, store:NAME and host_function:NAME",
                ));
            }
        }
    }
    Ok(granted)
}

/// Returns whether a text is a host as in a URL: a name, an IPv4 address, or an IPv6 address in
/// brackets.
fn is_host(text: &str) -> bool {
    if let Some(address) = text.strip_prefix('[') {
        let address = address.strip_suffix(']');
        return address.is_some_and(|a| a.parse::<std::net::Ipv6Addr>().is_ok());
    }
    let is_label = |label: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        !label.is_empty() && label.chars().all(fits)
    };
    text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(texts: &[&str]) -> Result<Granted, PluginError> {
        let texts: Vec<_> = texts.iter().map(ToString::to_string).collect();
        parse(&texts)
    }

    #[test]
    fn hosts_are_matched_whole() {
        let hosts = granted(&["http:api.example.com", "http:*.example.org", "http:[::1]"])
            .unwrap()
            .hosts;
        for host in [
            "api.example.com",
            "API.Example.COM",
            "a.b.example.org",
            "[::1]",
        ] {
            assert!(hosts.allow(host), "{host}");
        }
        for host in [
            "example.com",
            "x.api.example.com",
            "api.example.com.evil.net",
            "example.org",
            ".example.org",
            "badexample.org",
            "ü.example.com",
            "",
        ] {
            assert!(!hosts.allow(host), "{host}");
        }
        assert!(granted(&[]).unwrap().hosts.is_empty());
    }

    #[test]
    fn capabilities_without_effect_are_distinct_from_invalid_ones() {
        let granted_ = granted(&["store:notes", "http:localhost", "host_function:log"]).unwrap();
        assert_eq!(
            granted_.without_effect,
            ["store:notes", "host_function:log"]
        );
        assert!(granted_.hosts.allow("localhost"));
        for bad in [
            "",
            "http",
            "http:",
            "http:*",
            "http:*.",
            "http:*x.com",
            "http:https://example.com",
            "http:example.com/path",
            "http:example.com:80",
            "http:a..b",
            "http:[::1",
            "store:",
            "net:example.com",
            "HTTP:example.com",
        ] {
            let error = granted(&["http:ok", bad]).unwrap_err();
            assert!(
                matches!(error, PluginError::Capability { capability, .. } if capability == bad)
            );
        }
    }
}
