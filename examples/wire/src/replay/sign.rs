//! [`signs`]: signatures of now in place of the recorded ones, which hosts of ConnectOnion refuse.

use std::time::SystemTime;

use connectonion_proto::auth::{Signer, unix_seconds};
use serde_json::{Map, Value};

/// Returns a function that signs frames which have a signature, with this key, at the time of its call.
pub(crate) fn signs(key: Signer) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
    move |text| sign(&key, text, unix_seconds(SystemTime::now()))
}

/// Whether a frame has a signature.
pub(crate) fn is_signed(text: &str) -> bool {
    let members = ["\"signature\"", "\"payload\"", "\"timestamp\""];
    members.iter().all(|member| text.contains(member))
}

fn sign(key: &Signer, text: &str, now: f64) -> Option<String> {
    if !is_signed(text) {
        return None;
    }
    let mut frame: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut payload = frame.get("payload")?.as_object()?.clone();
    let old = payload.get_mut("timestamp")?;
    *old = match old.is_f64() {
        true => Value::from((now * 1000.0).floor() / 1000.0),
        false => format!("{:.0}", now.floor()).parse().ok()?,
    };
    let signed = serde_json::to_value(key.sign_payload(&payload).ok()?).ok()?;
    for (name, value) in signed.as_object()? {
        frame.insert(name.clone(), value.clone());
    }
    serde_json::to_string(&frame).ok()
}

#[cfg(test)]
mod tests {
    use connectonion_proto::auth::Verifier;
    use connectonion_proto::frame::Signed;

    use super::*;

    #[test]
    fn a_frame_is_signed_again_with_the_current_time() {
        let (old, new) = (Signer::generate().unwrap(), Signer::generate().unwrap());
        let payload = serde_json::json!({"to": "x", "timestamp": 17.5, "nonce": "n"});
        let mut frame = serde_json::to_value(old.sign_payload(&payload).unwrap()).unwrap();
        frame["type"] = "CONNECT".into();
        let text = sign(&new, &frame.to_string(), 1_700_000_000.5).unwrap();
        let signed: Signed = serde_json::from_str(&text).unwrap();
        let verified = Verifier::default()
            .verify(&signed, 1_700_000_001.0)
            .unwrap();
        assert_eq!(verified.address, *new.address());
        assert!(
            text.contains("CONNECT") && text.contains("\"nonce\""),
            "{text}"
        );
        assert_eq!(sign(&new, r#"{"type":"INPUT","prompt":"x"}"#, 1.0), None);
    }
}
