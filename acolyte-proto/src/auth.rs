//! Access to a server: [`ApiKey`] and [`Auth`]. Acolyte specification, *Authentication*.

use std::sync::Arc;

use rpc_core::{Refused, Secret, constant_time_eq};

/// The subprotocol that the client offers first. It is not a secret, and a server selects the first
/// one offered, so the key does not come back in the response.
#[cfg(any(feature = "ws", test))]
pub(crate) const SUBPROTOCOL: &str = "acolyte.v1";
/// The prefix of the subprotocol that carries the key.
#[cfg(any(feature = "ws", test))]
pub(crate) const BEARER_SUBPROTOCOL: &str = "bearer.";
/// The prefix of the `Authorization` header. Upper and lower case matter.
#[cfg(any(feature = "ws", test))]
pub(crate) const BEARER_SCHEME: &str = "Bearer ";
/// The length of the longest key, in bytes.
const MAX_KEY_BYTES: usize = 1_024;

/// An API key. Cheap to clone; never printed.
#[derive(Clone)]
pub struct ApiKey(Arc<Secret>);

impl ApiKey {
    /// Creates a key, without the white space around `key`.
    ///
    /// # Errors
    /// [`Refused::Invalid`]: it is empty, too long, or holds a control character.
    pub fn new(key: impl Into<Secret>) -> Result<Self, Refused> {
        let key = key.into();
        let text = key.expose().trim();
        if text.is_empty() {
            return Err(invalid("it is empty"));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid("it holds a control character"));
        }
        if text.len() > MAX_KEY_BYTES {
            return Err(invalid("it is longer than 1,024 bytes"));
        }
        Ok(Self(Arc::new(text.into())))
    }

    /// Returns whether this is the key, in time that tells nothing of it.
    #[must_use]
    pub(crate) fn matches(&self, offered: &str) -> bool {
        constant_time_eq(self.text().as_bytes(), offered.as_bytes())
    }

    fn text(&self) -> &str {
        self.0.expose()
    }
}

rpc_core::debug_fields!([] ApiKey, _ => {});

/// Compares in constant time, too.
impl PartialEq for ApiKey {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.text())
    }
}

impl Eq for ApiKey {}

/// The credentials that a client sends when it connects.
#[cfg(any(feature = "ws", test))]
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The subprotocols to offer, in order; `acolyte.v1` comes first. Empty without a key,
    /// because a server then need not select one.
    pub(crate) subprotocols: Vec<Secret>,
    /// The value of an `Authorization` header to send.
    pub(crate) authorization: Option<Secret>,
}

#[cfg(any(feature = "ws", test))]
impl Offer {
    /// Returns the offer for a WebSocket: the key in a subprotocol, as the specification requires,
    /// or in the header if it is not a token of HTTP.
    pub(crate) fn for_websocket(key: Option<&ApiKey>) -> Self {
        // A subprotocol is a `token` of RFC 7230. Most padded base64 does not qualify.
        let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
        match key {
            Some(key) if key.text().bytes().all(is_token) => Self {
                subprotocols: vec![
                    Secret::from(SUBPROTOCOL),
                    Secret::new(format!("{BEARER_SUBPROTOCOL}{}", key.text())),
                ],
                authorization: None,
            },
            key => Self::for_http(key),
        }
    }

    /// Returns the offer for an HTTP endpoint: the header.
    pub(crate) fn for_http(key: Option<&ApiKey>) -> Self {
        let header = |key: &ApiKey| Secret::new(format!("{BEARER_SCHEME}{}", key.text()));
        Self {
            subprotocols: Vec::new(),
            authorization: key.map(header),
        }
    }
}

/// The credentials in the headers of a request. A key is accepted in either header on both
/// transports.
#[cfg(any(feature = "server", test))]
#[derive(Default)]
pub(crate) struct Credentials<'a> {
    keys: Vec<&'a str>,
    first: Option<&'a str>,
}

#[cfg(any(feature = "server", test))]
impl<'a> Credentials<'a> {
    /// Adds the value of an `Authorization` header. The scheme must be exactly `Bearer`.
    pub(crate) fn add_authorization(&mut self, value: &'a str) {
        self.keys.extend(value.strip_prefix(BEARER_SCHEME));
    }

    /// Adds the value of a `Sec-WebSocket-Protocol` header. The prefix must be exactly `bearer.`.
    pub(crate) fn add_subprotocols(&mut self, value: &'a str) {
        for name in value.split(',').map(str::trim) {
            if name.is_empty() {
                continue;
            }
            self.first.get_or_insert(name);
            self.keys.extend(name.strip_prefix(BEARER_SUBPROTOCOL));
        }
    }

    /// Returns the subprotocol to select for an upgrade: the first one offered, whatever it is. A
    /// client that offers one fails if the server selects none, or one that it did not offer.
    pub(crate) const fn echo(&self) -> Option<&'a str> {
        self.first
    }
}

/// The key that a server requires, if any.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Auth(Option<ApiKey>);

impl Auth {
    /// Requires no key: everyone who can connect is admitted. For loopback addresses only; a server
    /// refuses to listen on another one.
    #[must_use]
    pub const fn open() -> Self {
        Self(None)
    }

    /// Requires this key.
    #[must_use]
    pub const fn key(key: ApiKey) -> Self {
        Self(Some(key))
    }

    /// Returns whether no key is required.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.0.is_none()
    }

    /// Returns whether the key is so short that it can be guessed: it has fewer than 16 characters.
    #[must_use]
    #[cfg(feature = "server")]
    pub fn is_guessable(&self) -> bool {
        let key = self.0.as_ref();
        key.is_some_and(|key| rpc_core::net::server::is_guessable(key.text()))
    }

    /// Returns whether these credentials are accepted. An open server accepts any. Every key in
    /// them is compared, in constant time.
    #[cfg(any(feature = "server", test))]
    pub(crate) fn check(&self, shown: &Credentials<'_>) -> bool {
        let Some(key) = &self.0 else {
            return true;
        };
        let fits = |fits, offered: &&str| fits | key.matches(offered);
        shown.keys.iter().fold(false, fits)
    }
}

fn invalid(why: &str) -> Refused {
    Refused::invalid("API key", why)
}

/// Checks whether a server with this `auth` may listen on `address`: with a key on any address,
/// without one on a loopback address only.
///
/// # Errors
/// [`Refused::Invalid`]: a key is needed.
#[cfg(any(feature = "server", test))]
pub(crate) fn check_bind(address: std::net::IpAddr, auth: &Auth) -> Result<(), Refused> {
    if auth.is_open() && !address.to_canonical().is_loopback() {
        let why = "it is needed to listen on an address that other machines can reach; \
                   set one, or listen on 127.0.0.1";
        return Err(invalid(why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> ApiKey {
        ApiKey::new(text).unwrap()
    }

    fn exposed(secrets: &[Secret]) -> Vec<&str> {
        secrets
            .iter()
            .map(|secret| secret.expose().as_str())
            .collect()
    }

    #[test]
    fn invalid_keys_are_refused_early() {
        assert_eq!(ApiKey::new(" \n"), Err(invalid("it is empty")));
        assert_eq!(
            ApiKey::new("a\nb"),
            Err(invalid("it holds a control character"))
        );
        let max = MAX_KEY_BYTES;
        assert!(ApiKey::new("x".repeat(max)).is_ok());
        assert!(ApiKey::new("x".repeat(max + 1)).is_err());
    }

    #[test]
    fn a_key_that_is_a_valid_token_is_sent_as_the_second_subprotocol() {
        let offer = Offer::for_websocket(Some(&key("s3cret")));
        assert_eq!(
            exposed(&offer.subprotocols),
            ["acolyte.v1", "bearer.s3cret"]
        );
        assert_eq!(offer.authorization, None);
    }

    #[test]
    fn a_key_that_is_not_a_valid_token_is_sent_in_a_header() {
        for text in ["a/b", "YQ==", "a b", "a,b", "clé"] {
            let offer = Offer::for_websocket(Some(&key(text)));
            assert!(offer.subprotocols.is_empty());
            let header = offer.authorization.unwrap();
            assert_eq!(header.expose(), &format!("Bearer {text}"));
        }
    }

    #[test]
    fn without_a_key_no_subprotocol_is_offered() {
        assert_eq!(Offer::for_websocket(None), Offer::default());
        assert_eq!(Offer::for_http(None), Offer::default());
    }

    #[test]
    fn header_and_subprotocol_each_authenticate_and_compare_exactly() {
        let auth = Auth::key(key("k"));
        let header = |value| {
            let mut shown = Credentials::default();
            shown.add_authorization(value);
            auth.check(&shown)
        };
        let protocols = |value| {
            let mut shown = Credentials::default();
            shown.add_subprotocols(value);
            auth.check(&shown)
        };
        assert!(header("Bearer k"));
        for wrong in ["bearer k", "Bearer  k", "Bearer", "Bearer ", "k", "Basic k"] {
            assert!(!header(wrong), "{wrong:?}");
        }
        for right in [
            "bearer.k",
            "acolyte.v1,bearer.k",
            "bearer.x , bearer.k",
            "bearer.k, bearer.x",
        ] {
            assert!(protocols(right), "{right:?}");
        }
        for wrong in ["", "Bearer.k", "bearer.", "bearer.kk", "k", "acolyte.v1"] {
            assert!(!protocols(wrong), "{wrong:?}");
        }
        assert!(!auth.check(&Credentials::default()));
        assert!(Auth::open().check(&Credentials::default()));
    }

    #[test]
    fn the_first_offered_subprotocol_is_echoed_whatever_it_is() {
        let mut shown = Credentials::default();
        assert_eq!(shown.echo(), None);
        shown.add_subprotocols(" , ");
        assert_eq!(shown.echo(), None);
        shown.add_subprotocols("bearer.k, x");
        shown.add_subprotocols("y");
        assert_eq!(shown.echo(), Some("bearer.k"));
    }

    #[test]
    fn nothing_prints_a_key() {
        let offer = Offer::for_websocket(Some(&key("s3cret")));
        let auth = Auth::key(key("s3cret"));
        let text = format!("{offer:?} {auth:?}");
        assert!(!text.contains("s3cret"), "{text}");
    }

    #[test]
    fn without_a_key_only_loopback_addresses_are_bound() {
        let with_key = Auth::key(key("x"));
        for (address, is_loopback) in [
            ("127.0.0.1", true),
            ("127.0.0.2", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.168.0.1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(check_bind(address, &Auth::open()).is_ok(), is_loopback);
            assert_eq!(check_bind(address, &with_key), Ok(()));
        }
    }

    proptest! {
        #[test]
        fn the_check_agrees_with_equality(right in "[ab/é]{1,4}", offered in "[ab/\0é]{0,4}") {
            let right_key = key(&right);
            prop_assert_eq!(right_key.matches(&offered), right == offered);
            if let Ok(other) = ApiKey::new(offered.as_str()) {
                prop_assert_eq!(right_key == other, right == offered);
            }
        }
    }
}
