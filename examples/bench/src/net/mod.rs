//! Goals 5 to 8: calls, streams and connections over TCP on this machine, each end a process.

pub(crate) mod calls;
mod child;
#[cfg(feature = "nats")]
pub(crate) mod cluster;
mod fast;
mod foreign;
pub(crate) mod growth;
mod hold;
mod kind;
mod listen;
mod load;
pub(crate) mod memory;
pub(crate) mod raw;
pub(crate) mod relays;
mod rows;
mod serve;
pub(crate) mod streams;
mod values;
pub(crate) mod workers;
pub(crate) mod works;

pub(crate) use foreign::versions;

use kind::Kind;
use load::Pace;

/// Runs one end, as a child process of the table: on one thread, or on two workers.
pub(crate) fn run(words: &[&str]) {
    use tokio::runtime::Builder;
    let (mut builder, words) = match words {
        ["workers", words @ ..] => (Builder::new_multi_thread(), words),
        words => (Builder::new_current_thread(), words),
    };
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    // In a task, as most programs are: else it would run beside the workers, on a third thread, and
    // cost the single thread a look at the system whenever another task wakes it.
    let end = runtime.spawn(async move {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        end(&words).await;
    });
    runtime.block_on(end).unwrap();
}

async fn end(words: &[&str]) {
    let number = |text: &str| -> usize { text.parse().expect("a number") };
    match words {
        ["serve", kind] => {
            let tell = Box::new(|address| println!("{address}"));
            serve::serve(Kind::parse(kind), tell).await;
        }
        ["hold", kind, address, count] => {
            hold::hold(Kind::parse(kind), address, number(count)).await
        }
        ["load", kind, address, in_flight, calls] => {
            let pace = Pace {
                in_flight: number(in_flight),
                calls: number(calls),
                is_led: true,
            };
            load::load(Kind::parse(kind), address, pace).await;
        }
        ["relay", way, server] => relays::relay(way, server).await,
        ["both", kind, in_flight, calls] => {
            workers::both(kind, number(in_flight), number(calls)).await;
        }
        ["listen", kind, address, connections, frames] => {
            listen::listen(
                Kind::parse(kind),
                address,
                number(connections),
                number(frames),
            )
            .await;
        }
        #[cfg(feature = "nats")]
        ["cluster", words @ ..] => cluster::end(words).await,
        other => panic!("unknown: {other:?}"),
    }
}

/// Tells the parent that a phase has ended, and waits until it asks for the next.
async fn phase(done: &str) {
    println!("{done}");
    tokio::task::spawn_blocking(wait).await.unwrap();
}

/// Waits for a line of the parent; ends the process if there is no parent any more.
fn wait() {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(0);
    }
}

/// The name of our own end.
const OURS: &str = "exoclaw";

/// What the goal asks of a peer: its name, and the least ratio.
type Asked = (&'static str, Option<f64>);

/// Measures ours and each of the peers in turn, several times: what else the machine does then
/// disturbs all of them alike. Ours come first.
fn in_turn<T>(
    times: usize,
    ours: &str,
    peers: &[Asked],
    measure: impl Fn(&str) -> T,
) -> Vec<Vec<T>> {
    let mut all: Vec<Vec<T>> = Vec::new();
    all.resize_with(peers.len() + 1, Vec::new);
    for _ in 0..times {
        let kinds = std::iter::once(ours).chain(peers.iter().map(|(peer, _)| *peer));
        for (kind, costs) in kinds.zip(&mut all) {
            costs.push(measure(kind));
        }
    }
    all
}

fn least(costs: impl Iterator<Item = f64>) -> f64 {
    costs.fold(f64::INFINITY, f64::min)
}

/// The ratios of what was measured in turn.
fn ratios<T>(ours: &[T], theirs: &[T], cost: impl Fn(&T) -> f64) -> Vec<f64> {
    let pairs = ours.iter().zip(theirs);
    pairs
        .map(|(ours, theirs)| cost(theirs) / cost(ours))
        .collect()
}
