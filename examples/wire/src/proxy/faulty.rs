//! Passing on frames with faults: both directions of one WebSocket.

use std::borrow::Cow;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use crate::transcript::Kind;
use rpc_core::net::ws::{Role, Socket};
use rpc_core::testing::Side;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};

use super::scan::{Message, Scanner};
use super::{BUFFER, LINGER, Recorder};
use crate::tag;
use switchboard_faults::{Action, Frame, Lane, Plan, RawFrame};

/// The faults of a proxy.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    /// What goes wrong, and when.
    pub plan: Arc<Plan>,
    /// What repeats a run.
    pub seed: u64,
}

impl Faults {
    /// Returns what repeats a run and says why frames are missing: the seed and all rules; `None` without rules.
    pub(crate) fn note(&self) -> Option<String> {
        let note = || format!("faults with --seed {}: {}", self.seed, self.plan.rules());
        (!self.plan.is_empty()).then(note)
    }
}

/// How both ends of a connection end on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Not,
    Close(u16),
    Reset,
}

/// One direction.
struct Way<'a> {
    reads: &'a mut ReadHalf<Socket>,
    writes: &'a mut WriteHalf<Socket>,
    lane: Lane,
    from: Side,
    conn: u32,
    recorder: Option<Recorder>,
    ending: watch::Sender<Ending>,
}

/// Passes on all frames of a WebSocket, with faults. `first` is what came behind the heads.
pub(super) async fn pass(
    faults: &Faults,
    recorder: Option<&Recorder>,
    conn: u32,
    client: Socket,
    server: Socket,
    first: [Vec<u8>; 2],
) -> io::Result<()> {
    let (mut client_reads, mut client_writes) = tokio::io::split(client);
    let (mut server_reads, mut server_writes) = tokio::io::split(server);
    let (ending, _) = watch::channel(Ending::Not);
    let now = Instant::now();
    let way = |from, reads, writes| Way {
        reads,
        writes,
        lane: Lane::new(&faults.plan, faults.seed, conn, from, now),
        from,
        conn,
        recorder: recorder.cloned(),
        ending: ending.clone(),
    };
    let up = way(Side::Client, &mut client_reads, &mut server_writes);
    let down = way(Side::Server, &mut server_reads, &mut client_writes);
    let [up_first, down_first] = first;
    // Boxed: a task for each connection holds them.
    let passed = super::both(Box::pin(up.run(up_first)), Box::pin(down.run(down_first))).await;
    let how = *ending.borrow();
    if how == Ending::Reset || super::is_reset(&passed) {
        super::reset([
            client_reads.unsplit(client_writes),
            server_reads.unsplit(server_writes),
        ]);
    }
    match how {
        Ending::Not => passed,
        // Whatever the ends say to that.
        _ => Ok(()),
    }
}

impl Way<'_> {
    async fn run(mut self, first: Vec<u8>) -> io::Result<()> {
        let mut scanner = Scanner::keeping_bytes();
        let mut buffer = vec![0; BUFFER];
        let mut ending = self.ending.subscribe();
        let (mut is_open, mut is_closed) = (true, false);
        is_closed |= self.take(&mut scanner, &first)?;
        loop {
            let now = Instant::now();
            while let Some(action) = self.lane.poll(now) {
                self.note();
                match action {
                    Action::Send(bytes) => self.send(&bytes, &mut ending).await?,
                    Action::End => return super::shut(self.writes).await,
                    Action::Close(code) => {
                        self.ending.send_replace(Ending::Close(code));
                    }
                    Action::Reset => {
                        self.ending.send_replace(Ending::Reset);
                    }
                }
            }
            self.note();
            let how = *ending.borrow_and_update();
            match how {
                Ending::Not => {}
                Ending::Close(code) => {
                    // A peer that reads nothing would hold the connection for ever.
                    let closing = timeout(LINGER, self.close(code)).await;
                    return closing.unwrap_or_else(|late| Err(late.into()));
                }
                Ending::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
            }
            let next = self.lane.next();
            let reads_from = self.lane.reads_from();
            let may_read = is_open && self.lane.has_room();
            tokio::select! {
                () = until(next), if next.is_some() => {}
                () = until(Some(reads_from)), if may_read && reads_from > now => {}
                _ = ending.changed() => {}
                read = self.reads.read(&mut buffer), if may_read && reads_from <= now => match read {
                    Ok(len) if len > 0 => {
                        let bytes = buffer.get(..len).unwrap_or_default();
                        is_closed |= self.take(&mut scanner, bytes)?;
                    }
                    Ok(_) => {
                        is_open = false;
                        if !is_closed && let Some(recorder) = &self.recorder {
                            recorder.entry(self.conn, Some(self.from), Kind::Eof, "", None);
                        }
                        self.lane.end(Instant::now());
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Takes bytes that came. Returns whether there was a Close.
    fn take(&mut self, scanner: &mut Scanner, bytes: &[u8]) -> io::Result<bool> {
        scanner.push(bytes);
        let (now, mut is_closed) = (Instant::now(), false);
        loop {
            let message = scanner.next_message();
            self.lane.other(now, scanner.take_other());
            let Some(Message { kind, data, code }) = message else {
                return Ok(is_closed);
            };
            if let Some(recorder) = &self.recorder {
                recorder.entry(self.conn, Some(self.from), kind, &data, code);
            }
            is_closed |= kind == Kind::Close;
            let text = (kind == Kind::Text).then_some(&*data);
            let kind = match kind {
                // The bytes of what is no message pass as they are.
                Kind::Note => continue,
                kind => text.and_then(tag).unwrap_or(Cow::Borrowed(kind.name())),
            };
            let raw = scanner.take_bytes();
            self.lane.frame(now, &Frame { kind, text, raw });
        }
    }

    /// Records what was done on purpose.
    fn note(&mut self) {
        for note in self.lane.take_notes() {
            if let Some(recorder) = &self.recorder {
                recorder.entry(self.conn, Some(self.from), Kind::Fault, &note, None);
            }
        }
    }

    async fn close(&mut self, code: u16) -> io::Result<()> {
        let role = match self.from {
            Side::Client => Role::Client,
            Side::Server => Role::Server,
        };
        let close = RawFrame::close(code).into_bytes(role);
        self.writes.write_all(&close).await?;
        self.writes.flush().await?;
        super::shut(self.writes).await?;
        // What is unread would reset the connection, and the Close be lost.
        let mut buffer = vec![0; BUFFER];
        while self.reads.read(&mut buffer).await? > 0 {}
        Ok(())
    }

    /// Sends bytes: once the connection ends on purpose, not for long.
    async fn send(&mut self, bytes: &[u8], ending: &mut watch::Receiver<Ending>) -> io::Result<()> {
        let mut sending = pin!(async {
            self.writes.write_all(bytes).await?;
            self.writes.flush().await
        });
        tokio::select! {
            sent = &mut sending => return sent,
            _ = ending.changed() => {}
        }
        let how = *ending.borrow();
        match how {
            Ending::Reset => Err(io::ErrorKind::ConnectionReset.into()),
            _ => timeout(LINGER, sending).await?,
        }
    }
}

async fn until(time: Option<Instant>) {
    if let Some(time) = time {
        sleep_until(time.into()).await;
    }
}
