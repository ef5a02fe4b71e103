//! How many allocations things cost once they are warm. Printed, and bounded from above.

use std::time::{Duration, Instant};

use allocation_counter::measure;
use rpc_core::net::{Driver, LinkConfig, mem};
use rpc_core::{
    Json, Limits, MachineCore, Match, PendingCalls, PendingMap, Str, json, sse, tagged,
};

use crate::toy::guest::{Guest, GuestEvent};
use crate::toy::host::{Host, HostEvent};
use crate::toy::net::{connected, echo};

const ROUNDS: u64 = 1_000;

/// Allocations per round, in hundredths.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn per_round(what: &str, mut round: impl FnMut()) -> u64 {
    for _ in 0..ROUNDS {
        round();
    }
    let count = measure(|| {
        for _ in 0..ROUNDS {
            round();
        }
    })
    .count_total;
    println!(
        "{what}: {:.2} allocations",
        f64::from(u32::try_from(count).unwrap()) / 1e3
    );
    count * 100 / ROUNDS
}

#[test]
fn a_pending_call_allocates_nothing() {
    let mut now = Instant::now();
    let mut calls: PendingCalls<u64> = PendingCalls::new(7, 1_000, now);
    let cost = per_round("100 pending calls", || {
        let deadline = Some(now + Duration::from_secs(30));
        let mut ids = [None; 100];
        for id in &mut ids {
            *id = calls.insert(1, deadline).ok();
        }
        for id in ids.into_iter().flatten() {
            assert_eq!(calls.complete(id), Match::Live(1));
        }
    });
    assert_eq!(cost, 0);
    let cost = per_round("100 calls that expire", || {
        for _ in 0..100 {
            calls.insert(1, Some(now + Duration::from_secs(1))).unwrap();
        }
        now += Duration::from_secs(1);
        while calls.pop_expired(now).is_some() {}
        assert!(calls.is_empty());
    });
    assert_eq!(cost, 0);
}

#[test]
fn a_pending_map_entry_allocates_only_its_key() {
    let mut map: PendingMap<u64, ()> = PendingMap::new(1_000, Instant::now());
    let mut next = 0;
    let cost = per_round("100 map entries", || {
        for key in next..next + 100 {
            map.insert(key, (), None).unwrap();
        }
        for key in next..next + 100 {
            assert_eq!(map.remove(&key), Some(()));
        }
        next += 100;
    });
    assert!(cost <= 10, "{cost}");
}

#[test]
fn small_frames_share_a_buffer() {
    let mut core = MachineCore::<()>::default();
    let one = per_round("a frame that is sent before the next", || {
        core.send_json(&"short").unwrap();
        drop(core.poll_transmit());
    });
    assert!(one <= 100, "{one}");
    let hundred_bytes = "x".repeat(98);
    let many = per_round("100 frames of 100 bytes that wait together", || {
        for _ in 0..100 {
            core.send_json(&hundred_bytes).unwrap();
        }
        while core.poll_transmit().is_some() {}
    });
    // One chunk for many frames, the bookkeeping that lets them share it, and the queue.
    assert!(many <= 1_000, "{many}");
}

#[test]
fn an_sse_event_allocates_its_data_and_type() {
    let mut decoder = sse::Decoder::new(&Limits::default());
    let plain = b"data: {\"type\":\"delta\",\"text\":\"hello\"}\n\n";
    let cost = per_round("an event with data only", || {
        let mut bytes: &[u8] = plain;
        assert!(decoder.decode(&mut bytes).unwrap().is_ok());
    });
    assert!(cost <= 100, "{cost}");
    let named = b"event: delta\nid: 7\ndata: {}\n\n";
    let cost = per_round("an event with type, id and data", || {
        let mut bytes: &[u8] = named;
        assert!(decoder.decode(&mut bytes).unwrap().is_ok());
    });
    assert!(cost <= 300, "{cost}");
    let cost = per_round("an event in two chunks", || {
        for mut bytes in plain.chunks(20) {
            while let Some(event) = decoder.decode(&mut bytes) {
                event.unwrap();
            }
        }
    });
    assert!(cost <= 100, "{cost}");
}

/// Runs on one thread, so that both ends are counted.
fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
}

#[test]
fn a_call_over_two_drivers_allocates_only_its_strings() {
    let runtime = paused();
    let mut drivers = runtime.block_on(async {
        let (left, right) = mem::duplex(16);
        let now = Instant::now();
        let mut guest = Driver::new(Guest::new("ann", now), left);
        let mut host = Driver::new(Host::new(7, now), right);
        let (welcome, hello) = tokio::join!(guest.next(), host.next());
        assert_eq!(welcome, Some(GuestEvent::Ready));
        assert_eq!(hello, Some(HostEvent::Ready("ann".to_owned())));
        (guest, host)
    });
    let cost = per_round("a call over two drivers", || {
        runtime.block_on(async {
            let (guest, host) = &mut drivers;
            let now = host.now();
            host.machine_mut().ask("?", now).unwrap();
            let answering = async {
                let Some(GuestEvent::Asked { id, text }) = guest.next().await else {
                    panic!("not asked");
                };
                guest.machine_mut().answer(&id, Ok(&text)).unwrap();
                // Sends it.
                std::future::poll_fn(|cx| {
                    let _ = guest.poll_next(cx);
                    std::task::Poll::Ready(())
                })
                .await;
            };
            let (answer, ()) = tokio::join!(host.next(), answering);
            assert!(matches!(answer, Some(HostEvent::Answer(_, Ok(_)))));
        });
    });
    assert!(cost <= 1_300, "{cost}");
}

#[test]
fn a_call_over_two_links_adds_a_handful_of_allocations() {
    let runtime = paused();
    let host = runtime.block_on(async {
        let (guest, host, _) = connected(LinkConfig::default(), LinkConfig::default()).await;
        tokio::spawn(echo(guest));
        host
    });
    let cost = per_round("a call over two links", || {
        runtime.block_on(async {
            let answer = host.link.call_with("ask", |m, now| m.ask("?", now)).await;
            assert_eq!(answer.as_deref(), Ok("?"));
        });
    });
    assert!(cost <= 1_900, "{cost}");
}

tagged! {
    /// A piece of a text.
    pub enum Piece by "type" {
        "text" => Text(Text),
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
pub struct Text {
    text: Str,
}

tagged! {
    pub struct Chunk {
        "id" => id: Option<Str>,
        .. => piece: Piece,
    }
}

fn decode_cost(what: &str, text: &str) -> u64 {
    let limits = Limits::default();
    per_round(what, || {
        let chunk: Chunk = json::decode(text, &limits).unwrap();
        assert!(matches!(chunk.piece, Piece::Text(Text { text }) if text.len() > 3));
    })
}

#[test]
fn decoding_allocates_only_for_long_texts_raw_values_and_escapes() {
    for (what, text, cost) in [
        (
            "a text of 23 bytes",
            r#""x":[1,2],"text":"hello there, dear world""#,
            0,
        ),
        (
            "a nested member",
            r#""x":[1,{"y":[{},null]}],"text":"hello""#,
            0,
        ),
        (
            "a text of 24 bytes",
            r#""text":"hello there, dear world!""#,
            1,
        ),
        ("a short text with escapes", r#""text":"say \"hello\"""#, 1),
        (
            "a long one",
            r#""text":"say \"hello\"\n to all of the world""#,
            2,
        ),
        (
            "two of them",
            r#""id":"a\nb","text":"say \"hello\"\n to all of the world""#,
            2,
        ),
    ] {
        let text = format!(r#"{{"type":"text",{text}}}"#);
        assert_eq!(decode_cost(what, &text), cost * 100, "{what}");
    }
    let raw = format!("[\"{}\"]", "x".repeat(22));
    let cost = per_round("a raw value of 26 bytes", || {
        let value: Json = json::parse(&raw, &Limits::default()).unwrap();
        assert_eq!(value.get(), raw);
    });
    assert_eq!(cost, 100);
}
