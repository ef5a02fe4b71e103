//! Commands that someone answers for: of administrators, and of clients that sign all of theirs.

use connectonion_proto::auth::{Draft, Signer};
use connectonion_proto::limits::MAX_USED_SIGNATURES;
use connectonion_proto::net::{HostRuntime, RuntimeOptions};
use connectonion_proto::trust::{AccessControl, TrustLevel};
use serde_json::{Value, json};

use crate::staff::{
    Client, SECOND, client_key, connect, host_key, now, runtime, runtime_with, signed,
};

const NOT_THE_OWNER: &str = "unauthorized: command signer does not own this connection";
const USED: &str = "unauthorized: signed command already used";

fn admin_key() -> Signer {
    Signer::from_seed(&[9; 32])
}

fn desk_with_admin() -> HostRuntime {
    let runtime = runtime();
    runtime
        .with_access(|access| access.book_mut().admins.insert(*admin_key().address()))
        .unwrap();
    runtime
}

/// A connection of this key that is admitted.
/// A command to do something with the usual client.
fn about_client(kind: &str, key: &Signer, nonce: u128) -> Value {
    let draft = Draft::new(now()).with_nonce(nonce).with("type", kind);
    let draft = draft.with_to(host_key().address());
    let whom = client_key().address().to_string();
    signed(kind, key, &draft.with("client_id", whom), json!({}))
}

#[tokio::test(start_paused = true)]
async fn an_administrators_command_counts_once_on_any_connection() {
    let runtime = desk_with_admin();
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let block = about_client("ADMIN_BLOCK", &admin_key(), 1);
    admin.send(&block).await;
    assert_eq!(admin.recv_type("ADMIN_RESULT").await["level"], "blocked");
    admin
        .send(&about_client("ADMIN_UNBLOCK", &admin_key(), 2))
        .await;
    assert_eq!(admin.recv_type("ADMIN_RESULT").await["level"], "stranger");
    assert_eq!(admin.refused(&block).await, USED);
    // Another spelling of a signature is the same signature.
    let mut louder = block.clone();
    let signature = block["signature"].as_str().unwrap();
    louder["signature"] = json!(format!("0x{}", signature.to_uppercase()));
    assert_eq!(admin.refused(&louder).await, USED);
    let mut again = Client::inside_as(&runtime, &admin_key()).await;
    assert_eq!(again.refused(&block).await, USED);
    let level = about_client("ADMIN_GET_LEVEL", &admin_key(), 3);
    again.send(&level).await;
    assert_eq!(again.recv_type("ADMIN_RESULT").await["level"], "stranger");
}

#[tokio::test(start_paused = true)]
async fn each_command_of_an_administrator_does_what_its_name_says() {
    let runtime = desk_with_admin();
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let steps = [
        ("ADMIN_GET_LEVEL", "get_level", "stranger", true),
        ("ADMIN_DEMOTE", "demote", "stranger", false),
        ("ADMIN_PROMOTE", "promote", "contact", true),
        ("ADMIN_PROMOTE", "promote", "whitelist", true),
        ("ADMIN_PROMOTE", "promote", "whitelist", false),
        ("ADMIN_BLOCK", "block", "blocked", true),
        ("ADMIN_PROMOTE", "promote", "blocked", false),
        ("ADMIN_UNBLOCK", "unblock", "whitelist", true),
        ("ADMIN_DEMOTE", "demote", "contact", true),
    ];
    for ((kind, action, level, success), nonce) in steps.into_iter().zip(1..) {
        admin.send(&about_client(kind, &admin_key(), nonce)).await;
        let result = admin.recv_type("ADMIN_RESULT").await;
        assert_eq!(result["action"], action, "{result}");
        assert_eq!(result["level"], level, "{result}");
        assert_eq!(result.get("error").is_none(), success, "{result}");
        let whom = client_key().address().to_string();
        assert_eq!(result["client_id"], whom, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_host_adds_and_removes_administrators() {
    let runtime = runtime();
    let mut host = Client::inside_as(&runtime, &host_key()).await;
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let about_admin = |kind: &str, key: &Signer, nonce: u128| {
        let draft = Draft::new(now()).with_nonce(nonce).with("type", kind);
        let whom = admin_key().address().to_string();
        signed(kind, key, &draft.with("admin_id", whom), json!({}))
    };
    let steps = [
        ("ADMIN_ADD", "add_admin", true),
        ("ADMIN_REMOVE", "remove_admin", false),
    ];
    for ((kind, action, is_admin), nonce) in steps.into_iter().zip(1_u128..) {
        let own = about_admin(kind, &admin_key(), 10 + nonce);
        assert_eq!(admin.refused(&own).await, "forbidden: super admin only");
        host.send(&about_admin(kind, &host_key(), nonce)).await;
        let result = host.recv_type("ADMIN_RESULT").await;
        assert_eq!(result["action"], action);
        assert_eq!(result["success"], true);
        admin
            .send(&about_client("ADMIN_GET_LEVEL", &admin_key(), 20 + nonce))
            .await;
        let answer = admin.recv().await;
        assert_eq!(answer["type"] == "ADMIN_RESULT", is_admin, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn administrators_and_the_host_are_admitted_at_every_level() {
    for level in [TrustLevel::Open, TrustLevel::Careful, TrustLevel::Strict] {
        let access = AccessControl::new(*host_key().address(), level).require_signatures();
        let runtime = runtime_with(RuntimeOptions::with_access(access));
        let name = |access: &mut AccessControl| {
            let book = access.book_mut();
            book.admins.insert(*admin_key().address())
        };
        runtime.with_access(name).unwrap();
        Client::inside_as(&runtime, &host_key()).await;
        Client::inside_as(&runtime, &admin_key()).await;
        runtime
            .with_access(|access| access.book_mut().blocked.insert(*admin_key().address()))
            .unwrap();
        let mut blocked = Client::open(&runtime);
        let reported = blocked.refused(&connect(&admin_key(), json!({}))).await;
        assert_eq!(reported, "forbidden: Denied by fast rules", "{level:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_admin_command_on_a_foreign_connection_is_refused() {
    let runtime = desk_with_admin();
    let block = about_client("ADMIN_BLOCK", &admin_key(), 1);
    let mut nobody = Client::open(&runtime);
    assert_eq!(
        nobody.refused(&block).await,
        "unauthorized: ADMIN commands need an authenticated connection (send CONNECT first)"
    );
    let mut thief = Client::inside_as(&runtime, &Signer::from_seed(&[3; 32])).await;
    assert_eq!(thief.refused(&block).await, NOT_THE_OWNER);
    let mut unsigned = Client::open(&runtime);
    unsigned.send(&json!({"type": "CONNECT"})).await;
    unsigned.recv_type("CONNECTED").await;
    assert_eq!(unsigned.refused(&block).await, NOT_THE_OWNER);
    // Nothing of it has used the command up.
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    admin.send(&block).await;
    assert_eq!(admin.recv_type("ADMIN_RESULT").await["level"], "blocked");
}

#[tokio::test(start_paused = true)]
async fn strangers_do_not_fill_the_memory_of_administrators() {
    // Without room for the signature of a single CONNECT.
    let access =
        AccessControl::new(*host_key().address(), TrustLevel::Open).with_used_signatures(2);
    let runtime = runtime_with(RuntimeOptions::with_access(access));
    runtime
        .with_access(|access| access.book_mut().admins.insert(*admin_key().address()))
        .unwrap();
    let mut admin = Client::inside_as(&runtime, &admin_key()).await;
    let mut stranger = Client::inside_as(&runtime, &client_key()).await;
    for nonce in 0..3 {
        let command = about_client("ADMIN_GET_LEVEL", &client_key(), nonce);
        assert_eq!(stranger.refused(&command).await, "forbidden: admin only");
    }
    let late = Client::open(&runtime)
        .refused(&connect(&client_key(), json!({})))
        .await;
    assert_eq!(late, "misconfigured: replay protection unavailable");
    admin
        .send(&about_client("ADMIN_BLOCK", &admin_key(), 1))
        .await;
    assert_eq!(admin.recv_type("ADMIN_RESULT").await["level"], "blocked");
}

#[tokio::test(start_paused = true)]
async fn a_signature_counts_once_whatever_it_was_used_for() {
    let access = AccessControl::new(*host_key().address(), TrustLevel::Open);
    let access = access.with_used_signatures(MAX_USED_SIGNATURES);
    let runtime = runtime_with(RuntimeOptions::with_access(access));
    let mut client = Client::inside_as(&runtime, &client_key()).await;
    // As the known SDKs sign it.
    let draft = Draft::new(now()).with("prompt", "hello");
    let prompt = signed("INPUT", &client_key(), &draft, json!({"prompt": "hello"}));
    client.send(&prompt).await;
    client.output().await;
    assert_eq!(client.refused(&prompt).await, USED);
    // Nothing in it says what it is for.
    let draft = Draft::new(now()).with_nonce(1);
    let mut any = signed("INPUT", &client_key(), &draft, json!({"prompt": "hello"}));
    client.send(&any).await;
    client.output().await;
    any["type"] = json!("CONNECT");
    let refusal = Client::open(&runtime).refused(&any).await;
    assert_eq!(refusal, "unauthorized: this CONNECT was already used");
}

#[tokio::test(start_paused = true)]
async fn a_payload_of_another_kind_is_no_connect() {
    let runtime = desk_with_admin();
    let address = client_key().address().to_string();
    for (member, value) in [
        ("type", "INPUT"),
        ("prompt", "hello"),
        ("delete", "s"),
        ("client_id", &*address),
        ("admin_id", &*address),
    ] {
        let draft = Draft::new(now()).with(member, value);
        let frame = signed("CONNECT", &client_key(), &draft, json!({}));
        let refusal = Client::open(&runtime).refused(&frame).await;
        let words = "unauthorized: signed command type mismatch";
        assert_eq!(refusal, words, "{member}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_payload_without_contents_is_refused_unread() {
    let runtime = runtime();
    let mut client = Client::open(&runtime);
    let draft = Draft::new(now()).with("x", "x".repeat(64 * 1024));
    let large = signed("CONNECT", &client_key(), &draft, json!({}));
    let refusal = client.refused(&large).await;
    assert!(
        refusal.starts_with("unauthorized: invalid payload: "),
        "{refusal}"
    );
    client.send(&connect(&client_key(), json!({}))).await;
    client.recv_type("CONNECTED").await;
}

/// A connection whose client signs its commands.
async fn signing(runtime: &HostRuntime, members: Value) -> (Client, Value) {
    let mut client = Client::open(runtime);
    let draft = Draft::new(now()).with_to(host_key().address());
    let draft = draft.with("signed_commands", 1);
    client
        .send(&signed("CONNECT", &client_key(), &draft, members))
        .await;
    let connected = client.recv_type("CONNECTED").await;
    (client, connected)
}

/// A command as newer clients send it: what counts is signed, and a copy lies around it.
fn command(key: &Signer, members: &Value, nonce: u128) -> Value {
    let mut draft = Draft::new(now()).with_to(host_key().address());
    draft = draft.with_nonce(nonce);
    for (name, value) in members.as_object().unwrap() {
        draft = draft.with(name, value.clone());
    }
    let kind = members["type"].as_str().unwrap();
    signed(kind, key, &draft, members.clone())
}

fn prompt(key: &Signer, text: &str, nonce: u128) -> Value {
    command(key, &json!({"type": "INPUT", "prompt": text}), nonce)
}

#[tokio::test(start_paused = true)]
async fn signed_commands_are_all_accepted() {
    let runtime = runtime();
    let (mut client, _) = signing(&runtime, json!({})).await;
    let key = client_key();
    // What is not signed is not looked at.
    let mut hello = prompt(&key, "hello", 1);
    hello["prompt"] = json!("something else");
    client.send(&hello).await;
    assert_eq!(client.output().await["result"], "echo: hello");
    client.send(&prompt(&key, "ask name?", 2)).await;
    let frames = client.recv_until("ask_user").await;
    let answer = json!({"type": "ASK_USER_RESPONSE", "answer": "Ann",
        "request_id": frames.last().unwrap()["id"]});
    client.send(&command(&key, &answer, 3)).await;
    assert_eq!(client.output().await["result"], "answer \"Ann\"");
    let mode = json!({"type": "mode_change", "mode": "plan"});
    client.send(&command(&key, &mode, 4)).await;
    assert_eq!(client.recv_type("mode_changed").await["mode"], "plan");
    client.send(&prompt(&key, "wait", 5)).await;
    client.recv_type("user_input").await;
    client
        .send(&command(&key, &json!({"type": "INTERRUPT"}), 6))
        .await;
    client.output().await;
    // These need no signature.
    client.send(&json!({"type": "PONG"})).await;
    client
        .send(&json!({"type": "SESSION_STATUS", "session": {"session_id": "x"}}))
        .await;
    client.recv_type("SESSION_STATUS").await;
}

#[tokio::test(start_paused = true)]
async fn unsigned_commands_are_refused_where_signing_is_on() {
    let runtime = runtime();
    let (mut client, connected) = signing(&runtime, json!({})).await;
    let key = client_key();
    let plain = [
        json!({"type": "INPUT", "prompt": "hello"}),
        json!({"type": "ASK_USER_RESPONSE", "answer": "yes"}),
        json!({"type": "APPROVAL_RESPONSE", "approved": true}),
        json!({"type": "PLAN_REVIEW_RESPONSE", "message": "yes"}),
        json!({"type": "ULW_RESPONSE", "action": "continue"}),
        json!({"type": "mode_change", "mode": "ulw"}),
        json!({"type": "prompt_update", "prompt": "more"}),
        json!({"type": "INTERRUPT"}),
        json!({"type": "ADMIN_BLOCK", "client_id": "0x1"}),
    ];
    for frame in &plain {
        let reported = client.refused(frame).await;
        assert_eq!(reported, "unauthorized: signed command required", "{frame}");
    }
    let hello = prompt(&key, "hello", 1);
    let other = prompt(&Signer::from_seed(&[3; 32]), "hello", 1);
    let mut altered = hello.clone();
    altered["payload"]["prompt"] = json!("rm -rf");
    let mut interrupt = hello.clone();
    interrupt["type"] = json!("INTERRUPT");
    let draft = |draft: Draft| {
        let draft = draft.with("type", "INPUT").with("prompt", "hello");
        signed("INPUT", &key, &draft, json!({"prompt": "hello"}))
    };
    let fresh = || Draft::new(now());
    let us = *host_key().address();
    for (frame, expected) in [
        (other, NOT_THE_OWNER),
        (altered, "unauthorized: invalid signature"),
        (interrupt, "unauthorized: signed command type mismatch"),
        (
            draft(fresh().with_to(&us)),
            "unauthorized: signed command nonce required",
        ),
        (
            draft(fresh().with_nonce(1)),
            "unauthorized: wrong recipient",
        ),
        (
            draft(fresh().with_nonce(1).with_to(key.address())),
            "unauthorized: wrong recipient",
        ),
        (
            draft(Draft::new(now() - 400.0).with_nonce(1).with_to(&us)),
            "unauthorized: signature expired (the client's clock is 40",
        ),
    ] {
        let reported = client.refused(&frame).await;
        assert!(reported.starts_with(expected), "{reported} for {frame}");
    }
    // A later CONNECT takes nothing back.
    let same = json!({"session_id": connected["session_id"]});
    client.send(&connect(&key, same.clone())).await;
    client.recv_type("CONNECTED").await;
    let reported = client.refused(&plain[0]).await;
    assert_eq!(reported, "unauthorized: signed command required");
    // And once is once, on every connection.
    client.send(&hello).await;
    client.output().await;
    assert_eq!(client.refused(&hello).await, USED);
    let (mut again, _) = signing(&runtime, same).await;
    assert_eq!(again.refused(&hello).await, USED);
    // Nothing of all this has held anything up.
    again.send(&prompt(&key, "hello", 2)).await;
    assert_eq!(again.output().await["result"], "echo: hello");
}

#[tokio::test(start_paused = true)]
async fn signed_commands_stay_on_through_onboarding() {
    let codes = connectonion_proto::auth::InviteCodes::new(["red-onion"]).unwrap();
    let access = AccessControl::new(*host_key().address(), TrustLevel::Careful).with_invites(codes);
    let runtime = runtime_with(RuntimeOptions::with_access(access));
    let mut client = Client::open(&runtime);
    let key = client_key();
    let wish = Draft::new(now()).with("signed_commands", 1);
    client
        .send(&signed("CONNECT", &key, &wish, json!({})))
        .await;
    client.recv_type("ONBOARD_REQUIRED").await;
    tokio::time::sleep(SECOND).await;
    let offer = Draft::new(now()).with("invite_code", "red-onion");
    client
        .send(&signed("ONBOARD_SUBMIT", &key, &offer, json!({})))
        .await;
    client.recv_type("ONBOARD_SUCCESS").await;
    client.recv_type("CONNECTED").await;
    let reported = client
        .refused(&json!({"type": "INPUT", "prompt": "hello"}))
        .await;
    assert_eq!(reported, "unauthorized: signed command required");
    client.send(&prompt(&key, "hello", 1)).await;
    assert_eq!(client.output().await["result"], "echo: hello");
}
