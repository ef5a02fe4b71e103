//! Tests of [`serve`]: when the task is woken, what it writes in a turn, how a connection ends.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use futures_util::{FutureExt, SinkExt, StreamExt};

use super::*;
use crate::error::Disconnect;
use crate::message::{Incoming, Outgoing};
use crate::net::mem::{self, MemTransport};
use crate::net::{Cancellation, Canceller, Message};

/// Repeats what it is told, and has room for a few frames.
#[derive(Default)]
struct Echo {
    out: Vec<Outgoing>,
    events: Vec<Event>,
    /// The most events that have waited.
    most_events: usize,
    /// A text found no room.
    blocked: bool,
    closed: bool,
}

enum Event {
    Text(String),
    Writable,
    Closed,
}

impl Echo {
    fn send(&mut self, text: &str) -> bool {
        let has_room = self.out.len() < 2 && !self.closed;
        self.blocked |= !has_room;
        if has_room {
            self.out.push(Outgoing::Text(text.to_owned().into()));
        }
        has_room
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.events.push(Event::Closed);
        }
    }
}

impl Machine for Echo {
    type Event = Event;

    fn handle_message(&mut self, message: Incoming<'_>, _: Instant) {
        if let Incoming::Text(text) = message {
            self.events.push(Event::Text(text.to_owned()));
            self.most_events = self.most_events.max(self.events.len());
        }
    }

    fn handle_disconnect(&mut self, _: Disconnect, _: Instant) {
        self.out.clear();
        self.end();
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self) -> Option<Outgoing> {
        let next = (!self.out.is_empty()).then(|| self.out.remove(0));
        if next.is_some() && std::mem::take(&mut self.blocked) {
            self.events.push(Event::Writable);
        }
        next
    }

    fn poll_event(&mut self) -> Option<Event> {
        (!self.events.is_empty()).then(|| self.events.remove(0))
    }

    fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        None
    }

    fn is_closed(&self) -> bool {
        self.closed
    }

    fn close_with(&mut self, frame: CloseFrame, _: Instant) {
        self.out.push(Outgoing::Close(frame));
        self.end();
    }

    fn in_flight(&self) -> usize {
        1
    }
}

/// Answers each text in a task; "hang" never ends, "more" is three texts.
struct Answers {
    handle: Handle<Echo>,
    disconnected: Arc<AtomicUsize>,
}

impl ConnectionHandler for Answers {
    type Machine = Echo;
    const SYSTEM: &'static str = "test";

    fn on_event(&mut self, event: Event, tasks: &mut Running) -> Option<CloseReason> {
        let said = match event {
            Event::Text(said) => said,
            Event::Writable => {
                self.handle.notify();
                return None;
            }
            Event::Closed => return Some(CloseReason::Local),
        };
        let handle = self.handle.clone();
        tasks.push(async move {
            match said.as_str() {
                "hang" => std::future::pending().await,
                "close" => {
                    handle.close_with(CloseFrame::new(4000, "bye"));
                    handle.with(|echo| echo.send("last words"));
                }
                "more" => {
                    for text in ["1", "2", "3"] {
                        handle.retry(|echo| echo.send(text).then_some(())).await;
                    }
                }
                other => {
                    handle.with(|echo| echo.send(other));
                }
            }
        });
        None
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        let handle = self.handle.clone();
        tasks.push(async move {
            let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "");
            handle.drain(Duration::from_secs(1), frame).await;
        });
    }

    fn disconnected(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let count = Arc::clone(&self.disconnected);
        Box::pin(async move {
            count.fetch_add(1, Ordering::Relaxed);
        })
    }
}

struct Served {
    handle: Handle<Echo>,
    peer: MemTransport,
    disconnected: Arc<AtomicUsize>,
    _canceller: Canceller,
}

fn serve_echo() -> (Served, impl Future<Output = CloseReason> + Send) {
    let handle = Handle::new(Echo::default());
    let disconnected = Arc::new(AtomicUsize::new(0));
    let answers = Answers {
        handle: handle.clone(),
        disconnected: Arc::clone(&disconnected),
    };
    let (peer, transport) = mem::duplex(16);
    let (canceller, shutdown) = Cancellation::new();
    let serving = serve(
        handle.clone(),
        transport,
        answers,
        DriverConfig::default(),
        shutdown.into_cancelled(),
    );
    let served = Served {
        handle,
        peer,
        disconnected,
        _canceller: canceller,
    };
    (served, serving)
}

impl Served {
    async fn send(&mut self, text: &str) {
        self.peer
            .send(Outgoing::Text(text.to_owned().into()))
            .await
            .unwrap();
    }

    /// What has arrived at the peer.
    fn written(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.peer.next().now_or_never())
            .map(|message| match message {
                Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
                Some(Ok(Message::Close(Some(frame)))) => frame.code.to_string(),
                other => format!("{other:?}"),
            })
            .take_while(|text| text != "None")
            .collect()
    }
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn output_of_a_handler_is_sent_in_the_same_turn() {
    let (mut served, serving) = serve_echo();
    let mut serving = pin!(serving);
    served.send("a").await;
    served.send("b").await;
    assert!(serving.as_mut().now_or_never().is_none());
    assert_eq!(served.written(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_few_messages_are_handled_before_more_are_read() {
    let (mut served, serving) = serve_echo();
    for _ in 0..16 {
        served.send("a").await;
    }
    assert!(serving.now_or_never().is_none());
    assert_eq!(served.handle.read(|echo| echo.most_events), AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn the_task_is_woken_once_for_many_writes() {
    let (mut served, serving) = serve_echo();
    let mut serving = pin!(serving);
    let wakes = Arc::new(Wakes::default());
    let waker = Arc::clone(&wakes).into();
    let mut cx = Context::from_waker(&waker);
    // The first turns arm what there is to arm.
    while serving.as_mut().poll(&mut cx).is_pending() && wakes.0.swap(0, Ordering::SeqCst) > 0 {}
    for text in ["1", "2"] {
        assert!(served.handle.with(|echo| echo.send(text)));
    }
    assert_eq!(wakes.0.swap(0, Ordering::SeqCst), 1);
    assert!(serving.as_mut().poll(&mut cx).is_pending());
    assert_eq!(served.written(), ["1", "2"]);
    assert_eq!(wakes.0.swap(0, Ordering::SeqCst), 0);
    assert!(served.handle.with(|echo| echo.send("3")));
    assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_without_room_resumes_when_there_is_some() {
    let (mut served, serving) = serve_echo();
    let task = tokio::spawn(serving);
    served.send("more").await;
    for expected in ["1", "2", "3"] {
        let Some(Ok(Message::Text(text))) = served.peer.next().await else {
            panic!("no text");
        };
        assert_eq!(text.as_str(), expected);
    }
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_close_is_sent_after_output_of_the_same_turn() {
    let (mut served, serving) = serve_echo();
    let mut serving = pin!(serving);
    served.send("close").await;
    assert_eq!(serving.as_mut().now_or_never(), Some(CloseReason::Local));
    assert_eq!(served.written(), ["last words", "4000"]);
    assert_eq!(served.disconnected.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_closes_at_its_deadline() {
    let (mut served, serving) = serve_echo();
    let task = tokio::spawn(serving);
    served.send("hang").await;
    tokio::task::yield_now().await;
    drop(served._canceller);
    let Some(Ok(Message::Close(Some(frame)))) = served.peer.next().await else {
        panic!("no Close");
    };
    assert_eq!(frame.code, CloseFrame::GOING_AWAY);
    assert_eq!(task.await.unwrap(), CloseReason::Local);
    assert_eq!(served.disconnected.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cut_ends_the_connection_without_a_closing_handshake() {
    let (mut served, serving) = serve_echo();
    let task = tokio::spawn(serving);
    tokio::task::yield_now().await;
    served.handle.cut();
    assert!(!matches!(served.peer.next().await, Some(Ok(_))));
    task.await.unwrap();
    assert_eq!(served.disconnected.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_connections_task_closes_its_handles() {
    let (served, serving) = serve_echo();
    let mut waiting = pin!(served.handle.retry(|echo| echo.closed.then_some(())));
    assert!(waiting.as_mut().now_or_never().is_none());
    drop(serving);
    assert!(waiting.now_or_never().is_some());
}
