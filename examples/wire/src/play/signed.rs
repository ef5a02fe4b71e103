//! The signatures of ConnectOnion: good ones, and ones that a host has to refuse.

use std::time::{SystemTime, UNIX_EPOCH};

use connectonion_proto::auth::{Address, Draft, Signer, Verifier, unix_seconds};
use connectonion_proto::frame::Signed;
use serde_json::json;

use super::variables::Variables;

/// Seconds beyond the window in which hosts accept a signature.
const TOO_FAR: f64 = 600.0;

/// Sets the parts of frames that carry signatures, with keys that are new. `${signed}` and
/// `${signed2}` are good ones of one key. They name the host if its address is known: some demand it.
/// `${host}` is the address of the host, and of a played one if it is not known.
pub(crate) fn set_parts(variables: &mut Variables) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let [own, other] = [Signer::generate(), Signer::generate()];
    let (own, other) = (own.map_err(|e| text(&e))?, other.map_err(|e| text(&e))?);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = now.as_secs_f64();
    let sign = |signer: &Signer, draft: Draft| signer.sign_payload(&draft).map_err(|e| text(&e));
    let host = variables
        .text("address")
        .and_then(|address| Address::parse(address).ok());
    let played = host.as_ref().unwrap_or_else(|| other.address()).to_string();
    variables.set_part("host", &played)?;
    let draft = |at: f64| match &host {
        Some(host) => Draft::new(at).with_to(host),
        None => Draft::new(at),
    };
    let good = sign(&own, draft(now).with_nonce(1))?;
    let good2 = sign(&own, draft(now).with_nonce(2))?;
    let other_good = sign(&other, draft(now).with_nonce(3))?;
    let untimed = own
        .sign_payload(&json!({"nonce": "7"}))
        .map_err(|e| text(&e))?;
    if host.is_some() {
        let addressed = sign(&own, draft(now).with_nonce(4))?;
        variables.set_part("addressed", &members(&addressed))?;
    }
    if let Some(code) = variables.text("invite") {
        let mut payload = json!({"invite_code": code, "timestamp": now, "nonce": "8"});
        if let Some((members, host)) = payload.as_object_mut().zip(host.as_ref()) {
            members.insert("to".to_owned(), host.to_string().into());
        }
        let invited = own.sign_payload(&payload).map_err(|e| text(&e))?;
        variables.set_part("invited", &members(&invited))?;
    }
    let (mut changed, mut forged, mut prefixed) = (good.clone(), other_good.clone(), good.clone());
    changed.payload.clone_from(&good2.payload);
    forged.from.clone_from(&good.from);
    prefixed.signature = prefixed.signature.map(|it| format!("0x{it}").into());
    for (name, signed) in [
        ("old", sign(&own, draft(now - TOO_FAR))?),
        ("future", sign(&own, draft(now + TOO_FAR))?),
        ("changed", changed),
        ("forged", forged),
        ("prefixed", prefixed),
        ("untimed", untimed),
        ("other", other_good),
        ("signed2", good2),
        ("signed", good),
    ] {
        variables.set_part(name, &members(&signed))?;
    }
    Ok(())
}

/// Verifies the signature of a frame, as hosts do.
///
/// # Errors
/// What is wrong with it.
pub(super) fn verify(text: &str) -> Result<(), String> {
    let signed: Signed = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let verified = Verifier::default().verify(&signed, unix_seconds(SystemTime::now()));
    verified
        .map(drop)
        .map_err(|error| format!("the signature is not valid: {error}"))
}

fn members(signed: &Signed) -> String {
    let json = serde_json::to_string(signed).unwrap_or_default();
    let inner = json
        .strip_prefix('{')
        .and_then(|json| json.strip_suffix('}'));
    inner.unwrap_or_default().to_owned()
}
