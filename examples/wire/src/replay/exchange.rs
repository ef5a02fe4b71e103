//! [`Exchange`]: the request that opened a recorded connection, and its answer.

use crate::transcript::{Entry, Kind};
use rpc_core::testing::Side;

use super::Script;
use crate::head::{Head, split};

/// The request that opened a connection, and its answer.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    /// The path and the query of the request; empty if they are not recorded.
    pub(super) path: String,
    /// The head of the request; empty if only the path is recorded.
    pub(super) request: Head,
    /// The body of the request.
    pub(super) body: String,
    /// The head of the answer; empty if it is not recorded.
    pub(super) answer: Head,
    /// Whether this is a plain HTTP request and not a WebSocket.
    pub(super) is_plain: bool,
}

impl Exchange {
    pub(super) fn of(script: &Script) -> Self {
        let mut this = Self::default();
        for (_, entry) in &script.entries {
            let data = &*entry.data;
            match (entry.kind, entry.from) {
                (Kind::Open, _) => data.clone_into(&mut this.path),
                (Kind::Http, Some(Side::Client)) => {
                    let (head, body) = split(data);
                    (this.request, this.body) = (Head::of(head), body.to_owned());
                    this.request.target().clone_into(&mut this.path);
                    this.is_plain = this.request.header("upgrade").is_none();
                }
                // Another answer follows one that says "continue", or gives hints.
                (Kind::Http, _) if matches!(this.answer.status(), None | Some(100 | 102..200)) => {
                    this.answer = Head::of(split(data).0);
                }
                (Kind::Body, Some(Side::Client)) => this.body.push_str(data),
                _ => {}
            }
        }
        this
    }

    /// Returns whether the upgrade to a WebSocket was refused.
    pub(super) fn is_refused(&self) -> bool {
        !self.is_plain && self.answer.status().is_some_and(|status| status != 101)
    }
}

/// Makes the bodies of answers to plain requests messages, which are played and compared.
pub(crate) fn with_bodies(scripts: &mut [Script], plays: Side) {
    for script in scripts {
        let exchange = Exchange::of(script);
        if exchange.is_plain {
            // A client may close when it likes.
            let is_end = |entry: &Entry<'_>| entry.kind == Kind::Eof;
            script
                .entries
                .retain(|(_, entry)| entry.from == Some(Side::Server) || !is_end(entry));
            join_bodies(script);
            if plays == Side::Server {
                end(script, exchange.answer.is_stream());
            }
        }
    }
}

/// Joins the pieces of the answer's body, which is compared as a whole.
fn join_bodies(script: &mut Script) {
    let mut body: Option<usize> = None;
    for at in 0..script.entries.len() {
        let Some((_, entry)) = script.entries.get(at) else {
            continue;
        };
        let piece = match entry.kind {
            _ if entry.from != Some(Side::Server) => continue,
            Kind::Http => split(&entry.data).1.to_owned(),
            Kind::Body => entry.data.clone().into_owned(),
            _ => continue,
        };
        if piece.is_empty() {
            continue;
        }
        match body.and_then(|at| script.entries.get_mut(at)) {
            Some((_, first)) => first.data.to_mut().push_str(&piece),
            None => body = Some(at),
        }
    }
    if let Some((_, first)) = body.and_then(|at| script.entries.get_mut(at)) {
        if first.kind == Kind::Http {
            first.data = split(&first.data).1.to_owned().into();
        }
        first.kind = Kind::Text;
    }
}

/// Lets the end of an answer follow its last piece, for clients that get no length. The recorded one
/// was, and may have gone on at another connection before the end was recorded, if it was at all.
fn end(script: &mut Script, is_stream: bool) {
    let recorded = script
        .entries
        .iter_mut()
        .find(|(_, entry)| entry.kind == Kind::Eof);
    match recorded {
        Some((_, entry)) if is_stream => entry.kind = Kind::Close,
        None if is_stream => {}
        _ => {
            script.entries.retain(|(_, entry)| entry.kind != Kind::Eof);
            if let Some((line, last)) = script.entries.last().cloned() {
                let end = Entry::new(last.at, last.conn, Some(Side::Server), Kind::Close, "");
                script.entries.push((line, end));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_read_with_its_heads() {
        let lines = [
            r#"{"at":0,"conn":1,"dir":"c2s","kind":"http","data":"POST /v1/x?a HTTP/1.1\r\nhost: h\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"c2s","kind":"body","data":"{}"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 100 Continue\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 200 OK\r\nX: y\r\n\r\n"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"body","data":"ab"}"#,
            r#"{"at":0,"conn":1,"dir":"s2c","kind":"body","data":"c"}"#,
            r#"{"at":0,"conn":2,"dir":"c2s","kind":"http","data":"GET /ws HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"}"#,
            r#"{"at":0,"conn":2,"dir":"s2c","kind":"http","data":"HTTP/1.1 401 No\r\n\r\nno"}"#,
        ];
        let mut scripts = Script::parse(&lines.join("\n")).unwrap();
        with_bodies(&mut scripts, Side::Client);
        let [plain, refused] = &scripts[..] else {
            panic!("{scripts:?}")
        };
        let texts: Vec<_> = plain
            .entries
            .iter()
            .filter(|(_, entry)| entry.kind == Kind::Text)
            .map(|(line, entry)| (*line, &*entry.data))
            .collect();
        assert_eq!(texts, [(5, "abc")]);
        let plain = Exchange::of(plain);
        assert_eq!((plain.path.as_str(), plain.is_plain), ("/v1/x?a", true));
        assert_eq!((plain.answer.status(), &*plain.body), (Some(200), "{}"));
        assert_eq!(plain.answer.header("x"), Some("y"));
        let refused = Exchange::of(refused);
        assert!(refused.is_refused());
        assert_eq!(refused.request.header("upgrade"), Some("websocket"));
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
            let mut scripts = Script::parse(&lines.join("\n")).unwrap();
            with_bodies(&mut scripts, Side::Server);
            let played: Vec<_> = scripts[0]
                .entries
                .iter()
                .map(|(line, entry)| (*line, entry.kind, &*entry.data))
                .collect();
            assert_eq!(
                played[1..],
                [(2, Kind::Text, "ab"), (2, Kind::Close, "")],
                "{lines:?}"
            );
        }
    }
}
