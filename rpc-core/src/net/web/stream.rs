//! [`WsStream`]: a page's WebSocket as a [`Transport`](crate::net::Transport).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use js_sys::{ArrayBuffer, JsString, Uint8Array};
use send_wrapper::SendWrapper;
use wasm_bindgen::JsCast as _;
use wasm_bindgen::closure::Closure;
use web_sys::{BinaryType, CloseEvent, MessageEvent, WebSocket};

use super::config::WsConfig;
use super::url::Target;
use crate::message::{CloseFrame, Outgoing, Text};
use crate::net::dial::DialError;
use crate::net::time::{Sleep, sleep};
use crate::net::transport::{Message, TransportError};

/// Bytes that may wait in the browser before the sink is not ready.
const MAX_BUFFERED: u32 = 64 * 1024;
/// How often the sink looks whether they have left: the browser does not say.
const BUFFER_POLL: Duration = Duration::from_millis(20);
/// Unread bytes, in messages of the largest size.
const MAX_UNREAD: usize = 4;
/// What a page sees where the connection ended without a Close.
const ABNORMAL: u16 = 1006;
/// What a page sees where the Close carried no code.
const NO_CODE: u16 = 1005;

/// An open WebSocket of a page. Dropping it closes it.
pub struct WsStream(SendWrapper<Socket>);

crate::debug::debug_fields!([] WsStream, this => { state: this.0.socket.ready_state() });

struct Socket {
    socket: WebSocket,
    inbox: Rc<RefCell<Inbox>>,
    max_outgoing: usize,
    buffer_poll: Option<Pin<Box<Sleep>>>,
    _callbacks: (
        Closure<dyn FnMut()>,
        Closure<dyn FnMut(MessageEvent)>,
        Closure<dyn FnMut(CloseEvent)>,
    ),
}

/// What the socket's callbacks have reported.
#[derive(Default)]
struct Inbox {
    max_message: usize,
    is_open: bool,
    messages: VecDeque<Result<Message, TransportError>>,
    bytes: usize,
    /// Whether the socket has closed, or nothing more is taken from it.
    ended: bool,
    waker: Option<Waker>,
}

impl Inbox {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Takes a message. An error says why the connection has to end.
    fn push(&mut self, event: &MessageEvent) -> Result<(), TransportError> {
        let message = read(event, self.max_message)?;
        let max = self.max_message.saturating_mul(MAX_UNREAD);
        if self.bytes + cost(&message) > max {
            return Err(TransportError::SlowConsumer { max });
        }
        self.queue(message);
        Ok(())
    }

    fn queue(&mut self, message: Message) {
        self.bytes += cost(&message);
        self.messages.push_back(Ok(message));
    }
}

fn cost(message: &Message) -> usize {
    size_of::<Message>() + message.len()
}

fn read(event: &MessageEvent, max: usize) -> Result<Message, TransportError> {
    let data = event.data();
    if let Some(text) = data.dyn_ref::<JsString>() {
        // It has at least as many bytes as UTF-16 units.
        let text = (text.length() as usize <= max).then(|| String::from(text));
        let text = text.filter(|text| text.len() <= max);
        let text = text.ok_or(TransportError::TooLarge { max })?;
        return Ok(Message::Text(Text::from(text)));
    }
    let bytes = Uint8Array::new(data.unchecked_ref::<ArrayBuffer>());
    if bytes.length() as usize > max {
        return Err(TransportError::TooLarge { max });
    }
    Ok(Message::Binary(Bytes::from(bytes.to_vec())))
}

/// Begins the closing handshake, with a code that a page may send.
fn close(socket: &WebSocket, frame: &CloseFrame) {
    let code = match frame.code {
        code @ (CloseFrame::NORMAL | 3000..=4999) => code,
        code => 4000 + code % 1000,
    };
    // It refuses only reasons that are too long, and closes without one then.
    if socket
        .close_with_code_and_reason(code, &frame.reason)
        .is_err()
    {
        let _ = socket.close();
    }
}

impl WsStream {
    /// Opens a WebSocket and waits until it is open. The caller has the deadline.
    pub(super) async fn open(target: &Target, config: &WsConfig) -> Result<Self, DialError> {
        let stream = Self::start(target, config)?;
        let is_open = std::future::poll_fn(|cx| stream.poll_open(cx)).await;
        if is_open {
            return Ok(stream);
        }
        let why = "the browser could not connect, and does not say why";
        Err(target.unreachable(io::Error::other(why)))
    }

    fn start(target: &Target, config: &WsConfig) -> Result<Self, DialError> {
        if !config.headers.is_empty() {
            return Err(target.bad("a page cannot send headers"));
        }
        let protocols = config.subprotocols.iter().map(String::as_str);
        let protocols: js_sys::Array = protocols.map(JsString::from).collect();
        let socket = WebSocket::new_with_str_sequence(&target.uri.to_string(), &protocols)
            .map_err(|why| {
                let why: Result<js_sys::Error, _> = why.dyn_into();
                let why = why.map_or("it is refused".to_owned(), |it| it.message().into());
                target.bad(&why)
            })?;
        socket.set_binary_type(BinaryType::Arraybuffer);
        let inbox = Rc::new(RefCell::new(Inbox {
            max_message: config.max_message,
            ..Inbox::default()
        }));
        let shared = Rc::clone(&inbox);
        let line = socket.clone();
        let on_open = Closure::<dyn FnMut()>::new(move || {
            let mut inbox = shared.borrow_mut();
            // Before version 24, Node reports a failed attempt by its error alone.
            inbox.is_open |= line.ready_state() == WebSocket::OPEN;
            inbox.ended |= !inbox.is_open;
            inbox.wake();
        });
        let (shared, line) = (Rc::clone(&inbox), socket.clone());
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event| {
            let mut inbox = shared.borrow_mut();
            if inbox.ended {
                return;
            }
            if let Err(error) = inbox.push(&event) {
                let code = match error {
                    TransportError::TooLarge { .. } => CloseFrame::TOO_BIG,
                    _ => CloseFrame::POLICY,
                };
                close(&line, &CloseFrame::new(code, error.to_string()));
                inbox.messages.push_back(Err(error));
                inbox.ended = true;
            }
            inbox.wake();
        });
        let shared = Rc::clone(&inbox);
        let on_close = Closure::<dyn FnMut(CloseEvent)>::new(move |event: CloseEvent| {
            let mut inbox = shared.borrow_mut();
            if !inbox.ended && event.code() != ABNORMAL {
                let frame = CloseFrame::new(event.code(), event.reason());
                let frame = (frame.code != NO_CODE).then_some(frame);
                inbox.queue(Message::Close(frame));
            }
            inbox.ended = true;
            inbox.wake();
        });
        socket.set_onerror(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onopen(Some(on_open.as_ref().unchecked_ref()));
        socket.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        socket.set_onclose(Some(on_close.as_ref().unchecked_ref()));
        Ok(Self(SendWrapper::new(Socket {
            socket,
            inbox,
            max_outgoing: config.max_outgoing,
            buffer_poll: None,
            _callbacks: (on_open, on_message, on_close),
        })))
    }

    fn poll_open(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut inbox = self.0.inbox.borrow_mut();
        if inbox.is_open || inbox.ended {
            return Poll::Ready(inbox.is_open);
        }
        inbox.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the subprotocol that the server has selected.
    #[must_use]
    pub fn subprotocol(&self) -> Option<String> {
        Some(self.0.socket.protocol()).filter(|name| !name.is_empty())
    }
}

impl Stream for WsStream {
    type Item = Result<Message, TransportError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut inbox = self.0.inbox.borrow_mut();
        match inbox.messages.pop_front() {
            Some(next) => {
                let taken = next.as_ref().map_or(0, cost);
                inbox.bytes = inbox.bytes.saturating_sub(taken);
                Poll::Ready(Some(next))
            }
            None if inbox.ended => Poll::Ready(None),
            None => {
                inbox.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Sink<Outgoing> for WsStream {
    type Error = TransportError;

    fn poll_ready(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TransportError>> {
        let this = &mut *self.0;
        loop {
            if this.inbox.borrow().ended {
                return Poll::Ready(Err(TransportError::Closed));
            }
            // While it closes, there is nothing to wait for but its end.
            let is_open = this.socket.ready_state() == WebSocket::OPEN;
            if !is_open || this.socket.buffered_amount() <= MAX_BUFFERED {
                this.buffer_poll = None;
                return Poll::Ready(Ok(()));
            }
            let wait = this
                .buffer_poll
                .get_or_insert_with(|| Box::pin(sleep(BUFFER_POLL)));
            if wait.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            this.buffer_poll = None;
        }
    }

    fn start_send(self: Pin<&mut Self>, frame: Outgoing) -> Result<(), TransportError> {
        let this = &*self.0;
        // One that closes discards what is sent, and its end tells why.
        if this.inbox.borrow().ended {
            return Err(TransportError::Closed);
        }
        let is_data = matches!(frame, Outgoing::Text(_) | Outgoing::Binary(_));
        if is_data && frame.len() > this.max_outgoing {
            let why = "the message is larger than `max_outgoing`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why).into());
        }
        let sent = match frame {
            Outgoing::Text(text) => this.socket.send_with_str(text.as_str()),
            Outgoing::Binary(bytes) => this.socket.send_with_u8_array(&bytes),
            Outgoing::Ping(payload) => {
                let mut inbox = this.inbox.borrow_mut();
                inbox.queue(Message::Pong(payload));
                inbox.wake();
                Ok(())
            }
            Outgoing::Close(frame) => {
                close(&this.socket, &frame);
                Ok(())
            }
            Outgoing::Abort => return Err(TransportError::is_no_frame()),
        };
        sent.map_err(|_| TransportError::Closed)
    }

    /// What was sent is the browser's.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        if self.0.socket.ready_state() == WebSocket::OPEN {
            close(&self.0.socket, &CloseFrame::new(CloseFrame::NORMAL, ""));
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.socket.set_onerror(None);
        self.socket.set_onopen(None);
        self.socket.set_onmessage(None);
        self.socket.set_onclose(None);
        // Nothing happens to one that is closed.
        let _ = self.socket.close();
    }
}
