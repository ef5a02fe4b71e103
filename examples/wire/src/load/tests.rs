//! Runs against servers on real sockets: what becomes of calls, never how long it takes.

use std::time::Duration;

use exoclaw_proto::frame::{ClientFrame, Hello, ServerFrame};
use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::encode::encode;
use rpc_core::net::Message;
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::{CloseFrame, Limits, Outgoing, Secret};
use snek_proto::net::{MemoryBackend, Server, ServerOptions};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::{Caller, Finished, Kind, Load, Run, RunError, Scenario, Schedule};
use crate::Protocol;

const DEADLINE: Duration = Duration::from_secs(60);
const MOMENT: Duration = Duration::from_millis(300);

fn load(protocol: Protocol, kind: Kind, url: &str) -> Load {
    let caller = Caller {
        username: "ann".to_owned(),
        password: Secret::new("a".to_owned()),
        prompt: "hello".to_owned(),
        ..Caller::default()
    };
    let scenario = Scenario::new(protocol, Some(kind), caller).unwrap();
    Load {
        dialer: scenario.dialer(url).unwrap(),
        in_flight: scenario.in_flight(),
        scenario,
        schedule: Schedule {
            rate: 100.0,
            warmup: Duration::ZERO,
            duration: MOMENT,
        },
        connections: 3,
        patience: DEADLINE,
    }
}

async fn go(load: Load) -> Result<Finished, RunError> {
    let run = Run::new(load);
    let made = timeout(DEADLINE, run.go(std::future::pending()));
    made.await.expect("ends in time")
}

async fn snek() -> String {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .open();
    let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await;
    let server = server.unwrap();
    let url = server.url();
    tokio::spawn(server.run());
    url
}

/// What a gateway does with a call.
#[derive(Clone, Copy)]
enum Does {
    Answers(&'static str),
    Closes,
    Hangs,
}

/// A gateway that greets everybody, and does this with each ping.
async fn gateway(does: Does) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/ws", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut ws = WsStream::accept(tcp, &WsConfig::default()).await.unwrap();
                let hello = encode(&ServerFrame::Hello(Hello::new("1"))).unwrap();
                ws.send(Outgoing::Text(hello)).await.unwrap();
                while let Some(Ok(Message::Text(text))) = ws.next().await {
                    let frame = ClientFrame::decode(text.as_str(), &Limits::default()).unwrap();
                    let ClientFrame::Request(request) = frame else {
                        panic!("no request");
                    };
                    let message = match does {
                        Does::Answers(text) => {
                            let text = text.replace("ID", &request.id.text());
                            Outgoing::Text(text.into())
                        }
                        Does::Closes => Outgoing::Close(CloseFrame::new(1013, "later")),
                        Does::Hangs => continue,
                    };
                    if ws.send(message).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn every_call_to_a_good_server_is_answered() {
    let load = load(Protocol::Snek, Kind::Echo, &snek().await);
    let finished = go(load.clone()).await.unwrap();
    let stats = &finished.stats;
    assert_eq!((stats.ok, stats.sent, stats.opened), (30, 30, 3));
    assert_eq!((stats.failed.total(), stats.lost.total()), (0, 0));
    assert_eq!(stats.unsent, 0);
    let report = finished.json("ws://x/rpc.ws", &load);
    assert_eq!(report["url"], "ws://x/rpc.ws");
    assert_eq!(
        (&report["ok"], &report["latency"]["count"]),
        (&30.into(), &30.into())
    );
    let (service, latency) = (&report["service"]["p50"], &report["latency"]["max"]);
    assert!(service.as_f64() <= latency.as_f64());
}

#[tokio::test]
async fn a_message_reaches_every_connection() {
    let load = load(Protocol::Snek, Kind::Chat, &snek().await);
    let finished = go(load).await.unwrap();
    assert_eq!(finished.stats.ok, 30);
    let marks = finished.stats.mark.quantiles().count;
    // The others may not have read the last ones when the sender had.
    assert!((31..=90).contains(&marks), "{marks}");
}

#[tokio::test]
async fn each_call_has_a_connection_of_its_own_where_connecting_is_measured() {
    let mut load = load(Protocol::Snek, Kind::Connect, &snek().await);
    // No more than there are connections: nothing waits for one that is free.
    load.schedule.rate = 10.0;
    let stats = go(load).await.unwrap().stats;
    assert_eq!((stats.ok, stats.opened, stats.failed.total()), (3, 3, 0));
}

#[tokio::test]
async fn an_absent_server_is_reported_with_the_reason() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", free.local_addr().unwrap());
    drop(free);
    let error = go(load(Protocol::Snek, Kind::Echo, &url))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection could be opened: connection refused (3)"
    );
}

#[tokio::test]
async fn faults_of_a_bad_server_are_counted_by_kind() {
    for (does, kind) in [
        (
            Does::Answers(r#"{"id":"ID","error":"too busy"}"#),
            "error answer: too busy",
        ),
        (Does::Answers("nonsense"), "unreadable answer"),
        (Does::Closes, "closed with 1013"),
        (Does::Hangs, "timed out"),
    ] {
        let mut load = load(Protocol::Exoclaw, Kind::Echo, &gateway(does).await);
        if matches!(does, Does::Hangs) {
            load.patience = MOMENT;
        }
        // One for each connection: what is closed is not opened again at once.
        load.schedule.rate = 10.0;
        load.in_flight = 1;
        let finished = go(load).await.unwrap();
        let stats = finished.stats;
        assert_eq!(stats.failed.sorted(), [(kind, 3)], "{kind}");
        assert_eq!(stats.ok, 0, "{kind}");
        let lost = u64::from(matches!(does, Does::Closes)) * 3;
        assert_eq!(stats.lost.total(), lost, "{kind}");
    }
}

#[tokio::test]
async fn a_run_that_is_stopped_has_a_result() {
    let mut load = load(Protocol::Snek, Kind::Echo, &snek().await);
    load.schedule.duration = DEADLINE * 100;
    let run = Run::new(load.clone());
    let answered = async {
        while run.stats().ok < 5 {
            tokio::task::yield_now().await;
        }
    };
    let finished = timeout(DEADLINE, run.go(answered)).await.unwrap().unwrap();
    assert!(finished.stats.ok >= 5 && finished.stats.failed.total() == 0);
    assert!(finished.is_stopped(&load));
}

#[tokio::test]
async fn a_slow_server_leaves_calls_unsent_and_the_report_says_so() {
    let url = gateway(Does::Hangs).await;
    let mut load = load(Protocol::Exoclaw, Kind::Echo, &url);
    load.in_flight = 1;
    load.patience = MOMENT * 2;
    let finished = go(load).await.unwrap();
    let (sent, failed) = (finished.stats.sent, finished.stats.failed.total());
    assert_eq!((sent, failed), (3, 30));
    assert!(finished.stats.unsent > 0);
}

#[test]
fn a_scenario_that_a_protocol_does_not_have_is_refused_with_those_it_has() {
    let error = Scenario::new(Protocol::SmartHole, Some(Kind::Echo), Caller::default());
    assert_eq!(
        error.unwrap_err(),
        "smarthole has no scenario 'echo'; it has: chat, connect"
    );
    let scenario = Scenario::new(Protocol::SmartHole, None, Caller::default()).unwrap();
    assert_eq!(scenario.kind, Kind::Chat);
}

/// Spawns a server, and returns its URL.
macro_rules! url {
    ($bound:expr) => {{
        let server = $bound.await.unwrap();
        let url = server.url();
        tokio::spawn(server.run());
        url
    }};
}

const HERE: &str = "127.0.0.1:0";

async fn exoclaw_gateway() -> String {
    use exoclaw_proto::net::{Server, ServerOptions, backend_fn};
    let echo = backend_fn(|chat: exoclaw_proto::frame::ChatSend, reply| async move {
        reply.text(&chat.content).await?;
        Ok(())
    });
    let options = ServerOptions::new(exoclaw_proto::auth::Auth::open());
    url!(Server::bind(HERE, echo, options))
}

async fn connectonion_host() -> String {
    use connectonion_proto::auth::Signer;
    use connectonion_proto::frame::EventKind;
    use connectonion_proto::net::{Reply, RuntimeOptions, Server, ServerOptions, agent_fn};
    use connectonion_proto::trust::TrustLevel;
    let echo = agent_fn(
        |turn: connectonion_proto::net::Turn, prompt: connectonion_proto::net::Prompt| async move {
            turn.emit(EventKind::Assistant(prompt.text.clone()))?;
            Ok(Reply::new(prompt.text))
        },
    );
    let runtime = RuntimeOptions::new(&Signer::generate().unwrap(), TrustLevel::Open);
    url!(Server::bind(
        HERE,
        echo,
        ServerOptions::with_runtime(runtime)
    ))
}

async fn acolyte_daemon() -> String {
    use acolyte_proto::frame::{ChatRequest, Reply, Status};
    use acolyte_proto::net::{ChatReply, Server, ServerOptions, agent_fn};
    let echo = agent_fn(
        Status::new("echo", ""),
        |run: ChatReply, request: ChatRequest| async move {
            let _gone = run.text(&request.message).await;
            Ok(Reply::new(request.message, "echo"))
        },
    );
    let options = ServerOptions::new(acolyte_proto::auth::Auth::open());
    url!(Server::bind(HERE, echo, options))
}

#[tokio::test]
async fn calls_of_each_protocol_are_answered_and_their_first_text_is_noticed() {
    for (protocol, url) in [
        (Protocol::Exoclaw, exoclaw_gateway().await),
        (Protocol::ConnectOnion, connectonion_host().await),
        (Protocol::Acolyte, acolyte_daemon().await),
    ] {
        for kind in [Kind::Echo, Kind::Chat, Kind::Connect] {
            let mut load = load(protocol, kind, &url);
            load.schedule.rate = 10.0;
            let stats = go(load).await.unwrap().stats;
            let about = format!("{protocol:?} {kind:?} {stats:?}");
            assert_eq!((stats.ok, stats.failed.total()), (3, 0), "{about}");
            let marks = if kind == Kind::Chat { 3 } else { 0 };
            assert_eq!(stats.mark.quantiles().count, marks, "{about}");
        }
    }
}
