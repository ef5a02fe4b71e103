//! [`Verifier`]: finds the signer of a frame. ConnectOnion specification, *Authentication*.

use std::hash::{BuildHasher, RandomState};

use ed25519_dalek::VerifyingKey;
use rpc_core::Limits;

use super::{Address, AuthError, Canonical, Payload, Signature};
use crate::auth::AddressList;
use crate::frame::Signed;
use crate::limits::{SIGNATURE_WINDOW, of_server};

/// Members that only one kind of frame has, for payloads without a type.
#[cfg(feature = "tokio")]
const MEMBERS: [(&str, &str); 4] = [
    ("prompt", "INPUT"),
    ("delete", "DELETE"),
    ("client_id", "ADMIN_"),
    ("admin_id", "ADMIN_"),
];

/// A frame whose sender is verified.
#[derive(Debug)]
#[non_exhaustive]
pub struct Verified<'a> {
    /// The signer.
    pub address: Address,
    /// The signed payload. Read prompts and invite codes here: the frame's other members are not
    /// signed.
    pub payload: Payload<'a>,
    /// The payload's time, in seconds since 1970.
    pub timestamp: f64,
    /// The signature.
    pub signature: Signature,
}

rpc_core::config! {
    /// A verifier of signed frames.
    ///
    /// The checks and their order are those of the known hosts: presence of payload and signature,
    /// the blacklist, `from`, `signature`, `timestamp`, its age, `to`, and the signature itself. It
    /// is checked strictly: no key and no half of a signature that would fit several payloads, no
    /// second spelling of a signature. The documentation of [`auth`](super) lists the differences.
    ///
    /// A signature counts any number of times until it expires, unless
    /// `AccessControl::with_used_signatures` remembers it.
    #[derive(Clone, Debug)]
    pub struct Verifier {
        /// The host's own address: a payload with another `to` is refused. Default `None`: any
        /// recipient is accepted.
        pub recipient: Option<Address> = None,
        /// Whether a payload without `to` is refused as well, if there is a recipient. Default
        /// `false`. A payload without `to` can be used at every host.
        pub require_to: bool = false,
        /// The addresses that are refused before any other check. Default none.
        pub blacklist: AddressList = AddressList::default(),
        /// The bounds of a payload. Default: those of [`canonical_json`](super::canonical_json).
        pub limits: Limits = of_server(),
    }
}

#[cfg(feature = "tokio")]
impl Verified<'_> {
    /// Checks that this was signed for a frame of this type. Not every client signs the type; without it, a
    /// payload belongs to the kind of frame that alone has its members.
    pub(crate) fn check_type(&self, name: &str) -> Result<(), AuthError> {
        let has = |member| self.payload.get(member).is_some();
        let is_same = match self.payload.get("type").filter(|it| !it.is_null()) {
            Some(signed) => signed.as_str().as_deref() == Some(name),
            None => MEMBERS
                .iter()
                .all(|(member, kind)| !has(*member) || name.starts_with(kind)),
        };
        is_same.then_some(()).ok_or(AuthError::WrongCommand)
    }
}

impl Verifier {
    /// Verifies a frame and returns its signer. `now` is in seconds since 1970: see
    /// [`unix_seconds`](super::unix_seconds).
    ///
    /// # Errors
    /// [`AuthError`], the reply to the peer. [`AuthError::SignedRequestRequired`] is an unsigned
    /// frame, which some hosts allow.
    pub fn verify<'a>(&self, signed: &'a Signed, now: f64) -> Result<Verified<'a>, AuthError> {
        self.check(signed, now, self.require_to)
    }

    /// Like [`verify`](Self::verify), for an `ONBOARD_SUBMIT`: known clients name no recipient there,
    /// so `to` is never required.
    ///
    /// # Errors
    /// [`AuthError`], the reply to the peer.
    pub fn verify_onboarding<'a>(
        &self,
        signed: &'a Signed,
        now: f64,
    ) -> Result<Verified<'a>, AuthError> {
        self.check(signed, now, false)
    }

    fn check<'a>(
        &self,
        signed: &'a Signed,
        now: f64,
        require_to: bool,
    ) -> Result<Verified<'a>, AuthError> {
        let (Some(payload), Some(signature)) = (&signed.payload, &signed.signature) else {
            return Err(AuthError::SignedRequestRequired);
        };
        let from = signed.from.as_deref().unwrap_or_default();
        // What is not an address at all fails as late as at the known hosts: with its signature.
        let address = Address::parse(from).ok();
        if address.is_some_and(|address| self.blacklist.contains(&address)) {
            return Err(AuthError::Blacklisted);
        }
        if from.is_empty() {
            return Err(AuthError::FromRequired);
        }
        if signature.is_empty() {
            return Err(AuthError::SignatureRequired);
        }
        let payload = Payload::parse(payload.get(), &self.limits);
        let payload = payload.map_err(AuthError::InvalidPayload)?;
        let timestamp = timestamp(&payload)?;
        let behind = now - timestamp;
        let is_fresh = behind.abs() <= SIGNATURE_WINDOW.as_secs_f64();
        if !is_fresh {
            #[expect(clippy::cast_possible_truncation, reason = "it is bounded")]
            let behind = behind.clamp(-1e15, 1e15) as i64;
            return Err(AuthError::Expired { behind });
        }
        if !self.is_for_us(&payload, require_to) {
            return Err(AuthError::WrongRecipient);
        }
        let (Some(address), Ok(signature)) = (address, Signature::parse(signature)) else {
            return Err(AuthError::InvalidSignature);
        };
        if !verify_signature(&address, &payload, &signature, &Canonical::ALL) {
            return Err(AuthError::InvalidSignature);
        }
        Ok(Verified {
            address,
            payload,
            timestamp,
            signature,
        })
    }

    fn is_for_us(&self, payload: &Payload<'_>, require_to: bool) -> bool {
        let Some(recipient) = self.recipient else {
            return true;
        };
        match payload.get("to") {
            Some(to) if !is_falsy(to.get()) => {
                let to = to.as_str().map(|to| Address::parse(&to));
                to == Some(Ok(recipient))
            }
            _ => !require_to,
        }
    }
}

/// Returns whether this key signed this payload in one of these forms, strictly.
///
/// ```
/// use connectonion_proto::auth::{Canonical, Payload, Signature, Signer, verify_signature};
/// use connectonion_proto::Limits;
///
/// let signer = Signer::from_seed(&[1; 32]);
/// let signed = signer.sign_payload(&serde_json::json!({"timestamp": 1702234567}))?;
/// let payload = Payload::parse(r#"{ "timestamp": 1702234567 }"#, &Limits::default())?;
/// let signature = Signature::parse(&signed.signature.unwrap_or_default())?;
/// assert!(verify_signature(signer.address(), &payload, &signature, &Canonical::ALL));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn verify_signature(
    address: &Address,
    payload: &Payload<'_>,
    signature: &Signature,
    forms: &[Canonical],
) -> bool {
    let Ok(key) = VerifyingKey::from_bytes(address.as_bytes()) else {
        return false;
    };
    let signature = ed25519_dalek::Signature::from_bytes(signature.as_bytes());
    // Most payloads are the same in all forms. Only hashes are kept: the texts may be large.
    let mut tried = Vec::with_capacity(forms.len());
    let hasher = RandomState::new();
    forms.iter().any(|form| {
        let text = payload.canonical(*form);
        let hash = hasher.hash_one(&text);
        if tried.contains(&hash) {
            return false;
        }
        tried.push(hash);
        key.verify_strict(text.as_bytes(), &signature).is_ok()
    })
}

/// Returns the payload's time in seconds since 1970.
fn timestamp(payload: &Payload<'_>) -> Result<f64, AuthError> {
    let raw = payload.get("timestamp");
    let raw = raw.ok_or(AuthError::TimestampRequired)?;
    match payload.number("timestamp") {
        Some(timestamp) if timestamp != 0.0 => Ok(timestamp),
        Some(_) => Err(AuthError::TimestampRequired),
        None if is_falsy(raw.get()) => Err(AuthError::TimestampRequired),
        None => Err(AuthError::TimestampNotNumeric),
    }
}

/// Returns whether Python considers a value false, so that it counts as absent. (Numbers, which can
/// be zero in many spellings, are not checked here.)
fn is_falsy(json: &str) -> bool {
    let is_empty = |open, close| {
        let inside = json.strip_prefix(open);
        let inside = inside.and_then(|it| it.strip_suffix(close));
        inside.is_some_and(|inside: &str| inside.trim_ascii().is_empty())
    };
    matches!(json, "null" | "false" | "\"\"") || is_empty('[', ']') || is_empty('{', '}')
}
