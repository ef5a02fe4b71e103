//! How much a link holds while nothing happens on it. Printed, and bounded from above.

use allocation_counter::measure;
use rpc_core::net::link::over;
use rpc_core::net::{LinkConfig, mem};

use crate::toy::net::{HostSide, connected};

const LINES: usize = 100;

#[test]
fn the_future_of_a_link_is_small() {
    let (_other, transport) = mem::duplex(1);
    let (_link, _events, connection) = over(HostSide::default(), transport, LinkConfig::default());
    let size = size_of_val(&connection.run());
    println!("the future of a link: {size} bytes");
    assert!(size <= 1024, "{size} bytes");
}

/// Bytes that each of [`LINES`] idle links holds, both ends and the line in memory between them.
fn held_by_each(max_commands: usize, max_events: usize) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = move || {
        let mut config = LinkConfig::default().with_max_commands(max_commands);
        config.events = config.events.with_max_items(max_events);
        config
    };
    // What the first one costs only once is left out.
    let first = runtime.block_on(connected(config(), config()));
    let mut lines = Vec::with_capacity(LINES);
    let info = measure(|| {
        runtime.block_on(async {
            for _ in 0..LINES {
                let (guest, mut host, cutter) = connected(config(), config()).await;
                while host.events.try_next().is_some() {}
                lines.push((guest, host, cutter));
            }
        });
    });
    drop((first, lines));
    info.bytes_current / LINES as i64
}

#[test]
fn an_idle_link_holds_little_however_much_it_may_hold() {
    let each = held_by_each(1, 1);
    println!("both ends of an idle link: {each} bytes");
    assert!(each <= 8 * 1024, "{each} bytes");
    assert_eq!(each, held_by_each(1 << 20, 1 << 20));
}
