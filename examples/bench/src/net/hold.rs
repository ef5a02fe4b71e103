//! Many connections that do nothing.

use super::{phase, raw};

pub(crate) async fn hold(kind: &str, address: &str, count: usize) {
    let mut sockets = Vec::with_capacity(count);
    for _ in 0..count {
        sockets.push(raw::open(kind, address).await);
    }
    phase("open").await;
    drop(sockets);
}
