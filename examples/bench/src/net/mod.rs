//! Calls, streams and connections over TCP on this machine.

mod child;
mod kind;
mod load;
mod plain;
mod serve;
pub(crate) mod table;
mod values;

use tokio::runtime::Builder;

use crate::goals::{CALLS, Call};
use crate::work::Work;
use kind::Kind;
use load::Pace;

pub(crate) fn works() -> Vec<Work> {
    // Both ends in one process and on one thread. Connecting is not counted.
    let call = |&(name, kind, in_flight, ..): &Call| {
        // As often as is a multiple of what is in flight.
        let rounds = match (kind, in_flight) {
            ("connectonion", _) => 32,
            (_, 1_000) => 5,
            _ => 125,
        };
        Work::new(name, 0, move |n| both(kind, in_flight, n)).rounds((rounds * in_flight) as u64)
    };
    CALLS.iter().map(call).collect()
}

/// Runs this in a task, as most programs do.
fn on_one_thread(work: impl Future<Output = ()> + Send + 'static) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(runtime.spawn(work)).unwrap();
}

fn both(kind: &'static str, in_flight: usize, calls: u64) {
    on_one_thread(async move {
        let address = serve::here(kind).await;
        let pace = Pace {
            in_flight,
            calls: calls as usize,
            is_led: false,
        };
        load::load(Kind::parse(kind), &address, pace).await;
    });
}

/// Runs one end, as a child process of the table, on one thread.
pub(crate) fn run(words: &[&'static str]) {
    let words = words.to_vec();
    on_one_thread(async move { end(&words).await });
}

async fn end(words: &[&str]) {
    let number = |text: &str| -> usize { text.parse().expect("a number") };
    match words {
        ["serve", kind] => {
            let on_listen = Box::new(|address| println!("{address}"));
            serve::serve(Kind::parse(kind), on_listen).await;
        }
        ["hold", kind, address, count, bytes] => {
            plain::hold(Kind::parse(kind), address, number(count), number(bytes)).await;
        }
        ["load", kind, address, in_flight, calls] => {
            let pace = Pace {
                in_flight: number(in_flight),
                calls: number(calls),
                is_led: true,
            };
            load::load(Kind::parse(kind), address, pace).await;
        }
        ["listen", kind, address, connections, frames] => {
            let (connections, frames) = (number(connections), number(frames));
            plain::listen(Kind::parse(kind), address, connections, frames).await;
        }
        other => panic!("unknown: {other:?}"),
    }
}

/// Tells the parent that a phase has ended, and waits until it asks for the next. Ends the process
/// if there is no parent any more.
async fn phase() {
    println!();
    let wait = || {
        let mut line = String::new();
        if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
            std::process::exit(0);
        }
    };
    tokio::task::spawn_blocking(wait).await.unwrap();
}
