//! Writing events and comments.

use bytes::{BufMut, BytesMut};

use super::{Event, SseError};

/// Appends an event to `out`, its blank line included.
///
/// A line break in the data, be it LF, CR LF or CR, starts a new `data` line and is read back as
/// `\n`. `retry` is written in whole milliseconds.
///
/// # Errors
/// [`SseError::BadField`] if the type or the id holds a line break, or the id holds NUL. Nothing
/// is written then; the same event would be refused again.
pub fn encode(event: &Event, out: &mut BytesMut) -> Result<(), SseError> {
    for (field, text, breaks) in [
        ("event", &event.event, &['\n', '\r'][..]),
        ("id", &event.id, &['\n', '\r', '\0']),
    ] {
        if text.as_ref().is_some_and(|text| text.contains(breaks)) {
            return Err(SseError::BadField { field });
        }
    }
    if let Some(id) = &event.id {
        put_line(out, "id", id);
    }
    if let Some(name) = event.event.as_ref().filter(|name| !name.is_empty()) {
        put_line(out, "event", name);
    }
    if let Some(retry) = event.retry {
        put_line(out, "retry", &retry.as_millis().to_string());
    }
    for line in lines(&event.data) {
        put_line(out, "data", line);
    }
    out.put_u8(b'\n');
    Ok(())
}

fn put_line(out: &mut BytesMut, name: &str, value: &str) {
    out.reserve(name.len() + value.len() + 4);
    out.put_slice(name.as_bytes());
    out.put_slice(b": ");
    out.put_slice(value.as_bytes());
    out.put_u8(b'\n');
}

/// The lines between LF, CR LF and CR; always at least one.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some((line, after)) = text.split_once(['\n', '\r']) else {
            return rest.take();
        };
        let cr = text.as_bytes().get(line.len()) == Some(&b'\r');
        rest = Some(if cr {
            after.strip_prefix('\n').unwrap_or(after)
        } else {
            after
        });
        Some(line)
    })
}
