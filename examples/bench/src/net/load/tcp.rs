//! As many bytes there and back over TCP alone, one message at a time.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::echo::REQUEST;
use super::median;
use crate::net::phase;

pub(super) async fn load(address: &str, calls: usize) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    make(&mut stream, calls / 4).await;
    phase("ready").await;
    let mut times = make(&mut stream, calls).await;
    phase(&median(&mut times)).await;
}

async fn make(stream: &mut TcpStream, calls: usize) -> Vec<u64> {
    let mut times = Vec::with_capacity(calls);
    let mut answer = [0; REQUEST.len()];
    for _ in 0..calls {
        let start = Instant::now();
        stream.write_all(REQUEST.as_bytes()).await.unwrap();
        stream.read_exact(&mut answer).await.unwrap();
        times.push(start.elapsed().as_nanos() as u64);
    }
    times
}
