//! The programs in `examples/` run to their end, and are short enough to read.

#[path = "../../examples/axum.rs"]
mod axum;
#[path = "../../examples/client.rs"]
mod client;
#[path = "../../examples/machine.rs"]
mod machine;
#[path = "../../examples/plugin.rs"]
mod plugin;
#[path = "../../examples/server.rs"]
mod server;
#[path = "../../examples/transport.rs"]
mod transport;

#[test]
fn every_example_is_listed_and_short_and_runs() {
    switchboard_testing::examples::run(
        env!("CARGO_MANIFEST_DIR"),
        &[
            ("axum", axum::main),
            ("client", client::main),
            ("machine", machine::main),
            ("plugin", plugin::main),
            ("server", server::main),
            ("transport", transport::main),
        ],
    );
}
