//! Secrets stay out of what the crate logs and prints, at every level.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Frame, LinkConfig};
use rpc_core::{CallError, Secret};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::toy::house::{House, config, dialer};
use crate::toy::net::{End, GuestSide, echo};

/// The toy protocol's redactor knows the second half of it.
const SECRET: &str = "topsecret";

/// Writes everything that is traced, with all fields, into one text.
#[derive(Clone, Default)]
struct Capture(Arc<Mutex<String>>);

impl Capture {
    fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

impl Visit for Capture {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let mut text = self.0.lock().unwrap();
        write!(text, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Capture {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        span.record(&mut self.clone());
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let line = format!(
            "\n{} {}",
            event.metadata().level(),
            event.metadata().target()
        );
        self.0.lock().unwrap().push_str(&line);
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn observed(log: &Capture) -> LinkConfig {
    let log = log.clone();
    let observer = move |frame: &Frame<'_>| {
        let text = frame.text().unwrap_or_default().into_owned();
        write!(log.0.lock().unwrap(), "\n{frame:?} {text}").unwrap();
    };
    let mut watched = config();
    watched.driver.observer = Some(Arc::new(observer));
    watched
}

/// A whole life over sockets whose frames, headers, URL and subprotocol hold the secret.
async fn session(log: &Capture) -> String {
    let mut printed = String::new();
    let mut house = House::open().await;
    let url = format!("ws://{}/?token={SECRET}", house.address);
    let dialer = WsDialer::new(&url)
        .unwrap()
        .with_secret_header("x-key", &Secret::from(SECRET))
        .and_then(|dialer| dialer.with_header("Authorization", &format!("Bearer {SECRET}")))
        .unwrap();
    let side = GuestSide::new(SECRET);
    let guest = End::spawn(rpc_core::net::open(side, dialer.clone(), observed(log)));
    let room = house.room().await;
    let (link, guest_link) = (room.link.clone(), guest.link.clone());
    let answering = tokio::spawn(echo(guest));
    let answer = link.call_with("ask", |m, now| m.ask(SECRET, now)).await;
    assert_eq!(answer, Ok(SECRET.to_owned()));
    link.command(|m, _| m.tell(SECRET)).await.unwrap().unwrap();
    write!(
        printed,
        "{dialer:?} {link:?} {guest_link:?} {:?}",
        room.events
    )
    .unwrap();
    write!(printed, "{:?}", dialer.config()).unwrap();
    let long = SECRET.repeat(1 << 20);
    let refused = link.call_with("ask", move |m, now| m.ask(&long, now)).await;
    assert!(matches!(refused, Err(CallError::Refused(_))));
    write!(printed, "{refused:?} {}", refused.as_ref().unwrap_err()).unwrap();
    link.close();
    answering.await.unwrap();
    // A subprotocol that the server does not select.
    let offered = self::dialer(house.address)
        .with_subprotocol(SECRET)
        .unwrap();
    write!(printed, "{offered:?}").unwrap();
    let open = End::spawn(rpc_core::net::open(
        GuestSide::new("ann"),
        offered,
        observed(log),
    ));
    house.room().await;
    write!(printed, "{:?}", open.link).unwrap();
    open.link.close();
    let reason = open.task.await.unwrap();
    write!(printed, "{reason:?} {reason}").unwrap();
    // A dial that fails with the secret in its URL.
    let nowhere = format!("ws://127.0.0.1:1/?token={SECRET}");
    let nowhere = WsDialer::new(&nowhere).unwrap();
    let failed = End::spawn(rpc_core::net::open(
        GuestSide::new("ann"),
        nowhere,
        observed(log),
    ));
    write!(printed, "{:?}", failed.task.await.unwrap()).unwrap();
    house.shutdown.drain(crate::toy::house::DEADLINE).await;
    printed
}

/// Runs `session` twice and returns what the second run traced: a statement that another test's
/// thread reached first may have been switched off before this subscriber was known.
fn traced<R>(mut session: impl AsyncFnMut() -> R) -> (String, R) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let capture = Capture::default();
    let result = tracing::subscriber::with_default(capture.clone(), || {
        runtime.block_on(session());
        tracing::callsite::rebuild_interest_cache();
        capture.0.lock().unwrap().clear();
        runtime.block_on(session())
    });
    (capture.text(), result)
}

#[test]
fn no_log_line_and_no_debug_output_holds_a_secret() {
    let seen = Capture::default();
    let (traced, printed) = traced(async || session(&seen).await);
    assert!(
        traced.contains("rpc_core") && traced.contains("Ready"),
        "{traced}"
    );
    assert!(!traced.contains(SECRET), "{traced}");
    assert!(!printed.contains(SECRET), "{printed}");
    // The observer saw the frames after the protocol's redactor.
    let seen = seen.text();
    assert!(seen.contains("top***") && !seen.contains(SECRET), "{seen}");
}

#[test]
fn nothing_is_logged_at_info_in_normal_operation() {
    let (traced, ()) = traced(async || {
        let mut house = House::open().await;
        let room = house.echoing("ann").await;
        let answer = room.link.call_with("ask", |m, now| m.ask("hi", now)).await;
        assert_eq!(answer, Ok("hi".to_owned()));
        house.shutdown.drain(crate::toy::house::DEADLINE).await;
    });
    assert!(traced.contains("Ready"), "{traced}");
    for level in ["INFO", "WARN", "ERROR"] {
        assert!(!traced.contains(level), "{traced}");
    }
}
