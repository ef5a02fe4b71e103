//! Snek: a platform in memory.

use rpc_core::testing::Side;
use snek_proto::net::{MemoryBackend, Server, ServerOptions};

use super::{Outcome, Protocol, Setup, Suite, Verdict, breaks, conforms, run, serve};

fn platform() -> Setup {
    let backend = MemoryBackend::new()
        .with_channel("general", "General")
        .with_user("ann", "ann-secret", "Ann")
        .with_user("bob", "bob-secret", "Bob");
    backend.direct("ann", "bob").unwrap();
    let (server, service) = Server::mount(backend, ServerOptions::default());
    tokio::spawn(server.run());
    let variables = vec![
        ("username", "ann"),
        ("password", "ann-secret"),
        ("other", "bob"),
        ("other_password", "bob-secret"),
    ];
    let peer = serve(service);
    Setup { peer, variables }
}

#[tokio::test(start_paused = true)]
async fn a_platform_with_one_fault_fails_one_row() {
    let suite = Suite::load(Protocol::Snek, Side::Server).unwrap();
    conforms(&suite, &[platform()]).await;
}

#[tokio::test(start_paused = true)]
async fn a_row_on_the_order_of_messages_has_a_verdict_of_its_own() {
    let mut suite = Suite::load(Protocol::Snek, Side::Server).unwrap();
    suite
        .rows
        .retain(|row| row.id.ends_with("server.message.order"));
    let setup = platform();
    for (broken, fails) in [("", false), (&*breaks(&suite)[0], true)] {
        let settings = setup.settings();
        let (outcome, _) = setup.row(&suite, &suite.rows[0], &settings, broken).await;
        let verdict = &outcome.verdict;
        assert_eq!(*verdict == Verdict::Fail, fails, "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn frames_out_of_order_in_any_row_fail_the_row_on_the_order() {
    let suite = Suite::load(Protocol::Snek, Side::Server).unwrap();
    let setup = platform();
    for (broken, fails) in [("", false), (r#"s2c {"callId":"login"} duplicate"#, true)] {
        let settings = setup.settings();
        let outcomes = run(&suite, &setup.broken(broken), &settings, |_, _| ()).await;
        let verdict = &outcomes.last().unwrap().verdict;
        assert_eq!(*verdict == Verdict::Fail, fails, "{verdict:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_account_no_row_fails() {
    let suite = Suite::load(Protocol::Snek, Side::Server).unwrap();
    let variables = Vec::new();
    let setup = Setup {
        variables,
        ..platform()
    };
    let outcomes = run(&suite, &setup.peer, &setup.settings(), |_, _| ()).await;
    let failures: Vec<_> = outcomes
        .iter()
        .zip(&suite.rows)
        .filter(|(it, _)| it.is_failure())
        .map(|(it, row)| (&row.id, it.why()))
        .collect();
    assert!(failures.is_empty(), "{failures:?}");
    let mut reasons = outcomes.iter().filter_map(Outcome::why);
    assert!(reasons.any(|it| it == "needs --set username=..."));
}
