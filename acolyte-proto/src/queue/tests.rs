//! The queue of one connection, alone and against a naive model.

use proptest::prelude::*;

use super::*;

fn id(n: usize) -> RpcId {
    format!("rpc_{n}").parse::<RpcId>().unwrap()
}

fn line(queue: &Queue<usize>) -> Vec<(RpcId, u32)> {
    let positions = queue.positions();
    positions.map(|(id, at)| (id.clone(), at)).collect()
}

#[test]
fn the_first_chat_runs_and_the_others_wait_from_place_1() {
    let mut queue = Queue::new(25);
    assert_eq!(queue.start(id(0), 0), Ok(QueuePosition::Running));
    assert_eq!(
        queue.start(id(1), 1),
        Ok(QueuePosition::Waiting { position: 1 })
    );
    assert_eq!(
        queue.start(id(2), 2),
        Ok(QueuePosition::Waiting { position: 2 })
    );
    assert_eq!((queue.len(), queue.waiting()), (3, 2));
    assert_eq!(queue.running(), Some((&id(0), &0)));
}

#[test]
fn one_chat_runs_25_wait_and_the_27th_is_refused() {
    let mut queue = Queue::new(25);
    for n in 0..26 {
        assert!(queue.start(id(n), n).is_ok(), "{n}");
    }
    let refused = queue.start(id(26), 26).unwrap_err();
    assert_eq!(refused, QueueError::Full { max: 25 });
    assert_eq!(
        refused.to_string(),
        "RPC queue is full (25 queued). Try again shortly."
    );
    queue.finish(&id(0));
    assert!(queue.start(id(26), 26).is_ok());
}

#[test]
fn an_id_in_use_is_refused() {
    let mut queue = Queue::new(25);
    queue.start(id(0), 0).unwrap();
    queue.start(id(1), 1).unwrap();
    queue.abort(&id(0));
    for n in [0, 1] {
        let busy = queue.start(id(n), n).unwrap_err();
        assert_eq!(busy, QueueError::Busy { id: id(n) });
        let text = format!("Chat request already running for id: rpc_{n}");
        assert_eq!(busy.to_string(), text);
    }
    queue.finish(&id(0));
    assert_eq!(
        queue.start(id(0), 0),
        Ok(QueuePosition::Waiting { position: 1 })
    );
}

#[test]
fn aborting_a_queued_chat_moves_those_behind_it() {
    let mut queue = Queue::new(25);
    for n in 0..4 {
        queue.start(id(n), n).unwrap();
    }
    assert_eq!(queue.abort(&id(2)), Aborted::Waiting(2));
    assert_eq!(queue.abort(&id(2)), Aborted::Unknown);
    assert_eq!(line(&queue), [(id(1), 1), (id(3), 2)]);
}

#[test]
fn an_aborted_chat_runs_until_it_finishes() {
    let mut queue = Queue::new(25);
    queue.start(id(0), 0).unwrap();
    queue.start(id(1), 1).unwrap();
    assert_eq!(queue.abort(&id(0)), Aborted::Running { again: false });
    assert_eq!(queue.abort(&id(0)), Aborted::Running { again: true });
    assert!(queue.is_aborted());
    assert_eq!(line(&queue), [(id(1), 1)]);
    assert_eq!(queue.finish(&id(0)), Some(0));
    assert!(!queue.is_aborted());
    assert_eq!(queue.running(), Some((&id(1), &1)));
}

#[test]
fn only_the_running_chat_is_finished() {
    let mut queue = Queue::new(25);
    queue.start(id(0), 0).unwrap();
    queue.start(id(1), 1).unwrap();
    assert_eq!(queue.finish(&id(1)), None);
    assert_eq!(queue.finish(&id(7)), None);
    assert_eq!(queue.len(), 2);
}

#[test]
fn a_drained_queue_gives_the_running_chat_first_and_is_empty() {
    let mut queue = Queue::new(25);
    for n in 0..3 {
        queue.start(id(n), n).unwrap();
    }
    let all: Vec<_> = queue.drain().map(|(_, chat)| chat).collect();
    assert_eq!(all, [0, 1, 2]);
    assert!(queue.is_empty() && queue.start(id(0), 0) == Ok(QueuePosition::Running));
}

/// The same rules over one list, the running chat at its head.
#[derive(Default)]
struct Naive {
    chats: Vec<(usize, usize)>,
    aborted: bool,
    max_waiting: usize,
}

impl Naive {
    fn start(&mut self, n: usize, chat: usize) -> Result<QueuePosition, QueueError> {
        if self.chats.iter().any(|(there, _)| *there == n) {
            return Err(QueueError::Busy { id: id(n) });
        }
        if self.chats.len() > self.max_waiting {
            return Err(QueueError::Full {
                max: self.max_waiting,
            });
        }
        self.chats.push((n, chat));
        Ok(match self.chats.len() {
            1 => QueuePosition::Running,
            len => QueuePosition::Waiting {
                position: u32::try_from(len - 1).unwrap(),
            },
        })
    }

    fn abort(&mut self, n: usize) -> Aborted<usize> {
        match self.chats.iter().position(|(there, _)| *there == n) {
            None => Aborted::Unknown,
            Some(0) => Aborted::Running {
                again: std::mem::replace(&mut self.aborted, true),
            },
            Some(place) => Aborted::Waiting(self.chats.remove(place).1),
        }
    }

    fn finish(&mut self, n: usize) -> Option<usize> {
        if self.chats.first().is_none_or(|(there, _)| *there != n) {
            return None;
        }
        self.aborted = false;
        Some(self.chats.remove(0).1)
    }

    fn line(&self) -> Vec<(RpcId, u32)> {
        let waiting = self.chats.iter().skip(1).zip(1..);
        waiting.map(|((n, _), at)| (id(*n), at)).collect()
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Start(usize),
    Abort(usize),
    Finish(usize),
    FinishRunning,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..8usize).prop_map(Step::Start),
        2 => (0..8usize).prop_map(Step::Abort),
        1 => (0..8usize).prop_map(Step::Finish),
        2 => Just(Step::FinishRunning),
    ];
    prop::collection::vec(step, 0..64)
}

proptest! {
    #[test]
    fn the_queue_agrees_with_a_plain_list(max_waiting in 0..5usize, steps in steps()) {
        let mut queue = Queue::new(max_waiting);
        let mut naive = Naive { max_waiting, ..Naive::default() };
        for (chat, step) in steps.into_iter().enumerate() {
            match step {
                Step::Start(n) => {
                    prop_assert_eq!(queue.check(&id(n)).is_ok(), naive_takes(&naive, n));
                    prop_assert_eq!(queue.start(id(n), chat), naive.start(n, chat));
                }
                Step::Abort(n) => prop_assert_eq!(queue.abort(&id(n)), naive.abort(n)),
                Step::Finish(n) => prop_assert_eq!(queue.finish(&id(n)), naive.finish(n)),
                Step::FinishRunning => {
                    let running = queue.running().map(|(id, _)| id.clone());
                    let first = naive.chats.first().map(|(n, _)| *n);
                    prop_assert_eq!(&running, &first.map(id));
                    if let (Some(running), Some(first)) = (running, first) {
                        prop_assert_eq!(queue.finish(&running), naive.finish(first));
                    }
                }
            }
            prop_assert_eq!(line(&queue), naive.line());
            prop_assert_eq!(queue.len(), naive.chats.len());
            prop_assert_eq!(queue.is_empty(), naive.chats.is_empty());
            prop_assert_eq!(queue.is_aborted(), naive.aborted);
            let first = naive.chats.first().map(|(_, chat)| chat);
            prop_assert_eq!(queue.running().map(|(_, chat)| chat), first);
        }
    }
}

fn naive_takes(naive: &Naive, n: usize) -> bool {
    naive.chats.len() <= naive.max_waiting && naive.chats.iter().all(|(there, _)| *there != n)
}
