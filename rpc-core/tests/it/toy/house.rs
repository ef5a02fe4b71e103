//! The toy protocol over real WebSockets: a server whose every connection is a host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::backoff::BackoffPolicy;
use rpc_core::net::DrainReport;
use rpc_core::net::server::{Accepted, Counters, HttpConfig, ServerHandle, ServerLimits};
use rpc_core::net::ws::{WsConfig, WsDialer, WsStream};
use rpc_core::net::{DriverConfig, Events, LinkConfig};
use rpc_core::reconnect::ReconnectPolicy;
use rpc_core::{CallError, CloseFrame};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::host::HostEvent;
use super::net::{End, GuestSide, HostLink, HostSide};
use crate::server::Server;

/// No deadline in a test on real sockets is longer.
pub const DEADLINE: Duration = Duration::from_millis(300);

/// Every deadline of a link as short as a test may have it.
pub fn config() -> LinkConfig {
    let driver = DriverConfig {
        write_timeout: Duration::from_millis(150),
        close_timeout: Duration::from_millis(150),
        ..DriverConfig::default()
    };
    LinkConfig {
        reconnect: ReconnectPolicy::off(),
        connect_timeout: DEADLINE,
        driver,
        ..LinkConfig::default()
    }
}

/// Dials again every few milliseconds, for ever.
pub fn eager() -> LinkConfig {
    let backoff = BackoffPolicy {
        max_attempts: None,
        ..BackoffPolicy::new(Duration::from_millis(5), 1.0)
    };
    LinkConfig {
        reconnect: ReconnectPolicy {
            cycles: None,
            ..ReconnectPolicy::new(backoff)
        },
        ..config()
    }
}

/// A connected host, as the server hands it out.
pub struct Room {
    pub link: HostLink,
    pub events: Events<HostEvent>,
}

pub async fn ask(room: &Room, text: &str) -> Result<String, CallError<String>> {
    let text = text.to_owned();
    room.link
        .call_with("ask", move |m, now| m.ask(&text, now))
        .await
}

/// A running server.
pub struct House {
    pub address: SocketAddr,
    pub shutdown: ServerHandle,
    pub counters: Arc<Counters>,
    pub task: JoinHandle<DrainReport>,
    pub rooms: mpsc::UnboundedReceiver<Room>,
}

impl House {
    pub async fn open() -> Self {
        Self::open_at("127.0.0.1:0".parse().unwrap()).await
    }

    pub async fn open_at(address: SocketAddr) -> Self {
        Self::open_with(address, config).await
    }

    /// A server whose links have this configuration.
    pub async fn open_with(address: SocketAddr, link: fn() -> LinkConfig) -> Self {
        let limits = ServerLimits {
            header_timeout: DEADLINE,
            handshake_timeout: DEADLINE,
            ..ServerLimits::default()
        };
        let config = HttpConfig {
            limits,
            ..HttpConfig::default()
        };
        let (door, rooms) = mpsc::unbounded_channel();
        let serve = move |accepted| receive(accepted, link(), door.clone());
        let server = Server::bind(address, serve, config).await.unwrap();
        Self {
            address: server.local_addr(),
            shutdown: server.handle(),
            counters: server.counters(),
            task: tokio::spawn(server.run()),
            rooms,
        }
    }

    pub fn dialer(&self) -> WsDialer {
        dialer(self.address)
    }

    pub async fn socket(&self) -> WsStream {
        use rpc_core::net::Dialer as _;
        self.dialer().dial().await.unwrap()
    }

    pub fn guest(&self, name: &str, config: LinkConfig) -> End<GuestSide> {
        guest(self.address, name, config)
    }

    /// The next connection that the server took, once its guest has said hello.
    pub async fn room(&mut self) -> Room {
        let room = self.rooms.recv().await.unwrap();
        room.link.ready().await.unwrap();
        room
    }

    /// A guest that answers everything with an echo, and its host.
    pub async fn echoing(&mut self, name: &str) -> Room {
        let guest = self.guest(name, config());
        tokio::spawn(super::net::echo(guest));
        self.room().await
    }
}

pub fn dialer(address: SocketAddr) -> WsDialer {
    let config = WsConfig {
        connect_timeout: DEADLINE,
        max_outgoing: 32 << 20,
        ..WsConfig::default()
    };
    WsDialer::new(&format!("ws://{address}/"))
        .unwrap()
        .with_config(config)
}

pub fn guest(address: SocketAddr, name: &str, config: LinkConfig) -> End<GuestSide> {
    let side = GuestSide {
        handshake: DEADLINE,
        ..GuestSide::new(name)
    };
    End::spawn(rpc_core::net::open(side, dialer(address), config))
}

/// Serves one connection, and says goodbye with 1001 when the server drains.
async fn receive(accepted: Accepted, config: LinkConfig, door: mpsc::UnboundedSender<Room>) {
    let side = HostSide {
        handshake: DEADLINE,
        ..HostSide::default()
    };
    let (link, events, connection) = rpc_core::net::over(side, accepted.socket, config);
    let goodbye = link.clone();
    let _ = door.send(Room { link, events });
    let mut cancellation = accepted.cancellation;
    let leave = async {
        cancellation.cancelled().await;
        goodbye.close_with(CloseFrame::new(CloseFrame::GOING_AWAY, "drain"));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = connection.run() => {}
        () = leave => {}
    }
}
