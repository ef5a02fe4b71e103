//! [`Listener`]: the sockets of a server.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};

/// How many free ports to try until one is free in both families.
const PORTS: usize = 16;

/// The sockets that a server listens on: one, or a pair.
///
/// `127.0.0.1` and `[::1]` are a pair at the same port. Clients that name `localhost` may go to either, so
/// a program on the other one would get their keys. Where the other one cannot be had, a warning
/// is logged.
#[derive(Debug)]
pub struct Listener {
    first: TcpListener,
    other: Option<TcpListener>,
}

impl Listener {
    /// Listens on an address. Port 0 takes a free one; see [`local_addr`](Self::local_addr).
    ///
    /// # Errors
    /// The system's error. Retrying helps once the address is free.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let mut addresses: Vec<SocketAddr> = lookup_host(address).await?.collect();
        if addresses.iter().all(|address| pair_of(*address).is_some()) {
            // The one that clients try first, and no other program's port in its place.
            addresses.sort_by_key(SocketAddr::is_ipv6);
            addresses.truncate(1);
        }
        let mut more = match addresses.iter().any(|address| address.port() == 0) {
            true => PORTS,
            false => 0,
        };
        loop {
            let first = TcpListener::bind(&addresses[..]).await?;
            let local = first.local_addr()?;
            let Some(pair) = pair_of(local) else {
                return Ok(Self { first, other: None });
            };
            let other = match TcpListener::bind(pair).await {
                Ok(other) => Some(other),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && more > 0 => {
                    more -= 1;
                    continue;
                }
                Err(error) => {
                    log_missing_family(local, pair, &error);
                    None
                }
            };
            return Ok(Self { first, other });
        }
    }

    /// Takes a socket that listens already.
    ///
    /// # Errors
    /// The system's error if it cannot be made non-blocking: retrying does not help.
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let first = TcpListener::from_std(listener)?;
        Ok(Self { first, other: None })
    }

    /// Accepts the next connection.
    ///
    /// # Errors
    /// The system's error; the next call may succeed.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match &self.other {
            Some(other) => tokio::select! {
                accepted = self.first.accept() => accepted,
                accepted = other.accept() => accepted,
            },
            None => self.first.accept().await,
        }
    }

    /// Returns the address, of a pair that which was asked for.
    ///
    /// # Errors
    /// The system's error, in practice none for a socket that listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.first.local_addr()
    }
}

/// Returns what `localhost` may mean as well.
fn pair_of(address: SocketAddr) -> Option<SocketAddr> {
    let other = match address.ip().to_canonical() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        _ => return None,
    };
    Some(SocketAddr::new(other, address.port()))
}

fn log_missing_family(local: SocketAddr, pair: SocketAddr, error: &io::Error) {
    match error.kind() {
        // This machine does not have that family: no one else can listen there either.
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported => {
            tracing::debug!(%local, %error, "listening in one family only");
        }
        _ => tracing::warn!(
            "listening on {local} but not on {pair}, where another program may be shown what clients send to \
             localhost: {error}"
        ),
    }
}
