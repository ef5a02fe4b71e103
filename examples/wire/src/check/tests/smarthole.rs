//! SmartHole: a router that compares words, and takes texts at `/input`.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, Response};
use smarthole_proto::hub::Input;
use smarthole_proto::net::{RouterRuntime, Server, ServerOptions, http_config};
use smarthole_proto::router::Keywords;

use rpc_core::testing::Side;

use super::{Protocol, Setup, Suite, conforms, serve};

#[tokio::test(start_paused = true)]
async fn a_router_with_one_fault_fails_one_row() {
    let suite = Suite::load(Protocol::SmartHole, Side::Server).unwrap();
    let runtime: Arc<OnceLock<RouterRuntime>> = Arc::default();
    let later = Arc::clone(&runtime);
    let http = http_config().with_http(move |request: Request<Bytes>, _| {
        let text = String::from_utf8_lossy(request.body()).into_owned();
        later.get().unwrap().submit(Input::text(text)).unwrap();
        std::future::ready(Response::new(Bytes::new()))
    });
    let (server, service) = Server::mount(
        Keywords::new(),
        ServerOptions {
            http,
            ..ServerOptions::default()
        },
    );
    assert!(runtime.set(server.runtime()).is_ok());
    tokio::spawn(server.run());
    let variables = vec![("input", "/input"), ("several", "yes")];
    let peer = serve(service);
    conforms(&suite, &[Setup { peer, variables }]).await;
}
