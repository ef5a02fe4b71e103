//! What the daemon says of its confinement at the start.

use super::*;

#[test]
fn a_server_says_which_network_its_commands_have() {
    let unshare = |lines: &'static str| ["unshare", "-Ur", "sh", "-c", lines];
    // Whoever made this namespace allows no network in it.
    let without = "echo 0 >/proc/sys/user/max_net_namespaces; exec \"$0\" \"$@\"";
    let can_unshare = Command::new("unshare").args(["-Ur", "true"]).status();
    let can_unshare = can_unshare.is_ok_and(|status| status.success());
    let room = Room::new("which");
    for (start, options, words) in [
        (&[][..], &[][..], "in a network of their own"),
        (&[], &["--network", "on"], "with the network"),
        (&unshare(without), &[], "no namespace"),
    ] {
        if !start.is_empty() && !can_unshare {
            continue;
        }
        let server = Running::start(room.serve(start, options));
        let line = server.line_with("listening on ");
        if line.contains("no commands") {
            continue;
        }
        assert!(line.contains(words), "{line}");
        if !start.is_empty() {
            let url = line.split(' ').find(|word| word.starts_with("http"));
            let call = attempt_line("listen", "127.0.0.1:0");
            let said = does(
                url.unwrap(),
                &format!(
                    "/call shell-run {}",
                    serde_json::json!({ "command": format!("{call} 2>&1") })
                ),
            );
            assert!(said.contains("--network on"), "{said}");
        }
    }
}

#[tokio::test]
async fn a_system_that_cannot_confine_says_so_at_the_start_and_runs_nothing() {
    let room = Room::new("cannot");
    // That is how a confined daemon finds its system.
    let line = format!(
        "{SWITCHBOARD} daemon serve --listen 127.0.0.1:0 > log 2>&1 &
        while ! grep -q listening log; do sleep 0.05; done
        url=$(sed -n 's/.*listening on \\([^ ]*\\) .*/\\1/p' log)
        {SWITCHBOARD} daemon run --yes --url $url '/call shell-run {{\"command\":\"touch made\"}}' > said; cat log said
        grep 'warning: commands are not run.*--unconfined' log && grep 'no commands' log && \
        ! grep 'stay there' log && grep 'no tool' said && ! test -e made"
    );
    let tried = room.tries(Confinement::Workspace, &line).await;
    assert!(
        matches!(tried, Tried::Code(0) | Tried::Refused),
        "{tried:?}"
    );
}
