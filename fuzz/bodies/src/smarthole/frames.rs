//! Frames: they mean what `serde_json` finds in them.

use rpc_core::Text;
use serde_json::{Map, Value, json};
use smarthole_proto::frame::{ClientFrame, ServerFrame};
use smarthole_proto::limits::defaults;
use smarthole_proto::timestamp;

use crate::frames::{round_trip, size_counts};
use crate::plain::{Plain, id, near};

/// A frame of a client means what `serde_json` finds in it, and decoding, encoding and decoding again
/// gives the same frame.
pub fn client_frames(text: &str) {
    let limits = defaults();
    let read = round_trip(text, &limits, ClientFrame::decode).ok();
    compare(text, read.as_ref().map(|it| &it.1), client);
    if read.is_some() {
        size_counts(text, &limits, ClientFrame::decode);
    }
}

/// A frame of a server means what `serde_json` finds in it, and decoding, encoding and decoding again
/// gives the same frame.
pub fn server_frames(text: &str) {
    let limits = defaults();
    let read = round_trip(text, &limits, ServerFrame::decode).ok();
    compare(text, read.as_ref().map(|it| &it.1), server);
    let Some((frame, _)) = read else {
        return;
    };
    if let ServerFrame::Message(message) = &frame
        && let Some(time) = timestamp::parse(&message.timestamp)
    {
        let again = timestamp::format(time);
        let time = timestamp::parse(&again).map(timestamp::format);
        assert_eq!(time, Some(again), "a timestamp differs");
    }
    size_counts(text, &limits, ServerFrame::decode);
}

/// What is wrong about a frame, or that this comparison cannot tell.
enum Not {
    AFrame,
    Sure,
}

type Read = Result<Value, Not>;

fn compare(text: &str, written: Option<&Text>, reference: fn(&Value) -> Read) {
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
        (Err(Not::AFrame), Some(_)) => panic!("what is not a frame is accepted"),
        (Err(_), _) => {}
    }
}

/// Both are the same, except for the last bits of a number, which `serde_json` may miss.
fn alike(mut found: Value, mut expected: Value) {
    let [one, other] = [&mut found, &mut expected].map(|frame| {
        let number = frame.pointer_mut("/payload/metadata/confidence");
        number
            .and_then(|number| number.take().as_f64())
            .unwrap_or_default()
    });
    assert_eq!(found, expected, "what is in the frame");
    assert!(near((one, other)), "a confidence");
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
