//! What an operator sees of connections and calls: spans and metrics.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use metrics_util::MetricKind;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use rpc_core::net::LinkEvent;
use snek_proto::client::{ClientConfig, ClientEvent};
use snek_proto::frame::Final;
use snek_proto::frame::NoKwargs;
use snek_proto::net::{MemoryBackend, Server, ServerOptions, connect_lazy};
use tracing::Dispatch;
use tracing::subscriber::NoSubscriber;
use tracing_subscriber::fmt::format::FmtSpan;

/// Logs in, posts, calls a method that no one knows, and leaves.
async fn talk() {
    let backend = MemoryBackend::new().with_channel("general", "General");
    let server = Server::bind("127.0.0.1:0", backend.open(), ServerOptions::default())
        .await
        .unwrap();
    let (url, handle) = (server.url(), server.handle());
    let serving = tokio::spawn(server.run());
    let config = ClientConfig::new("ann", "secret");
    let (client, mut events, connection) = connect_lazy(&url, config).unwrap();
    let connection = tokio::spawn(connection.run());
    client.ready().await.unwrap();
    client
        .send_message("general", "a secret text", Final::Yes)
        .await
        .unwrap();
    let unknown = client.call("made-up-by-a-peer", &[0; 0], &NoKwargs {});
    unknown.await.unwrap_err();
    while !matches!(
        events.next_link().await.unwrap(),
        LinkEvent::Event(ClientEvent::Message(_))
    ) {}
    client.close();
    connection.await.unwrap();
    handle.drain(std::time::Duration::from_millis(300)).await;
    serving.await.unwrap();
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn every_call_has_a_span_with_method_and_outcome_on_both_sides() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let subscriber = Dispatch::new(subscriber);
    // With a single one, `tracing` asks that of the thread which comes to a span first, and that may
    // be the thread of another test, which has none.
    let _another = Dispatch::new(NoSubscriber::default());
    tracing::dispatcher::with_default(&subscriber, || run(talk()));
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let closed = |parts: &[&str]| {
        let mut lines = log.lines().filter(|line| line.contains("close"));
        assert!(
            lines.any(|line| parts.iter().all(|part| line.contains(part))),
            "{parts:?} in:\n{log}"
        );
    };
    for kind in [r#"otel.kind="client""#, r#"otel.kind="server""#] {
        closed(&["connection{", kind, r#"rpc.system="snek""#]);
        let posted = r#"rpc.method="send_message""#;
        closed(&["call{", kind, posted, r#"otel.status_code="OK""#]);
        let unknown = r#"rpc.method="_OTHER""#;
        closed(&[
            "call{",
            kind,
            unknown,
            r#"otel.status_code="ERROR""#,
            r#"error.type="error""#,
        ]);
    }
    closed(&["otel.name=snek/login", r#"otel.kind="server""#]);
    assert!(!log.contains("secret"), "{log}");
}

/// The values by name and labels.
fn values(snapshotter: &Snapshotter) -> BTreeMap<String, f64> {
    let all = snapshotter.snapshot().into_vec().into_iter();
    all.map(|(key, unit, description, value)| {
        assert!(unit.is_some() && description.is_some(), "{key:?}");
        let mut labels: Vec<_> = key
            .key()
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        labels.sort();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(times) => {
                assert_eq!(key.kind(), MetricKind::Histogram);
                assert!(
                    times
                        .iter()
                        .all(|time| (0.0..60.0).contains(&time.into_inner()))
                );
                times.len() as f64
            }
        };
        (
            format!("{}{{{}}}", key.key().name(), labels.join(",")),
            value,
        )
    })
    .collect()
}

#[test]
fn calls_connections_and_bytes_are_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    metrics::with_local_recorder(&recorder, || {
        rpc_core::net::telemetry::describe();
        run(talk());
    });
    let values = values(&snapshotter);
    for side in ["client", "server"] {
        let calls = |outcome: &str, method: &str| {
            let name = format!("rpc_{side}_call_duration_seconds");
            let labels = format!("outcome={outcome},rpc_method={method},rpc_system=snek");
            values.get(&format!("{name}{{{labels}}}")).copied()
        };
        assert_eq!(calls("ok", "send_message"), Some(1.0), "{values:#?}");
        assert_eq!(calls("error", "_OTHER"), Some(1.0), "{values:#?}");
        for gauge in ["active_calls", "connections"] {
            let name = format!("rpc_{side}_{gauge}{{rpc_system=snek}}");
            assert_eq!(values.get(&name), Some(&0.0), "{values:#?}");
        }
    }
    let bytes = |name: &str, side: &str| values[&format!("{name}{{rpc_system=snek,side={side}}}")];
    let (sent, received) = ("rpc_sent_bytes_total", "rpc_received_bytes_total");
    assert!(bytes(sent, "client") > 100.0);
    assert_eq!(bytes(sent, "client"), bytes(received, "server"));
    assert!(
        !values.keys().any(|key| key.contains("made-up")),
        "{values:#?}"
    );
    assert_eq!(values["rpc_client_lost_events_total{rpc_system=snek}"], 0.0);
}

#[test]
fn each_recorder_counts_the_calls_of_its_connections() {
    let posted =
        "rpc_client_call_duration_seconds{outcome=ok,rpc_method=send_message,rpc_system=snek}";
    for _ in 0..2 {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            rpc_core::net::telemetry::describe();
            run(talk());
        });
        assert_eq!(values(&snapshotter).get(posted), Some(&1.0));
    }
}
