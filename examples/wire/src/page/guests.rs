//! [`Guests`]: recordings that the user drops on the page, and that come in pieces.

use std::collections::VecDeque;
use std::io::BufRead as _;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use rpc_core::testing::transcript::Header;
use serde::Serialize;

use crate::Protocol;
use crate::recording::{MAX_HAR, is_har, open};
use crate::view::{Lines, Row};

/// Most recordings that are on their way at once.
const MAX_GUESTS: usize = 4;
/// The longest line, in bytes.
const MAX_LINE: usize = 64 * 1024 * 1024;
/// The longest name of a recording.
const MAX_ID: usize = 64;

/// The recordings that are on their way, the oldest first.
pub(super) struct Guests {
    all: Mutex<VecDeque<(String, Guest)>>,
    protocol: Option<Protocol>,
    shows_secrets: bool,
}

/// What is in a piece.
#[derive(Default, Serialize)]
pub(super) struct News {
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<Header>,
}

struct Guest {
    lines: Lines,
    n: usize,
    /// The beginning of a line whose end has not come yet; of a HAR file, all that has come.
    rest: Vec<u8>,
    is_har: bool,
}

impl Guests {
    pub(super) fn new(protocol: Option<Protocol>, shows_secrets: bool) -> Self {
        Self {
            all: Mutex::default(),
            protocol,
            shows_secrets,
        }
    }

    /// Explains the next piece of a recording, which `query` names: `id=NAME`, with `&last` at its end.
    pub(super) async fn explain(&self, query: &str, piece: Bytes) -> Result<News, String> {
        let (name, is_last) = match query.strip_suffix("&last") {
            Some(name) => (name, true),
            None => (query, false),
        };
        let name = name.strip_prefix("id=").filter(|it| it.len() <= MAX_ID);
        let name = name.ok_or("`id` is missing or too long")?;
        let mut guest = self.take(name);
        // Some milliseconds of work for a piece.
        let explained = tokio::task::spawn_blocking(move || {
            let news = guest.explain(&piece, is_last)?;
            Ok::<_, String>((guest, news))
        });
        let (guest, news) = explained.await.map_err(|error| error.to_string())??;
        if !is_last {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MAX_GUESTS {
                all.pop_front();
            }
            all.push_back((name.to_owned(), guest));
        }
        Ok(news)
    }

    /// Takes a recording out, or begins one.
    fn take(&self, name: &str) -> Guest {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().position(|(known, _)| known == name);
        match index.and_then(|index| all.remove(index)) {
            Some((_, guest)) => guest,
            None => Guest {
                lines: Lines::new(self.protocol, self.shows_secrets),
                n: 0,
                rest: Vec::new(),
                is_har: false,
            },
        }
    }
}

impl Guest {
    fn explain(&mut self, piece: &[u8], is_last: bool) -> Result<News, String> {
        let mut news = News::default();
        self.is_har |= self.n == 0 && self.rest.is_empty() && is_har(piece);
        if self.is_har {
            self.rest.extend_from_slice(piece);
            if self.rest.len() as u64 > MAX_HAR {
                return Err("the HAR file is too large".to_owned());
            }
            if is_last {
                let har = std::mem::take(&mut self.rest);
                let lines = open(&*har).map_err(|error| error.to_string())?.split(b'\n');
                for line in lines {
                    self.rest = line.map_err(|error| error.to_string())?;
                    self.line(&mut news);
                }
            }
            return Ok(news);
        }
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if self.rest.len() > MAX_LINE {
                return Err(format!("line {} is too long", self.n + 1));
            }
            if part.ends_with(b"\n") {
                self.line(&mut news);
            }
        }
        if is_last && !self.rest.is_empty() {
            self.line(&mut news);
        }
        Ok(news)
    }

    fn line(&mut self, news: &mut News) {
        self.n += 1;
        let line = String::from_utf8_lossy(&self.rest);
        let begin = |header| news.header = Some(header);
        news.rows.extend(self.lines.read(self.n, &line, begin));
        self.rest.clear();
    }
}
