//! Replays the seeds of the fuzz targets, and checks that each target has some.

use std::fs;
use std::panic::catch_unwind;
use std::path::PathBuf;

use crate::tree::{list, read, root, stem};

type Body = fn(&[u8]);

/// Every fuzz target and the body that it calls.
const TARGETS: [(&str, Body); 37] = [
    ("acolyte_client_conn", acolyte_proto::fuzzing::client_conn),
    (
        "acolyte_client_frames",
        acolyte_proto::fuzzing::client_frames,
    ),
    ("acolyte_queue", acolyte_proto::fuzzing::queue),
    ("acolyte_server_conn", acolyte_proto::fuzzing::server_conn),
    (
        "acolyte_server_frames",
        acolyte_proto::fuzzing::server_frames,
    ),
    ("acolyte_sse", acolyte_proto::fuzzing::sse),
    (
        "connectonion_canonical",
        connectonion_proto::fuzzing::canonical,
    ),
    (
        "connectonion_client_conn",
        connectonion_proto::fuzzing::client_conn,
    ),
    (
        "connectonion_client_frames",
        connectonion_proto::fuzzing::client_frames,
    ),
    ("connectonion_jsonl", connectonion_proto::fuzzing::jsonl),
    ("connectonion_merge", connectonion_proto::fuzzing::merge),
    (
        "connectonion_server_conn",
        connectonion_proto::fuzzing::server_conn,
    ),
    (
        "connectonion_server_frames",
        connectonion_proto::fuzzing::server_frames,
    ),
    ("exoclaw_client_conn", exoclaw_proto::fuzzing::client_conn),
    (
        "exoclaw_client_frames",
        exoclaw_proto::fuzzing::client_frames,
    ),
    ("exoclaw_pair", exoclaw_proto::fuzzing::pair),
    ("exoclaw_server_conn", exoclaw_proto::fuzzing::server_conn),
    (
        "exoclaw_server_frames",
        exoclaw_proto::fuzzing::server_frames,
    ),
    ("exoclaw_session_key", exoclaw_proto::fuzzing::session_key),
    ("gateway_config", examples::gateway::fuzzing::config),
    ("json_reader", rpc_core::fuzzing::json_reader),
    ("json_writer", rpc_core::fuzzing::json_writer),
    (
        "smarthole_client_conn",
        smarthole_proto::fuzzing::client_conn,
    ),
    (
        "smarthole_client_frames",
        smarthole_proto::fuzzing::client_frames,
    ),
    ("smarthole_direct", smarthole_proto::fuzzing::direct),
    ("smarthole_hub", smarthole_proto::fuzzing::hub),
    (
        "smarthole_server_conn",
        smarthole_proto::fuzzing::server_conn,
    ),
    (
        "smarthole_server_frames",
        smarthole_proto::fuzzing::server_frames,
    ),
    ("smarthole_validate", smarthole_proto::fuzzing::validate),
    ("snek_client_conn", snek_proto::fuzzing::client_conn),
    ("snek_client_frames", snek_proto::fuzzing::client_frames),
    ("snek_image_urls", snek_proto::fuzzing::image_urls),
    ("snek_sanitize", snek_proto::fuzzing::sanitize),
    ("snek_server_conn", snek_proto::fuzzing::server_conn),
    ("snek_server_frames", snek_proto::fuzzing::server_frames),
    ("snek_toolloop", snek_proto::fuzzing::toolloop),
    ("sse", rpc_core::fuzzing::sse),
];

const MAX_SEED: usize = 1024;

fn seeds(target: &str) -> Vec<PathBuf> {
    list(&root().join("fuzz/seeds").join(target))
}

/// Runs every seed, so that one failure does not hide the others.
fn replay(target: &str) {
    let (_, body) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{target} has no seeds");
    let mut failed = Vec::new();
    for path in &seeds {
        let input = fs::read(path).unwrap();
        assert!(
            input.len() <= MAX_SEED,
            "{} is not small: {} bytes",
            path.display(),
            input.len()
        );
        if catch_unwind(|| body(&input)).is_err() {
            failed.push(path.display().to_string());
        }
    }
    assert!(
        failed.is_empty(),
        "these seeds fail:\n{}",
        failed.join("\n")
    );
}

#[test]
fn the_seeds_of_the_acolyte_client_machine_pass() {
    replay("acolyte_client_conn");
}

#[test]
fn the_seeds_of_the_acolyte_client_frames_pass() {
    replay("acolyte_client_frames");
}

#[test]
fn the_seeds_of_the_acolyte_queue_pass() {
    replay("acolyte_queue");
}

#[test]
fn the_seeds_of_the_acolyte_server_machine_pass() {
    replay("acolyte_server_conn");
}

#[test]
fn the_seeds_of_the_acolyte_server_frames_pass() {
    replay("acolyte_server_frames");
}

#[test]
fn the_seeds_of_acolyte_chats_over_http_pass() {
    replay("acolyte_sse");
}

#[test]
fn the_seeds_of_the_connectonion_client_machine_pass() {
    replay("connectonion_client_conn");
}

#[test]
fn the_seeds_of_canonical_json_pass() {
    replay("connectonion_canonical");
}

#[test]
fn the_seeds_of_stored_sessions_pass() {
    replay("connectonion_jsonl");
}

#[test]
fn the_seeds_of_merged_sessions_pass() {
    replay("connectonion_merge");
}

#[test]
fn the_seeds_of_the_connectonion_client_frames_pass() {
    replay("connectonion_client_frames");
}

#[test]
fn the_seeds_of_the_connectonion_server_connection_pass() {
    replay("connectonion_server_conn");
}

#[test]
fn the_seeds_of_the_connectonion_server_frames_pass() {
    replay("connectonion_server_frames");
}

#[test]
fn the_seeds_of_the_exoclaw_client_machine_pass() {
    replay("exoclaw_client_conn");
}

#[test]
fn the_seeds_of_the_exoclaw_client_frames_pass() {
    replay("exoclaw_client_frames");
}

#[test]
fn the_seeds_of_both_exoclaw_machines_pass() {
    replay("exoclaw_pair");
}

#[test]
fn the_seeds_of_the_exoclaw_server_machine_pass() {
    replay("exoclaw_server_conn");
}

#[test]
fn the_seeds_of_the_exoclaw_server_frames_pass() {
    replay("exoclaw_server_frames");
}

#[test]
fn the_seeds_of_the_exoclaw_session_keys_pass() {
    replay("exoclaw_session_key");
}

#[test]
fn the_seeds_of_the_configuration_pass() {
    replay("gateway_config");
}

#[test]
fn the_seeds_of_the_json_reader_pass() {
    replay("json_reader");
}

#[test]
fn the_seeds_of_the_json_writer_pass() {
    replay("json_writer");
}

#[test]
fn the_seeds_of_the_smarthole_client_machine_pass() {
    replay("smarthole_client_conn");
}

#[test]
fn the_seeds_of_the_smarthole_hub_pass() {
    replay("smarthole_hub");
}

#[test]
fn the_seeds_of_the_smarthole_server_machine_pass() {
    replay("smarthole_server_conn");
}

#[test]
fn the_seeds_of_the_smarthole_client_frames_pass() {
    replay("smarthole_client_frames");
}

#[test]
fn the_seeds_of_direct_routing_pass() {
    replay("smarthole_direct");
}

#[test]
fn the_seeds_of_the_smarthole_server_frames_pass() {
    replay("smarthole_server_frames");
}

#[test]
fn the_seeds_of_validation_pass() {
    replay("smarthole_validate");
}

#[test]
fn the_seeds_of_the_snek_client_machine_pass() {
    replay("snek_client_conn");
}

#[test]
fn the_seeds_of_the_snek_client_frames_pass() {
    replay("snek_client_frames");
}

#[test]
fn the_seeds_of_the_snek_server_machine_pass() {
    replay("snek_server_conn");
}

#[test]
fn the_seeds_of_the_snek_server_frames_pass() {
    replay("snek_server_frames");
}

#[test]
fn the_seeds_of_the_image_addresses_pass() {
    replay("snek_image_urls");
}

#[test]
fn the_seeds_of_the_sanitiser_pass() {
    replay("snek_sanitize");
}

#[test]
fn the_seeds_of_the_tool_loops_pass() {
    replay("snek_toolloop");
}

#[test]
fn the_seeds_of_the_event_streams_pass() {
    replay("sse");
}

#[test]
fn targets_seeds_and_the_manifest_name_the_same_things() {
    let names: Vec<_> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let fuzz = root().join("fuzz");
    let stems = |folder: &str| -> Vec<_> {
        let paths = list(&fuzz.join(folder));
        paths.iter().map(|path| stem(path)).collect()
    };
    assert_eq!(stems("fuzz_targets"), names, "fuzz/fuzz_targets");
    assert_eq!(stems("seeds"), names, "fuzz/seeds");
    let manifest = read(&fuzz.join("Cargo.toml"));
    let mut bins: Vec<_> = manifest
        .split("[[bin]]")
        .skip(1)
        .filter_map(|bin| bin.split('"').nth(1).map(str::to_owned))
        .collect();
    bins.sort();
    assert_eq!(bins, names, "fuzz/Cargo.toml");
    let readme = read(&fuzz.join("README.md"));
    for name in &names {
        assert!(!seeds(name).is_empty(), "{name} has no seeds");
        assert!(readme.contains(&format!("`{name}`")), "{name} in README");
        let target = read(&fuzz.join("fuzz_targets").join(format!("{name}.rs")));
        let owners = [
            "acolyte_",
            "connectonion_",
            "exoclaw_",
            "gateway_",
            "smarthole_",
            "snek_",
        ];
        let body = owners.iter().find_map(|owner| name.strip_prefix(owner));
        let body = body.unwrap_or(name);
        assert!(
            target.contains(&format!("fuzzing::{body}(input)")),
            "fuzz_targets/{name}.rs calls its body and nothing else"
        );
    }
}
