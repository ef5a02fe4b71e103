//! `gateway chat`: what it says, shows and asks.

use super::*;

#[test]
fn a_chat_shows_tools_apart_from_the_text_and_cannot_control_the_terminal() {
    let folder = Folder::new();
    let file = root().join("examples/gateway/gateway.toml");
    let file = folder.file("gateway.toml", &read(&file));
    let (_gateway, url) = folder.start(&["--config", &file]);
    let (code, out, err) = folder.chat(&url, &["echo hi \u{1b}[2Jthere"]);
    assert_eq!((code, out.as_str()), (Some(0), "hi \\u{1b}[2Jthere\n"));
    assert_holds(&err, &["[echo {", "[hi "]);
    assert!(!err.contains('\u{1b}'), "{err}");
}

#[test]
fn a_chat_that_fails_says_why_and_keeps_what_was_said() {
    let folder = Folder::new();
    let file = folder.file(
        "config.toml",
        "[gateway]\ndata_dir = \":memory:\"\n[budgets]\nsession = 100\n",
    );
    let (_gateway, url) = folder.start(&["--config", &file]);
    let (code, out, err) = folder.chat(&url, &["!break"]);
    assert_eq!((code, out.as_str()), (Some(1), "so far so good\n"));
    assert_holds(&err, &["error: provider error: "]);
    let (code, out, err) = folder.chat(&url, &[&"long ".repeat(100)]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_holds(&err, &["error: token budget exceeded (session: ", "/100)"]);
    let (code, _, err) = folder.chat("ftp://h", &["hi"]);
    assert_eq!(code, Some(2), "{err}");
    let (code, _, err) = folder.chat("ws://127.0.0.1:1", &["hi"]);
    assert_eq!(code, Some(1), "{err}");
    assert_holds(&err, &["no connection to ws://127.0.0.1:1"]);
}

#[test]
fn a_chat_tells_what_the_gateway_remembers_and_who_asks() {
    let folder = Folder::new();
    let text = "[gateway]\ndata_dir = \":memory:\"\nextensions = true\n\
                [budgets]\ndaily = 100000\n\
                [[bindings]]\nagent_id = \"helper\"\nguild_id = \"acme\"\nteam_id = \"support\"\n";
    let file = folder.file("config.toml", text);
    let (_gateway, url) = folder.start(&["--config", &file]);
    let acme = ["--guild", "acme", "--team", "support"];
    let asks = |args: &[&str]| folder.hears(&url, &[&acme[..], args].concat());
    asks(&["My name is Ann."]);
    asks(&["count to 2"]);
    let history = asks(&["--history"]);
    assert_holds(
        &history,
        &["> My name is Ann.\n", "> count to 2\nI count: 1 2 - done\n"],
    );
    assert_eq!(
        asks(&["--history=1"]),
        "> count to 2\nI count: 1 2 - done\n"
    );
    // Without the guild it is another agent's conversation.
    assert_eq!(folder.hears(&url, &["--history"]), "");
    let budget = asks(&["--budget"]);
    assert_holds(
        &budget,
        &[
            "session: ",
            "day: ",
            " tokens of 100000\n",
            " without a limit\n",
        ],
    );
    assert_eq!(asks(&["--clear"]), "2 turns forgotten\n");
    assert_eq!(asks(&["--history"]), "");
    assert_eq!(asks(&["--search", "name"]), "the user's name is Ann\n");
}

#[test]
fn a_gateway_without_extensions_says_so() {
    let folder = Folder::new();
    let (_gateway, url) = folder.start(&[]);
    let (code, out, err) = folder.chat(&url, &["--budget"]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_holds(
        &err,
        &["unknown method: budget.status", "extensions = true"],
    );
}

#[test]
fn a_token_may_be_the_file_of_a_service_manager() {
    let folder = Folder::new();
    folder.file("EXOCLAW_TOKEN", "hunter2\n");
    let mut command = folder.gateway(&["--port", "0"]);
    command.env("CREDENTIALS_DIRECTORY", &folder.0);
    let (_gateway, url) = start(command);
    for (token, code) in [("hunter2", Some(0)), ("hunter3", Some(1))] {
        let mut chat = folder.gateway(&["chat", "--url", &url, "count to 1"]);
        chat.env("EXOCLAW_TOKEN", token);
        assert_eq!(outcome(chat).0, code, "{token}");
    }
}
