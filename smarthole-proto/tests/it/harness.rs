//! A router that does what a text says, and a server around it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rpc_core::net::DrainReport;
use smarthole_proto::hub::{HubConfig, HubEvent};
use smarthole_proto::net::{HubEvents, RouterRuntime, Server, ServerHandle, ServerOptions};
use smarthole_proto::router::{Choice, RouteRequest, Router, RouterError};
use tokio::task::JoinHandle;

/// Waits until something is so; what never is fails, and does not hang.
pub(crate) async fn comes_true(mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never is so");
        tokio::task::yield_now().await;
    }
}

/// Counts how often it was asked, and is asked at the same time.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) ever: AtomicUsize,
    pub(crate) most_at_once: AtomicUsize,
    now: AtomicUsize,
}

/// Chooses the clients that a text names between spaces, else the first candidate. Some texts make
/// it fail.
#[derive(Clone, Default)]
pub(crate) struct Obedient(pub(crate) Arc<Asked>);

impl Router for Obedient {
    async fn route(&self, request: &RouteRequest) -> Result<Vec<Choice>, RouterError> {
        let asked = &self.0;
        asked.ever.fetch_add(1, Ordering::Relaxed);
        let now = asked.now.fetch_add(1, Ordering::Relaxed) + 1;
        asked.most_at_once.fetch_max(now, Ordering::Relaxed);
        tokio::task::yield_now().await;
        match &*request.text {
            "panic" => panic!("asked to"),
            "fail" => return Err(RouterError::Unavailable("asked to".into())),
            "hang" => std::future::pending().await,
            "nobody" => return Ok(Vec::new()),
            _ => {}
        }
        let is_named = |name: &str| request.text.split(' ').any(|word| word == name);
        let mut chosen: Vec<_> = request
            .candidates
            .iter()
            .filter(|candidate| is_named(&candidate.name))
            .collect();
        if chosen.is_empty() {
            chosen.extend(request.candidates.first());
        }
        let tried = request.rejections.iter().map(|r| &*r.reason);
        let reason = tried.fold("as told".to_owned(), |all, one| format!("{all}; {one}"));
        asked.now.fetch_sub(1, Ordering::Relaxed);
        Ok(chosen
            .into_iter()
            .map(|candidate| Choice {
                reason: Some(reason.clone().into()),
                ..Choice::new(candidate.name.clone())
            })
            .collect())
    }
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    pub(crate) runtime: RouterRuntime,
    pub(crate) router: Obedient,
    pub(crate) task: JoinHandle<DrainReport>,
}

pub(crate) async fn start(options: ServerOptions) -> Running {
    let router = Obedient::default();
    let server = Server::bind("127.0.0.1:0", router.clone(), options)
        .await
        .unwrap();
    Running {
        address: server.local_addr(),
        handle: server.handle(),
        runtime: server.runtime(),
        router,
        task: tokio::spawn(server.run()),
    }
}

/// A server whose clients have so many milliseconds to respond.
pub(crate) async fn start_with_timeout(millis: u64) -> Running {
    let config = HubConfig {
        response_timeout: Duration::from_millis(millis),
        ..HubConfig::default()
    };
    start(ServerOptions::new(config)).await
}

/// The next event that `pick` wants.
pub(crate) async fn until<T>(
    events: &mut HubEvents,
    mut pick: impl FnMut(&HubEvent) -> Option<T>,
) -> T {
    let found = async {
        loop {
            let event = events.next().await.expect("events go on");
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found)
        .await
        .expect("it happens in time")
}
