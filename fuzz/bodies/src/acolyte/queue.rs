//! The queue of a connection, beside a plain list.

use acolyte_proto::id::RpcId;
use acolyte_proto::queue::{Aborted, Place, Queue, QueueError};

use crate::machine::FEW;
use crate::script::Script;

/// The rules of the queue over one list: the first of it runs.
#[derive(Default)]
struct Naive {
    line: Vec<(RpcId, u8)>,
    aborted: bool,
}

/// Runs a queue through operations, beside a list.
pub fn queue(data: &[u8]) {
    let mut script = Script::new(data);
    let mut queue = Queue::with_max_waiting(FEW);
    let mut naive = Naive::default();
    while let Some(op) = script.byte() {
        let id = RpcId::random(u64::from(script.byte_or_zero() % 8));
        match op % 4 {
            0 | 1 => {
                let expected = naive.start(&id, op);
                assert_eq!(queue.check(&id).is_ok(), expected.is_ok(), "what is asked");
                assert_eq!(queue.start(id, op), expected, "a start");
            }
            2 => assert_eq!(queue.abort(&id), naive.abort(&id), "an abort"),
            _ => {
                let running = queue.running().map(|(id, _)| id.clone());
                let id = running.filter(|_| op & 4 == 0).unwrap_or(id);
                assert_eq!(queue.finish(&id), naive.finish(&id), "an end");
            }
        }
        naive.is(&queue);
    }
    let drained: Vec<_> = queue.drain().collect();
    assert_eq!(drained, naive.line, "all of it");
    assert!(queue.is_empty(), "nothing is left");
}

impl Naive {
    fn place(&self, id: &RpcId) -> Option<usize> {
        self.line.iter().position(|it| it.0 == *id)
    }

    fn start(&mut self, id: &RpcId, chat: u8) -> Result<Place, QueueError> {
        if self.place(id).is_some() {
            return Err(QueueError::Busy { id: id.clone() });
        }
        let ahead = self.line.len();
        if ahead > FEW {
            return Err(QueueError::Full { max: FEW });
        }
        self.line.push((id.clone(), chat));
        Ok(match u32::try_from(ahead) {
            Ok(0) | Err(_) => Place::Running,
            Ok(position) => Place::Waiting { position },
        })
    }

    fn abort(&mut self, id: &RpcId) -> Aborted<u8> {
        match self.place(id) {
            None => Aborted::Unknown,
            Some(0) => Aborted::Running {
                again: std::mem::replace(&mut self.aborted, true),
            },
            Some(place) => Aborted::Waiting(self.line.remove(place).1),
        }
    }

    fn finish(&mut self, id: &RpcId) -> Option<u8> {
        self.place(id).filter(|place| *place == 0)?;
        self.aborted = false;
        Some(self.line.remove(0).1)
    }

    fn is(&self, queue: &Queue<u8>) {
        let running = self.line.first().map(|(id, chat)| (id, chat));
        assert_eq!(queue.running(), running, "what runs");
        let waiting = self.line.iter().skip(1).map(|it| &it.0).zip(1_u32..);
        assert!(queue.positions().eq(waiting), "what waits");
        assert_eq!(queue.len(), self.line.len(), "how many");
        assert_eq!(queue.is_aborted(), self.aborted, "whether it is aborted");
    }
}
