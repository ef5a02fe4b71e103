//! [`read`]: a recording as a suite of one row: what one side has sent is sent again, and what the other one has sent is
//! expected.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Options, is_of};
use crate::check::{Row, Suite};
use crate::frame::is_one;
use crate::head::{Head, split};
use crate::pattern::Pattern;
use crate::play::{Action, Ask, Awaited, Expected, Frame, NO_CLOSE, NO_CODE, Step, http};
use crate::transcript::{BadLine, Entry, Item, Kind, Reader};
use rpc_core::testing::Side;

/// Headers that belong to a connection, and are made anew.
const OWN: &str = "host connection upgrade sec-websocket-key sec-websocket-version sec-websocket-extensions \
    content-length transfer-encoding keep-alive accept-encoding proxy-connection";

/// A line of a recording, from 1, and what passed there.
type Line = (usize, Entry<'static>);

/// Reads a recording, of which one side is played.
///
/// # Errors
/// The first line that is not a line of a transcript.
pub(crate) fn read(text: &str, plays: Side, options: &Options) -> Result<Suite, BadLine> {
    let mut connections: BTreeMap<u32, Vec<Line>> = BTreeMap::new();
    let mut reader = Reader::default();
    for line in text.lines() {
        if let Some(Item::Entry(entry)) = reader.read(line)?
            && entry.from.is_some()
        {
            let lines = connections.entry(entry.conn).or_default();
            lines.push((reader.line_number(), entry.into_owned()));
        }
    }
    let mut steps = Vec::new();
    for (number, lines) in connections {
        // Without more, it was an attempt that never became a connection.
        if lines
            .iter()
            .any(|(_, it)| !matches!(it.kind, Kind::Open | Kind::Ping))
        {
            steps.extend(connection(number, lines, plays, options));
        }
    }
    // A frame is played once all that was recorded before it has passed.
    steps.sort_by_key(|(step, _)| step.number);
    let mut last = None;
    let steps = steps.into_iter().map(|(mut step, at)| {
        let since = last.map_or_else(Default::default, |last| at.saturating_sub(last));
        last = last.max(Some(at));
        step.within = Some(since + options.timeout);
        step
    });
    Ok(Suite {
        rows: vec![Row {
            steps: steps.collect(),
            ..Row::default()
        }],
        ..Suite::default()
    })
}

/// Returns the steps of a connection, and when each was recorded.
fn connection(
    number: u32,
    mut lines: Vec<Line>,
    plays: Side,
    options: &Options,
) -> Vec<(Step, std::time::Duration)> {
    let mut ask = asked(&lines);
    let answer = ask.answer.clone().unwrap_or_default();
    if ask.method.is_some() {
        join_body(&mut lines, plays, answer.is_stream());
    }
    if plays == Side::Client {
        let own = options.url.as_deref().map_or("", |url| http::split(url).2);
        if !own.is_empty() {
            own.clone_into(&mut ask.path);
        }
        if !options.headers.is_empty() {
            // They may ask for another subprotocol.
            ask.answer = None;
        }
        ask.headers.retain(|(name, _)| {
            let mut given = options.headers.iter();
            !is_one(name, OWN) && !given.any(|(other, _)| other == name)
        });
        ask.headers.extend(options.headers.iter().cloned());
    }
    let first = lines
        .first()
        .map_or((0, Default::default()), |(line, it)| (*line, it.at));
    let step = |line, action| Step {
        number: line,
        connection: number,
        action,
        ..Step::default()
    };
    let begin = step(first.0, Action::Ask(ask));
    let tolerated: Arc<[String]> = options.tolerated.as_slice().into();
    let steps = lines.into_iter().filter_map(|(line, entry)| {
        let frame = frame(&entry)?;
        let action = match frame {
            Frame::Text(text) if is_of(&text, &options.ignored) => return None,
            frame if entry.from == Some(plays) => Action::Send(frame),
            Frame::Text(text) => Action::Expect {
                pattern: Expected::Pattern(Pattern::recorded(&text, &tolerated)),
                skip: false,
                until: None,
            },
            frame => Action::Await(Awaited::Recorded(frame), false),
        };
        Some((step(line, action), entry.at))
    });
    [(begin, first.1)].into_iter().chain(steps).collect()
}

/// Returns a recorded frame; `None` for what is not played.
fn frame(entry: &Entry<'_>) -> Option<Frame> {
    Some(match (entry.kind, entry.code) {
        (Kind::Text | Kind::Sse, _) => Frame::Text(entry.data.clone().into_owned()),
        (Kind::Binary, _) => Frame::Binary(entry.payload().unwrap_or_default()),
        // Some libraries report an end without a Close as this code.
        (Kind::Eof, _) | (Kind::Close, Some(1006)) => Frame::End(match &*entry.data {
            "" => NO_CLOSE.to_owned(),
            why => why.to_owned(),
        }),
        (Kind::Close, code) => {
            Frame::Close(code.unwrap_or(NO_CODE), entry.data.clone().into_owned())
        }
        _ => return None,
    })
}

/// Returns the request that opened a connection, with the recorded answer.
fn asked(lines: &[Line]) -> Ask {
    let (mut ask, mut answer) = (Ask::default(), Head::default());
    for (_, entry) in lines {
        let data = &*entry.data;
        match (entry.kind, entry.from) {
            (Kind::Open, _) => data.clone_into(&mut ask.path),
            (Kind::Http, Some(Side::Client)) => {
                let (head, body) = split(data);
                let head = Head::of(head);
                body.clone_into(&mut ask.body);
                head.target().clone_into(&mut ask.path);
                ask.method = head
                    .header("upgrade")
                    .is_none()
                    .then(|| head.method().to_owned());
                let headers = head.headers();
                let headers =
                    headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
                ask.headers = headers.collect();
            }
            // Another answer follows one that says "continue", or gives hints.
            (Kind::Http, _) if matches!(answer.status(), None | Some(100 | 102..200)) => {
                answer = Head::of(split(data).0);
            }
            (Kind::Body, Some(Side::Client)) => ask.body.push_str(data),
            _ => {}
        }
    }
    let status = answer.status().map(|status| status.to_string());
    let usual = if ask.method.is_none() { "101" } else { "" };
    ask.status = status.unwrap_or_else(|| usual.to_owned());
    ask.answer = Some(answer);
    ask
}

/// Makes the body of the answer to a plain request one message, which is played or compared as a whole.
fn join_body(lines: &mut Vec<Line>, plays: Side, is_stream: bool) {
    let mut body: Option<(usize, Entry<'static>)> = None;
    let mut end = None;
    lines.retain(|(line, entry)| {
        let piece = match (entry.kind, entry.from) {
            (Kind::Http, Some(Side::Server)) => split(&entry.data).1,
            (Kind::Body, Some(Side::Server)) => &*entry.data,
            // A client may close when it likes.
            (Kind::Eof, Some(Side::Client)) => return false,
            (Kind::Eof, _) => {
                end = Some((*line, entry.clone()));
                return false;
            }
            _ => return true,
        };
        match &mut body {
            _ if piece.is_empty() => {}
            Some((_, body)) => body.data.to_mut().push_str(piece),
            None => {
                let entry = Entry::new(
                    entry.at,
                    entry.conn,
                    entry.from,
                    Kind::Text,
                    piece.to_owned(),
                );
                body = Some((*line, entry));
            }
        }
        true
    });
    lines.extend(body);
    if plays == Side::Server {
        // Clients that get no length wait for the end. The recorded one had one, and may have gone on at another
        // connection before the end was recorded, if it was at all.
        end = match end {
            end if is_stream => end,
            _ => lines.iter().max_by_key(|(line, _)| *line).cloned(),
        };
    }
    lines.extend(end.map(|(line, entry)| {
        let kind = if plays == Side::Server {
            Kind::Close
        } else {
            Kind::Eof
        };
        (
            line,
            Entry::new(entry.at, entry.conn, Some(Side::Server), kind, ""),
        )
    }));
    lines.sort_by_key(|(line, _)| *line);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(lines: &[&str], plays: Side) -> Vec<Step> {
        let mut suite = read(&lines.join("\n"), plays, &Options::default()).unwrap();
        suite.rows.remove(0).steps
    }

    #[test]
    fn a_recording_is_read_with_its_heads() {
        let lines = [
            r#"{"at":0,"conn":1,"dir":"c2s","kind":"http","data":"POST /v1/x?a HTTP/1.1\r\nhost: h\r\nA: b\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"c2s","kind":"body","data":"{}"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 100 Continue\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"body","data":"ab"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"body","data":"c"}"#,
            r#"{"at":0,"conn":2,"dir":"c2s","kind":"http","data":"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"}"#,
            r#"{"at":0,"conn":2,"dir":"s2c","kind":"http","data":"HTTP/1.1 401 No\r\n\r\nno"}"#,
        ];
        let steps = steps(&lines, Side::Client);
        let [plain, body, refused] = &steps[..] else {
            panic!("{steps:?}")
        };
        assert_eq!(
            (body.number, body.action.to_string()),
            (5, "abc".to_owned())
        );
        let (Action::Ask(plain), Action::Ask(refused)) = (&plain.action, &refused.action) else {
            panic!("{steps:?}")
        };
        assert_eq!(plain.method.as_deref(), Some("POST"));
        assert_eq!(
            (&*plain.path, &*plain.body, &*plain.status),
            ("/v1/x?a", "{}", "200")
        );
        assert_eq!(plain.headers, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(plain.answer.as_ref().unwrap().header("x"), Some("y"));
        assert_eq!((&refused.method, &*refused.status), (&None, "401"));
    }

    #[test]
    fn the_end_of_an_answer_waits_for_no_other_connection() {
        let lines = [
            r#"{"at":0,"conn":1,"dir":"c2s","kind":"http","data":"GET /v1/x HTTP/1.1\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"}"#,
            r#"{"at":0,"conn":2,"dir":"c2s","kind":"open","data":"/ws"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"eof"}"#,
            r#"{"at":0,"conn":2,"dir":"s2c","kind":"text","data":"{}"}"#,
        ];
        // Whether it was recorded or not.
        for lines in [&lines[..], &lines[..3]] {
            let steps = steps(lines, Side::Server);
            let played = steps.iter().filter(|step| step.connection == 1).skip(1);
            let played: Vec<_> = played
                .map(|step| (step.number, step.action.to_string()))
                .collect();
            let expected = [
                (2, "\"ab\"".to_owned()),
                (2, "Close without a code".to_owned()),
            ];
            assert_eq!(played, expected, "{lines:?}");
        }
    }
}
