//! [`Call`]: a request with its answers.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::Row;

/// Most open calls of a connection that are remembered; older ones are forgotten.
const MAX_OPEN: usize = 4096;
/// Who asks may end the connection before the answer to this one.
const KEEPALIVE: &str = "PING";

/// How a call has gone so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum State {
    /// The last answer has not come yet.
    Pending,
    /// All of it was answered.
    Done,
    /// It was answered with an error.
    Failed,
    /// The connection ended before the last answer.
    Unanswered,
}

/// A request with its answers.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The line of the request.
    pub line: usize,
    /// The number of the connection.
    pub conn: u32,
    /// The kind of the request.
    pub kind: String,
    /// The id that the answers have.
    pub id: String,
    /// When it was asked, in seconds since the recording began.
    pub at: f64,
    /// When the first answer came, and the last one so far.
    pub answered: Option<(f64, f64)>,
    /// How many answers there are.
    pub answers: usize,
    /// How it has gone so far.
    pub state: State,
}

/// All calls, by their line.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: VecDeque<Call>,
    /// The open ones of each connection.
    open: HashMap<u32, VecDeque<usize>>,
}

impl Calls {
    pub(super) const fn all(&self) -> &VecDeque<Call> {
        &self.all
    }

    fn find(&mut self, line: usize) -> Option<&mut Call> {
        let index = self.all.partition_point(|call| call.line < line);
        self.all.get_mut(index).filter(|call| call.line == line)
    }

    /// Takes a frame. Returns the lines of the requests that nobody will answer any more.
    pub(super) fn push(&mut self, row: &Row) -> Vec<usize> {
        match row.entry {
            "close" | "eof" => return self.give_up(row.conn),
            _ => {}
        }
        if row.explained.asks
            && let Some(id) = &row.explained.call
        {
            self.ask(row, id);
        } else if let Some(asked) = &row.explained.answers {
            let line = asked.line;
            if let Some(call) = self.find(line) {
                let first = call.answered.map_or(row.at, |(first, _)| first);
                call.answered = Some((first, row.at));
                call.answers += 1;
                if call.state == State::Pending && !row.explained.partial {
                    call.state = State::Done;
                }
                if row.explained.failed {
                    call.state = State::Failed;
                }
                if call.state != State::Pending
                    && let Some(open) = self.open.get_mut(&row.conn)
                {
                    open.retain(|open| *open != line);
                }
            }
        }
        Vec::new()
    }

    fn ask(&mut self, row: &Row, id: &str) {
        let open = self.open.entry(row.conn).or_default();
        // Where there are no ids, the next request takes the place of one that runs.
        let all = &mut self.all;
        open.retain(|line| {
            let index = all.partition_point(|call| call.line < *line);
            match all.get_mut(index) {
                Some(call) if call.id == id && call.kind == row.explained.kind => {
                    call.state = State::Done;
                    false
                }
                _ => true,
            }
        });
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back(row.n);
        self.all.push_back(Call {
            line: row.n,
            conn: row.conn,
            kind: row.explained.kind.clone(),
            id: id.to_owned(),
            at: row.at,
            answered: None,
            answers: 0,
            state: State::Pending,
        });
    }

    fn give_up(&mut self, conn: u32) -> Vec<usize> {
        let mut lines: Vec<_> = self.open.remove(&conn).into_iter().flatten().collect();
        lines.retain(|line| match self.find(*line) {
            Some(call) if call.kind != KEEPALIVE => {
                call.state = State::Unanswered;
                true
            }
            _ => false,
        });
        lines
    }

    /// Gives up all that is open.
    pub(super) fn end(&mut self) -> Vec<usize> {
        let conns: Vec<_> = self.open.keys().copied().collect();
        conns.into_iter().flat_map(|it| self.give_up(it)).collect()
    }

    /// Forgets a call whose request is forgotten.
    pub(super) fn forget(&mut self, line: usize) {
        if self.all.front().is_some_and(|call| call.line <= line) {
            let call = self.all.pop_front();
            if let Some(open) = call.and_then(|call| self.open.get_mut(&call.conn)) {
                open.retain(|open| *open != line);
            }
        }
    }
}
