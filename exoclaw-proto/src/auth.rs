//! Authentication: [`Auth`], and [`check_bind`] for the addresses that need no token.

use std::net::IpAddr;
use std::sync::Arc;

use rpc_core::Secret;
use subtle::ConstantTimeEq;

/// The longest token in bytes that [`Auth::token`] accepts.
pub const MAX_TOKEN_BYTES: usize = 1_024;

/// The error for a token that is invalid, or missing where it is required.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The token is empty: it would admit everyone.
    #[error("the auth token is empty")]
    EmptyToken,
    /// The token is longer than [`MAX_TOKEN_BYTES`].
    #[error("the auth token is longer than {MAX_TOKEN_BYTES} bytes")]
    TokenTooLong,
    /// Other machines could reach a gateway without a token.
    #[error(
        "Auth token required when binding to non-loopback address. \
         Set a token, or listen on 127.0.0.1."
    )]
    TokenRequired,
}

/// Whether a gateway requires a token, and which. Exoclaw specification, *Authentication*.
///
/// ```
/// use exoclaw_proto::auth::Auth;
///
/// let auth = Auth::token("s3cret")?;
/// assert!(auth.check("s3cret"));
/// assert!(!auth.check("s3cre"));
/// assert!(Auth::open().check("anything"));
/// # Ok::<(), exoclaw_proto::auth::AuthError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth(Option<Token>);

/// A token of at most [`MAX_TOKEN_BYTES`].
#[derive(Clone)]
struct Token(Arc<Secret>);

rpc_core::debug_fields!([] Token, _ => {});

impl Token {
    fn matches(&self, offered: &str) -> bool {
        let token = self.0.expose().as_bytes();
        let bytes = offered.bytes().enumerate();
        let same = bytes.map(|(at, byte)| token.get(at).unwrap_or(&0).ct_eq(&byte));
        let same_length = token.len().ct_eq(&offered.len());
        same.fold(same_length, |all, byte| all & byte).into()
    }
}

/// Compares in constant time, too.
impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.0.expose())
    }
}

impl Eq for Token {}

impl Auth {
    /// Requires no token: everyone who can connect is admitted. Only for loopback addresses, see
    /// [`check_bind`].
    #[must_use]
    pub const fn open() -> Self {
        Self(None)
    }

    /// Requires this token as the first frame of every connection.
    ///
    /// # Errors
    /// [`AuthError::EmptyToken`], or [`AuthError::TokenTooLong`] beyond [`MAX_TOKEN_BYTES`]: choose another token.
    pub fn token(token: impl Into<Secret>) -> Result<Self, AuthError> {
        let token = token.into();
        if token.expose().is_empty() {
            return Err(AuthError::EmptyToken);
        }
        if token.expose().len() > MAX_TOKEN_BYTES {
            return Err(AuthError::TokenTooLong);
        }
        Ok(Self(Some(Token(Arc::new(token)))))
    }

    /// Returns whether no token is required.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the token is so short that it can be guessed: it has fewer than 16 characters.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn is_guessable(&self) -> bool {
        let token = self.0.as_ref();
        token.is_some_and(|Token(token)| rpc_core::net::server::is_guessable(token.expose()))
    }

    /// Returns whether a peer with this token is admitted. An open gateway admits everyone.
    ///
    /// The time of the check depends only on the length of the offered token, which the peer knows
    /// anyway. So it reveals neither how many bytes were right nor the length of the token.
    #[must_use]
    pub fn check(&self, offered: &str) -> bool {
        let token = self.0.as_ref();
        token.is_none_or(|token| token.matches(offered))
    }
}

/// Returns whether a gateway with this `auth` may listen on `host`: with a token anywhere, without
/// one only on a loopback address.
///
/// # Errors
/// [`AuthError::TokenRequired`] if other machines could reach it: set a token, or listen on 127.0.0.1.
pub fn check_bind(host: &str, auth: &Auth) -> Result<(), AuthError> {
    if auth.is_open() && !is_loopback(host) {
        return Err(AuthError::TokenRequired);
    }
    Ok(())
}

/// Returns whether only this machine can reach `host`: an address in 127.0.0.0/8 (not just
/// 127.0.0.1), `::1` with or without brackets, an IPv4 loopback address written as IPv6
/// (`::ffff:127.0.0.1`), or the name `localhost`.
///
/// No name is resolved: every other name counts as reachable from other machines, and so do the
/// addresses for "all interfaces", `0.0.0.0` and `::`.
#[must_use]
fn is_loopback(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || bare
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_the_whole_token_is_admitted() {
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        for token in ["s3cret", "t", &longest] {
            let auth = Auth::token(token).unwrap();
            for offered in [
                "s3cret", "t3cret", "s3creT", "s3cre", "s3cret0", "", &longest,
            ] {
                assert_eq!(auth.check(offered), token == offered);
            }
        }
    }

    #[test]
    fn an_empty_token_is_refused() {
        assert_eq!(Auth::token(""), Err(AuthError::EmptyToken));
    }

    #[test]
    fn a_token_longer_than_the_limit_is_refused() {
        let longest = "x".repeat(MAX_TOKEN_BYTES);
        assert!(Auth::token(longest.as_str()).unwrap().check(&longest));
        assert_eq!(
            Auth::token(longest.clone() + "x"),
            Err(AuthError::TokenTooLong)
        );
        assert!(
            !Auth::token(longest.as_str())
                .unwrap()
                .check(&(longest + "x"))
        );
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let auth = Auth::token("s3cret").unwrap();
        assert!(!auth.is_open() && auth.check("s3cret"));
        for wrong in ["", "s3cre", "s3cret ", "s3cret\0", "S3cret", "t3cret"] {
            assert!(!auth.check(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn an_open_gateway_accepts_every_client() {
        assert!(Auth::open().is_open() && Auth::open().check(""));
        assert_ne!(Auth::open(), Auth::token("x").unwrap());
        assert_eq!(Auth::open(), Auth::open());
    }

    #[test]
    fn debug_output_shows_no_token() {
        let text = format!("{:?}", Auth::token("s3cret").unwrap());
        assert_eq!(text, "Auth(Some(Token { .. }))");
    }

    #[test]
    fn without_a_token_only_loopback_addresses_are_bound() {
        let token = Auth::token("x").unwrap();
        let loopback = [
            "127.0.0.1",
            "127.0.0.2",
            "127.255.255.254",
            "::1",
            "[::1]",
            "0:0:0:0:0:0:0:1",
            "::ffff:127.0.0.1",
            "::ffff:7f00:2",
            "localhost",
            "LocalHost",
        ];
        for host in loopback {
            assert_eq!(check_bind(host, &Auth::open()), Ok(()), "{host}");
            assert_eq!(check_bind(host, &token), Ok(()), "{host}");
        }
        let reachable = [
            "0.0.0.0",
            "::",
            "[::]",
            "::ffff:0.0.0.0",
            "128.0.0.1",
            "192.168.0.1",
            "::2",
            "",
            "[]",
            "[localhost]",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "127.1",
            "127.0.0.1:7200",
            " 127.0.0.1",
        ];
        for host in reachable {
            let refused = check_bind(host, &Auth::open());
            assert_eq!(refused, Err(AuthError::TokenRequired), "{host}");
            assert_eq!(check_bind(host, &token), Ok(()), "{host}");
        }
    }

    #[test]
    fn the_refusal_says_what_to_do() {
        let text = AuthError::TokenRequired.to_string();
        let start = "Auth token required when binding to non-loopback address. ";
        assert!(text.starts_with(start), "{text}");
    }

    proptest! {
        #[test]
        fn the_check_agrees_with_equality(token in "[ab\0é]{1,4}", offered in "[ab\0é]{0,4}") {
            let auth = Auth::token(token.as_str()).unwrap();
            prop_assert_eq!(auth.check(&offered), token == offered);
            prop_assert!(auth.check(&token));
            if let Ok(other) = Auth::token(offered.as_str()) {
                prop_assert_eq!(auth == other, token == offered);
            }
        }
    }
}
