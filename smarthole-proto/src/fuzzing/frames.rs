//! Bodies of the fuzz targets of frames.

use rpc_core::{Limits, Text};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::plain::{Plain, id};
use crate::frame::{ClientFrame, ServerFrame};
use crate::limits::defaults;
use crate::{codec, timestamp};

/// A frame of a client means what `serde_json` finds in it, and decoding, encoding and decoding again
/// gives the same frame.
pub fn client_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = defaults();
    let decoded = ClientFrame::decode(text, &limits);
    compare(text, decoded.as_ref().ok().map(written), client);
    let Ok(frame) = decoded else {
        return;
    };
    let once = written(&frame);
    match ClientFrame::decode(once.as_str(), &limits) {
        Ok(decoded) => assert!(decoded == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
    too_large(text, |limits| ClientFrame::decode(text, limits).is_err());
}

/// A frame of a server means what `serde_json` finds in it, and decoding, encoding and decoding again
/// gives the same frame.
pub fn server_frames(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let limits = defaults();
    let decoded = ServerFrame::decode(text, &limits);
    compare(text, decoded.as_ref().ok().map(written), server);
    let Ok(frame) = decoded else {
        return;
    };
    let once = written(&frame);
    match ServerFrame::decode(once.as_str(), &limits) {
        Ok(decoded) => assert!(decoded == frame, "the round trip changed the frame"),
        Err(error) => panic!("an encoded frame must decode: {error}"),
    }
    if let ServerFrame::Message(message) = &frame
        && let Some(time) = timestamp::parse(&message.timestamp)
    {
        let again = timestamp::format(time);
        let time = timestamp::parse(&again).map(timestamp::format);
        assert_eq!(time, Some(again), "a timestamp differs");
    }
    too_large(text, |limits| ServerFrame::decode(text, limits).is_err());
}

fn written(frame: &impl Serialize) -> Text {
    match codec::encode(frame) {
        Ok(text) => text,
        Err(error) => panic!("a decoded frame must encode: {error}"),
    }
}

/// The size counts before anything else.
fn too_large(text: &str, is_refused: impl Fn(&Limits) -> bool) {
    let tight = defaults().with_max_message_bytes(text.len() - 1);
    assert!(is_refused(&tight), "one byte more than may be");
    let exact = defaults().with_max_message_bytes(text.len());
    assert!(!is_refused(&exact), "as many bytes as may be");
}

/// What is wrong about a frame, or that this comparison cannot tell.
enum Not {
    AFrame,
    Sure,
}

type Read = Result<Value, Not>;

fn compare(text: &str, written: Option<Text>, reference: fn(&Value) -> Read) {
    let expected = match Plain::read(text) {
        Plain::Nothing => Err(Not::AFrame),
        Plain::Odd => Err(Not::Sure),
        Plain::Clear(value) => reference(&value),
    };
    match (expected, written) {
        (Ok(expected), Some(written)) => {
            let Ok(found) = serde_json::from_str(written.as_str()) else {
                panic!("what was written is no JSON")
            };
            alike(found, expected);
        }
        (Ok(_), None) => panic!("a frame is refused"),
        (Err(Not::AFrame), Some(_)) => panic!("what is no frame is accepted"),
        (Err(_), _) => {}
    }
}

/// Both are the same, but for the last bits of a number, which `serde_json` may miss.
fn alike(mut found: Value, mut expected: Value) {
    let [one, other] = [&mut found, &mut expected].map(|frame| {
        let number = frame.pointer_mut("/payload/metadata/confidence");
        number.and_then(|number| number.take().as_f64())
    });
    assert_eq!(found, expected, "what is in the frame");
    let (one, other) = (one.unwrap_or_default(), other.unwrap_or_default());
    let apart = (one - other).abs();
    assert!(apart <= one.abs() * 1e-14 + 1e-300, "a confidence");
}

fn client(frame: &Value) -> Read {
    let tag = text(frame, "type")?.ok_or(Not::AFrame)?;
    match tag.as_str() {
        Some("registration") => {
            let payload = frame.get("payload").ok_or(Not::AFrame)?;
            Ok(json!({"type": tag, "payload": payload}))
        }
        Some("response") => {
            let payload = response(frame.get("payload").ok_or(Not::AFrame)?)?;
            Ok(json!({"type": tag, "payload": payload}))
        }
        _ => Ok(frame.clone()),
    }
}

fn response(payload: &Value) -> Read {
    let mut found = Map::new();
    let message = ident(payload, "messageId")?.ok_or(Not::AFrame)?;
    let tag = text(payload, "type")?.ok_or(Not::AFrame)?;
    let inner = payload.get("payload");
    let body = match tag.as_str() {
        Some("ack") => Some(json!({})),
        Some("reject") => Some(texts(inner.ok_or(Not::AFrame)?, &["reason"])?),
        Some("notification") => {
            let body = texts(inner.ok_or(Not::AFrame)?, &["title", "body", "priority"])?;
            let priority = body.get("priority").and_then(Value::as_str);
            if priority.is_some_and(|it| !["low", "normal", "high"].contains(&it)) {
                return Err(Not::AFrame);
            }
            Some(body)
        }
        _ => inner.cloned(),
    };
    found.insert("messageId".into(), message);
    found.insert("type".into(), tag);
    found.extend(body.map(|body| ("payload".into(), body)));
    Ok(Value::Object(found))
}

fn server(frame: &Value) -> Read {
    let tag = text(frame, "type")?.ok_or(Not::AFrame)?;
    let payload = || frame.get("payload").ok_or(Not::AFrame);
    let payload = match tag.as_str() {
        Some("message") => message(payload()?)?,
        Some("registration_response") => registration_response(payload()?)?,
        _ => return Ok(frame.clone()),
    };
    Ok(json!({"type": tag, "payload": payload}))
}

fn message(payload: &Value) -> Read {
    let id = ident(payload, "id")?.ok_or(Not::AFrame)?;
    let said = text(payload, "text")?.ok_or(Not::AFrame)?;
    let time = ident(payload, "timestamp")?.ok_or(Not::AFrame)?;
    let none = json!({});
    let metadata = payload.get("metadata").filter(|it| !it.is_null());
    let metadata = metadata.unwrap_or(&none);
    let mut found = Map::new();
    let method = text(metadata, "inputMethod")?.unwrap_or_else(|| json!("text"));
    found.insert("inputMethod".into(), method);
    let direct = truth(metadata, "directRouted")?.unwrap_or(false);
    found.insert("directRouted".into(), direct.into());
    if let Some(confidence) = member(metadata, "confidence")? {
        let number = confidence.as_number().ok_or(Not::AFrame)?;
        let number = number.as_f64().filter(|it| it.is_finite());
        found.insert("confidence".into(), number.ok_or(Not::Sure)?.into());
    }
    if let Some(reason) = text(metadata, "routingReason")? {
        found.insert("routingReason".into(), reason);
    }
    Ok(json!({"id": id, "text": said, "timestamp": time, "metadata": found}))
}

fn registration_response(payload: &Value) -> Read {
    let success = truth(payload, "success")?.ok_or(Not::AFrame)?;
    let mut found = Map::from_iter([("success".to_owned(), success.into())]);
    // A member of the other answer is left out, but has to be well formed.
    for (name, belongs) in [("clientId", success), ("code", !success)] {
        let id = ident(payload, name)?.filter(|_| belongs);
        found.extend(id.map(|id| (name.to_owned(), id)));
    }
    found.extend(text(payload, "message")?.map(|text| ("message".to_owned(), text)));
    Ok(Value::Object(found))
}

/// A member of what must be an object; null is none.
fn member<'v>(of: &'v Value, name: &str) -> Result<Option<&'v Value>, Not> {
    let members = of.as_object().ok_or(Not::AFrame)?;
    Ok(members.get(name).filter(|value| !value.is_null()))
}

fn text(of: &Value, name: &str) -> Result<Option<Value>, Not> {
    let found = member(of, name)?;
    let bad = found.is_some_and(|value| !value.is_string());
    if bad {
        Err(Not::AFrame)
    } else {
        Ok(found.cloned())
    }
}

/// An object with only those of these members that are there, which must be strings.
fn texts(of: &Value, names: &[&str]) -> Read {
    let mut found = Map::new();
    for name in names {
        found.extend(text(of, name)?.map(|text| ((*name).to_owned(), text)));
    }
    Ok(Value::Object(found))
}

fn truth(of: &Value, name: &str) -> Result<Option<bool>, Not> {
    let found = member(of, name)?;
    let bad = found.is_some_and(|value| !value.is_boolean());
    if bad {
        Err(Not::AFrame)
    } else {
        Ok(found.and_then(Value::as_bool))
    }
}

fn ident(of: &Value, name: &str) -> Result<Option<Value>, Not> {
    let Some(found) = member(of, name)? else {
        return Ok(None);
    };
    let id = id(found).ok_or(Not::AFrame)?;
    Ok(Some(id.ok_or(Not::Sure)?.into()))
}
