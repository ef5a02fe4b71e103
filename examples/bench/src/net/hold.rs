//! Many connections that do nothing.

use super::kind::Kind;
use super::{phase, raw};

pub(crate) async fn hold(kind: Kind<'_>, address: &str, count: usize) {
    let mut sockets = Vec::with_capacity(count);
    for number in 0..count {
        sockets.push(raw::open(kind, address, number).await);
    }
    phase("open").await;
    drop(sockets);
}
