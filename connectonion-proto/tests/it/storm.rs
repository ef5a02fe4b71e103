//! Many at once: storms of reconnects, and a host with ten thousand sessions.

use std::collections::HashMap;

use connectonion_proto::frame::{Connect, Signed};
use connectonion_proto::internals::{ConnId, RunId};
use connectonion_proto::net::HostRuntime;
use connectonion_proto::session::{HubConfig, Owner};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::hub_play::Play;
use crate::staff::{Client, input, runtime, types};

const SESSIONS: u64 = 100;
/// Sockets of a session.
const SOCKETS: u64 = 10;
const STORMS: u64 = 20;
/// Events of a run between two storms.
const EVENTS: u64 = 3;

const OWNER: Owner = Owner::Unsigned;

#[test]
fn a_thousand_clients_reconnect_twenty_times_without_loss() {
    let mut play = Play::new(HubConfig::default());
    // The event that each client has heard last.
    let mut last: HashMap<u64, String> = HashMap::new();
    let mut conns = 0;
    for storm in 0..=STORMS {
        for client in 0..SESSIONS * SOCKETS {
            let mut connect = Connect::new(Signed::none());
            connect.session_id = Some(format!("s-{}", client / SOCKETS).into());
            connect.last_msg_id = last.get(&client).map(|id| id.as_str().into());
            play.connect_with(conns + client, OWNER, connect);
        }
        play.store_all();
        if storm == 0 {
            for session in 0..SESSIONS {
                play.input(session * SOCKETS, "work");
            }
            play.store_all();
        }
        for client in 0..SESSIONS * SOCKETS {
            let frames = &play.sockets[&ConnId(conns + client)].frames;
            let events: Vec<&Value> = frames.iter().filter(|it| it["id"].is_string()).collect();
            let missed = if storm == 0 { 1 } else { EVENTS };
            assert_eq!(events.len() as u64, missed, "storm {storm}: {frames:?}");
            let newest = events[events.len() - 1]["id"].as_str().unwrap();
            last.insert(client, newest.to_owned());
        }
        if storm == STORMS {
            break;
        }
        for client in 0..SESSIONS * SOCKETS {
            play.disconnect(conns + client);
        }
        conns += SESSIONS * SOCKETS;
        let runs: Vec<RunId> = play.agents.keys().copied().collect();
        for (run, event) in runs
            .iter()
            .flat_map(|run| (0..EVENTS).map(move |it| (*run, it)))
        {
            play.emit(run, &event.to_string()).unwrap();
        }
    }
    let runs: Vec<RunId> = play.agents.keys().copied().collect();
    assert_eq!(runs.len() as u64, SESSIONS);
    for run in runs {
        play.finish(run, "done");
    }
    play.store_all();
    assert!(play.sockets.values().all(|it| it.count("OUTPUT") == 1));
    assert_eq!(play.hub.log_bytes(), 0);
    assert!(play.hub.is_idle());
}

/// A client that no one has signed for, and its CONNECTED.
async fn enter(runtime: &HostRuntime, session: u64, last: Option<&Value>) -> (Client, Value) {
    let mut client = Client::open(runtime);
    let id = format!("s-{session}");
    let connect = json!({"type": "CONNECT", "session_id": id, "last_msg_id": last});
    client.say(&connect).await;
    let connected = client.hear_a("CONNECTED").await;
    (client, connected)
}

#[tokio::test(start_paused = true)]
async fn a_host_survives_a_reconnect_storm() {
    let runtime = runtime();
    let all = |last: Vec<Option<Value>>| {
        let runtime = runtime.clone();
        let clients = last.into_iter().enumerate().map(move |(number, last)| {
            let runtime = runtime.clone();
            async move { enter(&runtime, number as u64 / SOCKETS, last.as_ref()).await }
        });
        join_all(clients)
    };
    let mut crowd = all(vec![None; 1000]).await;
    for (client, _) in crowd.iter_mut().step_by(10) {
        client.say(&input("wait")).await;
    }
    let mut last = Vec::new();
    for (number, (client, _)) in crowd.iter_mut().enumerate() {
        let said = client.hear_a("user_input").await;
        // Every other client does not say what it has.
        last.push((number % 2 == 1).then(|| said["id"].clone()));
    }
    for _ in 0..STORMS {
        crowd.clear();
        crowd = all(last.clone()).await;
        assert_eq!((runtime.sessions(), runtime.running()), (100, 100));
    }
    for (client, connected) in crowd.iter_mut().step_by(10) {
        assert_eq!(connected["status"], "running");
        client.say(&json!({"type": "INTERRUPT"})).await;
    }
    for (number, (client, _)) in crowd.iter_mut().enumerate() {
        let frames = client.hear_until("OUTPUT").await;
        match number % 2 {
            0 => assert_eq!(types(&frames), ["user_input", "OUTPUT"]),
            _ => assert_eq!(types(&frames), ["OUTPUT"]),
        }
    }
    assert_eq!((runtime.sessions(), runtime.running()), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn a_host_serves_ten_thousand_sessions_and_a_thousand_runs() {
    let runtime = runtime();
    let entering = (0..10_000).map(|number| {
        let runtime = runtime.clone();
        async move { enter(&runtime, number, None).await.0 }
    });
    let mut crowd = join_all(entering).await;
    assert_eq!(runtime.sessions(), 10_000);
    for client in crowd.iter_mut().step_by(10) {
        client.say(&input("sleep 30")).await;
    }
    for client in crowd.iter_mut().step_by(10) {
        client.hear_a("user_input").await;
    }
    assert_eq!(runtime.running(), 1_000);
    for client in crowd.iter_mut().step_by(10) {
        assert_eq!(client.hear_a("OUTPUT").await["result"], "slept 30");
    }
    drop(crowd);
    tokio::time::sleep(11 * 60 * crate::staff::SECOND).await;
    assert_eq!((runtime.sessions(), runtime.running()), (0, 0));
}
