//! [`Head`]: the head of an HTTP/1 message, changed as little as a proxy can.

use std::io;

use http::request::Parts;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The largest head, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// The head of an HTTP/1 message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// The request line or the status line.
    pub(crate) first: String,
    /// The other lines, in their order and spelling.
    lines: Vec<String>,
}

/// Reads a head, of which `bytes` came before, and returns it with the bytes that came behind it; `None` at
/// the end of the stream.
pub(crate) async fn read_head(
    from: &mut (impl AsyncRead + Unpin),
    mut bytes: Vec<u8>,
) -> io::Result<Option<(Head, Vec<u8>)>> {
    let mut start = 0;
    loop {
        let new = bytes.get(start..).unwrap_or_default();
        if let Some(end) = new.windows(4).position(|it| it == b"\r\n\r\n") {
            let rest = bytes.split_off(start + end + 4);
            return Head::parse(&bytes).map(|head| Some((head, rest)));
        }
        if bytes.len() > MAX_HEAD {
            return Err(io::Error::other("the head of an HTTP message is too large"));
        }
        start = bytes.len().saturating_sub(3);
        if from.read_buf(&mut bytes).await? == 0 {
            return match bytes.is_empty() {
                true => Ok(None),
                false => Err(io::ErrorKind::UnexpectedEof.into()),
            };
        }
    }
}

/// Returns the head of an HTTP message, without the empty line, and its body.
pub(crate) fn split(message: &str) -> (&str, &str) {
    let ends = ["\r\n\r\n", "\n\n"].into_iter();
    let ends = ends.filter_map(|end| Some((message.find(end)?, end.len())));
    let Some((at, len)) = ends.min() else {
        return (message, "");
    };
    let body = message.get(at + len..).unwrap_or_default();
    (message.get(..at).unwrap_or_default(), body)
}

/// Writes a whole answer, and ends the connection.
pub(crate) async fn respond(
    to: &mut (impl AsyncWrite + Unpin),
    status: &str,
    kind: &str,
    body: &str,
) -> io::Result<()> {
    let len = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}"
    );
    to.write_all(answer.as_bytes()).await?;
    to.flush().await?;
    to.shutdown().await
}

impl Head {
    /// Reads a recorded head.
    pub(crate) fn of(text: &str) -> Self {
        let mut lines = text.lines().map(str::to_owned);
        Self {
            first: lines.next().unwrap_or_default(),
            lines: lines.collect(),
        }
    }

    fn parse(bytes: &[u8]) -> io::Result<Self> {
        let bad = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the peer does not speak HTTP/1.1",
            )
        };
        // A character for each byte: heads need not be UTF-8.
        let text: String = bytes.iter().copied().map(char::from).collect();
        let mut lines = text
            .trim_end_matches("\r\n")
            .split("\r\n")
            .map(str::to_owned);
        let first = lines.next().ok_or_else(bad)?;
        let lines: Vec<_> = lines.collect();
        // A line without a name would belong to the header before it, for some.
        let is_header = |line: &String| {
            let name = line.split_once(':').map(|(name, _)| name);
            name.is_some_and(|name| !name.is_empty() && !name.contains([' ', '\t']))
                && !line.contains('\n')
        };
        match first.contains("HTTP/1.") && lines.iter().all(is_header) {
            true => Ok(Self { first, lines }),
            false => Err(bad()),
        }
    }

    /// Returns the headers, as they are spelled.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.lines.iter().filter_map(|line| line.split_once(':'));
        headers.map(|(name, value)| (name, value.trim()))
    }

    /// Returns the first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers();
        let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    /// Returns the method of a request.
    pub(crate) fn method(&self) -> &str {
        self.first.split(' ').next().unwrap_or_default()
    }

    /// Replaces the value of a header where it stands, or adds it.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let is_it = |line: &String| {
            let known = line.split_once(':').map(|(known, _)| known);
            known.is_some_and(|known| known.eq_ignore_ascii_case(name))
        };
        match self.lines.iter_mut().find(|line| is_it(line)) {
            Some(line) => {
                let spelled = line.split(':').next().unwrap_or(name);
                *line = format!("{spelled}: {value}");
            }
            None => self.lines.push(format!("{name}: {value}")),
        }
    }

    /// Removes a header.
    pub(crate) fn remove(&mut self, name: &str) {
        self.lines.retain(|line| {
            let known = line.split_once(':').map(|(known, _)| known);
            !known.is_some_and(|known| known.eq_ignore_ascii_case(name))
        });
    }

    /// Returns the target of a request.
    pub(crate) fn target(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or("/")
    }

    /// Replaces the target of a request.
    pub(crate) fn set_target(&mut self, target: &str) {
        let mut words: Vec<_> = self.first.split(' ').collect();
        if let Some(word) = words.get_mut(1) {
            *word = target;
        }
        self.first = words.join(" ");
    }

    /// Returns the status of an answer.
    pub(crate) fn status(&self) -> Option<u16> {
        self.first.split(' ').nth(1)?.parse().ok()
    }

    /// Returns whether another answer to the same request follows: "continue", or hints.
    pub(crate) fn is_interim(&self) -> bool {
        matches!(self.status(), Some(100 | 102..200))
    }

    /// Returns whether the body is a stream of server-sent events.
    pub(crate) fn is_stream(&self) -> bool {
        let kind = self.header("content-type");
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Returns whether the request asks for a WebSocket.
    pub(crate) fn is_upgrade(&self) -> bool {
        self.header("upgrade")
            .is_some_and(|it| it.eq_ignore_ascii_case("websocket"))
    }

    /// Returns the parts that guards check; `None` if they are not valid.
    pub(crate) fn parts(&self) -> Option<Parts> {
        let mut request = http::Request::builder().uri(self.target());
        for line in &self.lines {
            let (name, value) = line.split_once(':')?;
            request = request.header(name, bytes(value.trim()));
        }
        Some(request.body(()).ok()?.into_parts().0)
    }

    /// Returns the head as it is sent.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        bytes(&self.text())
    }

    /// Returns the head with a character for each byte.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\r\n", self.first);
        for line in &self.lines {
            text.push_str(line);
            text.push_str("\r\n");
        }
        text.push_str("\r\n");
        text
    }
}

/// Returns the bytes that these characters stand for.
fn bytes(text: &str) -> Vec<u8> {
    text.chars()
        .map(|c| u8::try_from(c).unwrap_or(b'?'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_forwarded_except_for_set_headers() {
        let text = "GET /ws?a=1 HTTP/1.1\r\nhOST:  here\r\nX-Odd:a\r\nUpgrade: WebSocket\r\n\r\n";
        let mut head = Head::parse(text.as_bytes()).unwrap();
        assert_eq!(head.text(), text);
        assert!(head.is_upgrade());
        assert_eq!(
            (head.target(), head.header("host")),
            ("/ws?a=1", Some("here"))
        );
        head.set("Host", "there:1");
        head.set_target("/rpc");
        head.remove("x-odd");
        let expected = "GET /rpc HTTP/1.1\r\nhOST: there:1\r\nUpgrade: WebSocket\r\n\r\n";
        assert_eq!(head.text(), expected);
        assert_eq!(head.parts().unwrap().headers["host"], "there:1");
    }

    #[test]
    fn bytes_beyond_ascii_are_unchanged() {
        let text = b"GET / HTTP/1.1\r\nX-Name: J\xfcrgen \xc3\xbc\r\n\r\n";
        let head = Head::parse(text).unwrap();
        assert_eq!(head.bytes(), text);
        assert_eq!(
            head.parts().unwrap().headers["x-name"].as_bytes(),
            b"J\xfcrgen \xc3\xbc"
        );
    }

    #[test]
    fn an_ambiguous_head_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n",
            "GET / HTTP/1.1\r\nA : b\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
            "GET /\r\n\r\n",
            "\x16\x03\x01\r\n\r\n",
        ] {
            assert!(Head::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[tokio::test]
    async fn the_bytes_behind_a_head_are_kept() {
        let mut bytes = &b"HTTP/1.1 101 Switching\r\n\r\n\x81\x01x"[..];
        let (head, rest) = read_head(&mut bytes, Vec::new()).await.unwrap().unwrap();
        assert_eq!((head.status(), &rest[..]), (Some(101), &b"\x81\x01x"[..]));
        let first = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r".to_vec();
        let mut bytes = &b"\nbody"[..];
        let (head, rest) = read_head(&mut bytes, first).await.unwrap().unwrap();
        assert!(head.is_interim());
        let (head, rest) = read_head(&mut bytes, rest).await.unwrap().unwrap();
        assert!(!head.is_interim());
        assert_eq!((head.status(), &rest[..]), (Some(200), &b"body"[..]));
        assert_eq!(read_head(&mut &b""[..], Vec::new()).await.unwrap(), None);
        assert!(read_head(&mut &b"GET"[..], Vec::new()).await.is_err());
    }
}
