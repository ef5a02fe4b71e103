//! Snek: a platform in memory.

use snek_proto::net::{MemoryBackend, Server, ServerOptions};

use super::{Protocol, Role, Setup, Suite, conforms, serve};

#[tokio::test(start_paused = true)]
async fn a_platform_that_is_broken_in_one_way_fails_one_row() {
    let suite = Suite::load(Protocol::Snek, Role::Server).unwrap();
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
    conforms(&suite, &[Setup { peer, variables }]).await;
}
