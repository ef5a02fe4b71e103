//! Orders to a link (close, drain, reconnect) that meet each other, and waits without an end.

use std::time::Duration;

use rpc_core::net::link::over;
use rpc_core::net::{LinkConfig, mem};
use rpc_core::{CallError, Delivery, Refused};

use crate::toy::net::HostSide;

const LONG: Duration = Duration::from_secs(99);

fn config() -> LinkConfig {
    LinkConfig::default()
}

async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(LONG, what)
        .await
        .expect("it never happened")
}

/// Calls until the connection says that it is over.
async fn call_until_the_end(link: rpc_core::net::Link<HostSide>) -> CallError<String> {
    loop {
        match link.call(|m, now| m.ask("?", now)).await {
            Err(CallError::Refused(Refused::NotReady)) => {}
            Err(error) => return error,
            Ok(answer) => panic!("{answer}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn calls_that_race_with_the_end_of_their_link_all_end() {
    for round in 0..3000 {
        let (left, _right) = mem::duplex(8);
        let (link, _events, connection) = over(HostSide::default(), left, config());
        let run = tokio::spawn(connection.run());
        let calls = [(); 2].map(|()| tokio::spawn(call_until_the_end(link.clone())));
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        if round % 2 == 0 {
            link.close();
        } else {
            run.abort();
        }
        for call in calls {
            assert_eq!(call.await.unwrap().delivery(), Delivery::NotSent);
        }
    }
}

/// A link whose task has run once and given the only place in its command queue to `waiting`,
/// and which has then ended or been dropped.
async fn end_behind<F: Future>(
    is_dropped: bool,
    waiting: impl FnOnce(rpc_core::net::Link<HostSide>) -> F,
) -> F::Output {
    let (left, _right) = mem::duplex(8);
    let one = config().with_max_commands(1);
    let (link, _events, connection) = over(HostSide::default(), left, one);
    link.try_command(|_, _| ()).unwrap();
    let mut waiting = Box::pin(waiting(link.clone()));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    let mut run = Box::pin(connection.run());
    assert!(futures_util::poll!(run.as_mut()).is_pending());
    if is_dropped {
        drop(run);
    } else {
        link.close();
        soon(run).await;
    }
    soon(waiting).await
}

#[tokio::test(start_paused = true)]
async fn what_gets_its_place_in_the_command_queue_too_late_ends_with_the_link() {
    for is_dropped in [false, true] {
        let call = |link: rpc_core::net::Link<HostSide>| async move {
            link.call(|m, now| m.ask("?", now)).await
        };
        let ended = end_behind(is_dropped, call).await.unwrap_err();
        assert_eq!(ended.delivery(), Delivery::NotSent);
        let command =
            |link: rpc_core::net::Link<HostSide>| async move { link.command(|_, _| ()).await };
        let ended = end_behind(is_dropped, command).await;
        assert_eq!(ended, Err(Refused::Closed));
    }
}
