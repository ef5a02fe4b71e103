//! The door of a runtime: who comes in, how strangers become contacts, who may change the lists.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use connectonion_proto::auth::AddressList;
use connectonion_proto::auth::{Address, Draft, InviteCodes, Signer, Verifier};
use connectonion_proto::limits::AUTHENTICATE_FIRST;
use connectonion_proto::limits::MAX_USED_SIGNATURES;
use connectonion_proto::net::{HostRuntime, RuntimeOptions};
use connectonion_proto::trust::{AccessControl, TrustBook, TrustLevel};
use serde_json::{Value, json};

use crate::staff::{
    Client, client_key, connect, host_key, input, now, runtime, runtime_with, signed,
};

fn careful() -> RuntimeOptions {
    let codes = InviteCodes::new(["red-onion"]).unwrap();
    RuntimeOptions::with_access(
        AccessControl::new(*host_key().address(), TrustLevel::Careful).with_invites(codes),
    )
}

fn offer(key: &Signer, code: &str) -> Value {
    let draft = Draft::new(now()).with("invite_code", code);
    signed("ONBOARD_SUBMIT", key, &draft, json!({}))
}

#[tokio::test(start_paused = true)]
async fn one_signature_cannot_onboard_and_connect() {
    let mut options = careful();
    options.access = options.access.with_used_signatures(MAX_USED_SIGNATURES);
    let runtime = runtime_with(options);
    let key = client_key();
    let connect = connect(&key, json!({}));
    let (mut owner, mut thief) = (Client::open(&runtime), Client::open(&runtime));
    for client in [&mut owner, &mut thief] {
        client.send(&connect).await;
        client.recv_type("ONBOARD_REQUIRED").await;
    }
    let offer = offer(&key, "red-onion");
    owner.send(&offer).await;
    owner.recv_type("ONBOARD_SUCCESS").await;
    owner.recv_type("CONNECTED").await;
    // Who has read along may repeat everything.
    thief.send(&offer).await;
    let used = "unauthorized: signed command already used";
    assert_eq!(thief.error().await, used);
    let used = "unauthorized: this CONNECT was already used";
    let mut late = Client::open(&runtime);
    assert_eq!(late.refused(&connect).await, used);
    // By another signature the owner comes in at any time.
    let (_again, connected) = Client::inside(&runtime, json!({})).await;
    assert_eq!(connected["status"], "new");
}

#[tokio::test(start_paused = true)]
async fn three_wrong_invite_codes_end_the_connection() {
    let runtime = runtime_with(careful());
    let key = client_key();
    let draft = Draft::new(now()).with("invite_code", "wrong");
    let by_connect = signed("CONNECT", &key, &draft, json!({}));
    let mut client = Client::open(&runtime);
    client.send(&by_connect).await;
    client.recv_type("ONBOARD_REQUIRED").await;
    for code in ["wrong", "wrong again"] {
        client.send(&offer(&key, code)).await;
        client.recv_type("ERROR").await;
    }
    let close = client.close_frame().await;
    assert_eq!(close.reason, "too many wrong invite codes");
}

#[tokio::test(start_paused = true)]
async fn an_invite_code_admits_a_stranger() {
    let runtime = runtime_with(careful());
    let mut client = Client::open(&runtime);
    let key = client_key();
    client
        .send(&connect(&key, json!({"session_id": "first"})))
        .await;
    let required = client.recv_type("ONBOARD_REQUIRED").await;
    assert_eq!(required["identity"], key.address().to_string());
    assert_eq!(required["methods"], json!(["invite_code"]));
    assert_eq!(client.refused(&input("hello")).await, AUTHENTICATE_FIRST);
    // The last CONNECT is the one that waits.
    client
        .send(&connect(&key, json!({"session_id": "second"})))
        .await;
    client.recv_type("ONBOARD_REQUIRED").await;
    assert_eq!(
        client.refused(&offer(&key, "blue-onion")).await,
        "Invalid invite code"
    );
    let other = Signer::from_seed(&[3; 32]);
    client.send(&offer(&other, "red-onion")).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "unauthorized: invalid signature");
    // A human may be looking for the code.
    tokio::time::sleep(crate::staff::SECOND * 1000).await;
    client.send(&offer(&key, "red-onion")).await;
    let success = client.recv_type("ONBOARD_SUCCESS").await;
    assert_eq!(success["level"], "contact");
    let connected = client.recv_type("CONNECTED").await;
    assert_eq!(connected["session_id"], "second");
    // What npm's 0.1.4 sends then.
    client.send(&input("")).await;
    client.recv_nothing().await;
    assert_eq!(client.refused(&input("")).await, "prompt required");
    assert_eq!(client.ask("hello").await, "echo: hello");
    let (_client, connected) = Client::inside(&runtime, json!({})).await;
    assert_eq!(connected["status"], "new");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_caller_is_offered_no_onboarding() {
    let mut book = TrustBook::default();
    book.blocked.insert(*client_key().address()).unwrap();
    let codes = InviteCodes::new(["red-onion"]).unwrap();
    let access = AccessControl::new(*host_key().address(), TrustLevel::Careful)
        .with_invites(codes)
        .with_book(book);
    let runtime = runtime_with(RuntimeOptions::with_access(access));
    let mut client = Client::open(&runtime);
    client.send(&connect(&client_key(), json!({}))).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "forbidden: Denied by fast rules");
}

#[tokio::test(start_paused = true)]
async fn only_administrators_may_send_admin_commands() {
    let runtime = runtime();
    let admin = Signer::from_seed(&[9; 32]);
    let mut client = Client::inside_as(&runtime, &admin).await;
    let request = |key: &Signer, kind: &str, member: &str| {
        let draft = Draft::new(now()).with(member, client_key().address().to_string());
        signed(kind, key, &draft, json!({}))
    };
    assert_eq!(
        client
            .refused(&request(&admin, "ADMIN_BLOCK", "client_id"))
            .await,
        "forbidden: admin only"
    );
    runtime
        .with_access(|access| access.book_mut().admins.insert(*admin.address()))
        .unwrap();
    client
        .send(&request(&admin, "ADMIN_BLOCK", "client_id"))
        .await;
    let result = client.recv_type("ADMIN_RESULT").await;
    assert_eq!(
        (&result["action"], &result["level"]),
        (&json!("block"), &json!("blocked"))
    );
    // A signature for one command is not valid for another.
    let mut unblock = request(&admin, "ADMIN_UNBLOCK", "client_id");
    let draft = Draft::new(now()).with("type", "ADMIN_GET_LEVEL");
    let get_level = draft.with("client_id", client_key().address().to_string());
    let get_level = signed("ADMIN_GET_LEVEL", &admin, &get_level, json!({}));
    unblock["payload"] = get_level["payload"].clone();
    unblock["signature"] = get_level["signature"].clone();
    client.send(&unblock).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(
        error["message"],
        "unauthorized: signed command type mismatch"
    );
    client.send(&get_level).await;
    assert_eq!(client.recv_type("ADMIN_RESULT").await["level"], "blocked");
    client.send(&request(&admin, "ADMIN_ADD", "admin_id")).await;
    let error = client.recv_type("ERROR").await;
    assert_eq!(error["message"], "forbidden: super admin only");
    let mut blocked = Client::open(&runtime);
    assert_eq!(
        blocked.refused(&connect(&client_key(), json!({}))).await,
        "forbidden: Denied by fast rules"
    );
}

#[tokio::test(start_paused = true)]
async fn a_payment_admits_once_it_is_verified() {
    let access =
        AccessControl::new(*host_key().address(), TrustLevel::Careful).with_payment(10_u64, None);
    let refusal = Arc::new(AtomicUsize::new(0));
    let hook = Arc::clone(&refusal);
    let is_paid = async |payer: Address, amount| payer == *client_key().address() && amount >= 10.0;
    let mut options = RuntimeOptions::with_access(access).with_payments(is_paid);
    options.on_trust = Some(Box::new(move |book| {
        hook.store(book.contacts.addresses().count(), Ordering::SeqCst);
    }));
    let runtime = runtime_with(options);
    let offer = |key: &Signer, amount: u32| {
        let draft = Draft::new(now()).with("payment", amount);
        signed("ONBOARD_SUBMIT", key, &draft, json!({}))
    };
    let liar = Signer::from_seed(&[3; 32]);
    for (key, amount) in [(&liar, 10), (&client_key(), 9)] {
        let mut client = Client::open(&runtime);
        client.send(&connect(key, json!({}))).await;
        let required = client.recv_type("ONBOARD_REQUIRED").await;
        assert_eq!(required["methods"], json!(["payment"]));
        assert_eq!(required["payment_amount"], 10);
        assert_eq!(
            client.refused(&offer(key, amount)).await,
            "Insufficient payment"
        );
    }
    let mut client = Client::open(&runtime);
    client.send(&connect(&client_key(), json!({}))).await;
    client.recv_type("ONBOARD_REQUIRED").await;
    client.send(&offer(&client_key(), 10)).await;
    client.recv_type("ONBOARD_SUCCESS").await;
    client.recv_type("CONNECTED").await;
    assert_eq!(refusal.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_invite_code_may_come_with_the_connect() {
    let runtime = runtime_with(careful());
    let mut client = Client::open(&runtime);
    let draft = Draft::new(now()).with("invite_code", "red-onion");
    client
        .send(&signed("CONNECT", &client_key(), &draft, json!({})))
        .await;
    client.recv_type("CONNECTED").await;
    // Where signatures count once, an invitation does, too.
    let mut options = careful();
    options.access = options.access.with_used_signatures(MAX_USED_SIGNATURES);
    let runtime = runtime_with(options);
    let invited = signed("CONNECT", &client_key(), &draft, json!({}));
    counts_once(&runtime, &invited).await;
}

/// Sends a CONNECT over two connections: the first one comes in, the second one is refused.
async fn counts_once(runtime: &HostRuntime, connect: &Value) {
    let mut client = Client::open(runtime);
    client.send(connect).await;
    client.recv_type("CONNECTED").await;
    let mut again = Client::open(runtime);
    assert_eq!(
        again.refused(connect).await,
        "unauthorized: this CONNECT was already used"
    );
}

#[tokio::test(start_paused = true)]
async fn signatures_can_be_single_use() {
    let access = AccessControl::new(*host_key().address(), TrustLevel::Open)
        .with_used_signatures(MAX_USED_SIGNATURES);
    let runtime = runtime_with(RuntimeOptions::with_access(access));
    counts_once(&runtime, &connect(&client_key(), json!({}))).await;
}

#[tokio::test(start_paused = true)]
async fn an_unsigned_caller_is_known_by_its_session_alone() {
    let runtime = runtime();
    let unsigned = json!({"type": "CONNECT", "session_id": "open"});
    let mut client = Client::open(&runtime);
    client.send(&unsigned).await;
    client.recv_type("CONNECTED").await;
    client.ask("hello").await;
    let mut again = Client::open(&runtime);
    again.send(&unsigned).await;
    assert_eq!(again.recv_type("CONNECTED").await["server_newer"], true);
    let (_, connected) = Client::inside(&runtime, json!({"session_id": "open"})).await;
    assert_ne!(connected["session_id"], "open");
    // A strict host wants to know who it is.
    let runtime = runtime_with(RuntimeOptions::new(&host_key(), TrustLevel::Strict));
    let mut client = Client::open(&runtime);
    assert_eq!(
        client.refused(&unsigned).await,
        "unauthorized: signed request required"
    );
}

#[tokio::test(start_paused = true)]
async fn a_blocked_caller_is_refused_without_a_signature_too() {
    let blacklist = AddressList::parse(&client_key().address().to_string());
    let us = *host_key().address();
    for level in [TrustLevel::Open, TrustLevel::Careful] {
        let access = || AccessControl::new(us, level);
        let mut blocked = TrustBook::default();
        blocked.blocked.insert(*client_key().address()).unwrap();
        let mut whitelist = TrustBook::default();
        whitelist.whitelist = AddressList::parse("0x3d40*");
        let verifier = Verifier {
            recipient: Some(*host_key().address()),
            blacklist: blacklist.clone(),
            ..Verifier::default()
        };
        for own in [
            access().with_book(blocked),
            access().with_book(whitelist),
            access().with_verifier(verifier),
            access().with_invites(InviteCodes::new(["red-onion"]).unwrap()),
            access().with_payment(10_u64, None),
        ] {
            let runtime = runtime_with(RuntimeOptions::with_access(own));
            let mut client = Client::open(&runtime);
            assert_eq!(
                client.refused(&json!({"type": "CONNECT"})).await,
                "unauthorized: signed request required"
            );
        }
        // Where it does not matter who someone is, the specification's table holds.
        let runtime = runtime_with(RuntimeOptions::with_access(access()));
        let mut client = Client::open(&runtime);
        client.send(&json!({"type": "CONNECT"})).await;
        client.recv_type("CONNECTED").await;
        // Until someone is blocked.
        runtime
            .with_access(|access| access.book_mut().blocked.insert(*client_key().address()))
            .unwrap();
        let mut late = Client::open(&runtime);
        late.send(&json!({"type": "CONNECT"})).await;
        late.recv_type("ERROR").await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_signed_prompt_wins_over_the_unsigned_one() {
    let runtime = runtime();
    let (mut client, _) = Client::inside(&runtime, json!({})).await;
    let draft = Draft::new(now()).with("prompt", "signed");
    let both = signed("INPUT", &client_key(), &draft, json!({"prompt": "plain"}));
    client.send(&both).await;
    assert_eq!(client.output().await["result"], "echo: signed");
    let mut bad = both.clone();
    bad["payload"]["prompt"] = json!("other");
    client.send(&bad).await;
    let invalid = "unauthorized: invalid signature";
    assert_eq!(client.error().await, invalid);
    let other = Signer::from_seed(&[3; 32]);
    assert_eq!(
        client
            .refused(&signed("INPUT", &other, &draft, json!({})))
            .await,
        invalid
    );
    assert_eq!(client.ask("plain").await, "echo: plain");
    // It proves nothing of a caller without an identity, and is not looked at.
    let mut unsigned = Client::open(&runtime);
    unsigned.send(&json!({"type": "CONNECT"})).await;
    unsigned.recv_type("CONNECTED").await;
    unsigned.send(&bad).await;
    assert_eq!(unsigned.output().await["result"], "echo: other");
}

#[tokio::test(start_paused = true)]
async fn a_careful_host_recommends_signatures_to_unsigned_callers() {
    for (level, recommended) in [
        (TrustLevel::Careful, json!(true)),
        (TrustLevel::Open, json!(null)),
    ] {
        let runtime = runtime_with(RuntimeOptions::new(&host_key(), level));
        let mut unsigned = Client::open(&runtime);
        unsigned.send(&json!({"type": "CONNECT"})).await;
        let connected = unsigned.recv_type("CONNECTED").await;
        assert_eq!(connected["signature_recommended"], recommended);
        let (_, connected) = Client::inside(&runtime, json!({})).await;
        assert!(
            connected.get("signature_recommended").is_none(),
            "{connected}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_key_can_onboard_on_two_connections() {
    let runtime = runtime_with(careful());
    let offer = |code: &str, nonce: u128| {
        let draft = Draft::new(now())
            .with_nonce(nonce)
            .with("invite_code", code);
        signed("ONBOARD_SUBMIT", &client_key(), &draft, json!({}))
    };
    let mut gates = [Client::open(&runtime), Client::open(&runtime)];
    for (gate, nonce) in gates.iter_mut().zip(0..) {
        let draft = Draft::new(now()).with_nonce(nonce);
        gate.send(&signed("CONNECT", &client_key(), &draft, json!({})))
            .await;
        gate.recv_type("ONBOARD_REQUIRED").await;
    }
    for (gate, nonce) in gates.iter_mut().zip(10..) {
        gate.send(&offer("red-onion", nonce)).await;
        assert_eq!(gate.recv_type("ONBOARD_SUCCESS").await["level"], "contact");
        gate.recv_type("CONNECTED").await;
    }
    assert_eq!(
        runtime.with_access(|it| it.book().contacts.addresses().count()),
        1
    );
    // A second onboarding on one connection changes nothing, and holds nothing up.
    let [mut client, _other] = gates;
    for code in ["red-onion", "wrong"] {
        client.send(&offer(code, 20)).await;
        let refusal = client.try_recv(std::time::Duration::from_secs(1)).await;
        assert_ne!(
            refusal.map(|it| it["type"].clone()),
            Some(json!("CONNECTED"))
        );
    }
    assert_eq!(client.ask("hello").await, "echo: hello");
    let us = *client_key().address();
    assert!(runtime.with_access(|it| it.book().contacts.contains(&us)));
    // Whom the host blocks between two gates is put out of the first, and not let in at the second.
    let mut late = Client::open(&runtime);
    runtime.with_access(|it| it.book_mut().contacts.remove(&us));
    late.send(&connect(&client_key(), json!({}))).await;
    late.recv_type("ONBOARD_REQUIRED").await;
    runtime
        .with_access(|it| it.book_mut().blocked.insert(us))
        .unwrap();
    assert_eq!(client.close_frame().await.code, 1008);
    assert_eq!(
        late.refused(&offer("red-onion", 30)).await,
        "forbidden: blocked"
    );
}
