//! Lists that change under a host, and signatures that it has seen before.

use std::sync::{Arc, Mutex};

use connectonion_proto::auth::{Draft, Signer, Spent};
use connectonion_proto::limits::MAX_USED_SIGNATURES;
use connectonion_proto::net::{HostRuntime, RuntimeOptions};
use connectonion_proto::trust::{AccessControl, TrustBook, TrustLevel};
use serde_json::{Value, json};

use tokio::time::Instant;

use crate::staff::{
    Client, SECOND, client_key, connect, host_key, input, now, runtime_with, signed,
};

fn admin_key() -> Signer {
    Signer::from_seed(&[9; 32])
}

fn access() -> AccessControl {
    let mut book = TrustBook::default();
    book.admins.insert(*admin_key().address()).unwrap();
    AccessControl::new(*host_key().address(), TrustLevel::Open)
        .require_signatures()
        .with_book(book)
}

/// A command of the administrator about the usual client.
fn command(kind: &str, draft: &Draft) -> Value {
    let whom = client_key().address().to_string();
    signed(
        kind,
        &admin_key(),
        &draft.clone().with("client_id", whom),
        json!({}),
    )
}

/// The client, who is at work, is put out.
async fn put_out(runtime: &HostRuntime, client: &mut Client, idle: &mut Client) {
    client.recv_until("ERROR").await;
    for client in [client, idle] {
        let close = client.close_frame().await;
        assert_eq!((close.code, &*close.reason), (1008, "forbidden: blocked"));
    }
    assert_eq!(runtime.running(), 0);
    let mut again = Client::open(runtime);
    let refusal = again.refused(&connect(&client_key(), json!({}))).await;
    assert_eq!(refusal, "forbidden: Denied by fast rules");
}

#[tokio::test(start_paused = true)]
async fn blocking_a_caller_disconnects_it_and_ends_its_run() {
    let runtime = runtime_with(RuntimeOptions::with_access(access()));
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let mut busy = Client::inside_as(&runtime, &client_key()).await;
    let mut idle = Client::inside_as(&runtime, &client_key()).await;
    busy.send(&input("wait")).await;
    busy.recv_type("user_input").await;
    admin
        .send(&command("ADMIN_BLOCK", &Draft::new(now())))
        .await;
    assert_eq!(admin.recv_type("ADMIN_RESULT").await["level"], "blocked");
    put_out(&runtime, &mut busy, &mut idle).await;
    assert_eq!(admin.ask("hello").await, "echo: hello");
}

#[tokio::test(start_paused = true)]
async fn lists_changed_elsewhere_end_who_is_blocked_within_a_second() {
    let changed = Arc::new(Mutex::new(None::<TrustBook>));
    let source = Arc::clone(&changed);
    let mut options = RuntimeOptions::with_access(access());
    options.trust_source = Some(Box::new(move || source.lock().unwrap().take()));
    let runtime = runtime_with(options);
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let mut busy = Client::inside_as(&runtime, &client_key()).await;
    let mut idle = Client::inside_as(&runtime, &client_key()).await;
    busy.send(&input("wait")).await;
    busy.recv_type("user_input").await;
    let mut book = TrustBook::default();
    book.blocked.insert(*client_key().address()).unwrap();
    let begin = Instant::now();
    *changed.lock().unwrap() = Some(book);
    put_out(&runtime, &mut busy, &mut idle).await;
    assert!(begin.elapsed() <= SECOND);
    // And it is not an administrator any more.
    let refusal = admin
        .refused(&command("ADMIN_UNBLOCK", &Draft::new(now())))
        .await;
    assert_eq!(refusal, "forbidden: admin only");
}

#[tokio::test(start_paused = true)]
async fn used_signatures_are_remembered_across_restarts() {
    let kept = Arc::new(Mutex::new(Vec::<String>::new()));
    let start = || {
        let spent: Vec<Spent> = kept
            .lock()
            .unwrap()
            .iter()
            .map(|it| Spent::parse(it).unwrap())
            .collect();
        let access = access()
            .with_used_signatures(MAX_USED_SIGNATURES)
            .with_spent(spent);
        let kept = Arc::clone(&kept);
        let mut options = RuntimeOptions::with_access(access);
        options.on_spent = Some(Box::new(move |spent| {
            kept.lock()
                .unwrap()
                .extend(spent.iter().map(ToString::to_string));
        }));
        runtime_with(options)
    };
    let runtime = start();
    let hello = connect(&admin_key(), json!({}));
    let mut admin = Client::open(&runtime);
    admin.send(&hello).await;
    admin.recv_type("CONNECTED").await;
    let promote = command("ADMIN_PROMOTE", &Draft::new(now()).with_nonce(1));
    admin.send(&promote).await;
    assert_eq!(admin.recv_type("ADMIN_RESULT").await["level"], "contact");
    let runtime = start();
    let refusal = Client::open(&runtime).refused(&hello).await;
    assert_eq!(refusal, "unauthorized: this CONNECT was already used");
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let refusal = admin.refused(&promote).await;
    assert_eq!(refusal, "unauthorized: signed command already used");
    assert_eq!(kept.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_signed_frame_cannot_be_used_as_another_type() {
    let codes = connectonion_proto::auth::InviteCodes::new(["red-onion"]).unwrap();
    let gated = AccessControl::new(*host_key().address(), TrustLevel::Careful).with_invites(codes);
    let (gated, open) = (
        runtime_with(RuntimeOptions::with_access(gated)),
        runtime_with(RuntimeOptions::with_access(access())),
    );
    const WRONG: &str = "unauthorized: signed command type mismatch";
    let typed = |kind: &str| Draft::new(now()).with("type", kind);
    // A CONNECT.
    let key = client_key();
    let wrong = signed("CONNECT", &key, &typed("INPUT"), json!({}));
    assert_eq!(Client::open(&open).refused(&wrong).await, WRONG);
    // A prompt.
    let mut client = Client::inside_as(&open, &key).await;
    let draft = typed("CONNECT").with("prompt", "hello");
    let wrong = signed("INPUT", &key, &draft, json!({"prompt": "hello"}));
    assert_eq!(client.refused(&wrong).await, WRONG);
    // An offer.
    let mut stranger = Client::open(&gated);
    stranger.send(&connect(&key, json!({}))).await;
    stranger.recv_type("ONBOARD_REQUIRED").await;
    let offer = typed("CONNECT").with("invite_code", "red-onion");
    let wrong = signed("ONBOARD_SUBMIT", &key, &offer, json!({}));
    assert_eq!(stranger.refused(&wrong).await, WRONG);
    // A command, also with a type that is not text.
    let mut admin = Client::inside_as(&open, &admin_key()).await;
    for kind in [json!("ADMIN_PROMOTE"), json!(["ADMIN_BLOCK"]), json!("")] {
        let wrong = command("ADMIN_BLOCK", &Draft::new(now()).with("type", kind));
        assert_eq!(admin.refused(&wrong).await, WRONG);
    }
    // Older clients sign no type.
    admin
        .send(&command("ADMIN_GET_LEVEL", &Draft::new(now())))
        .await;
    admin.recv_type("ADMIN_RESULT").await;
}
