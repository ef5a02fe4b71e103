//! ConnectOnion: frames, both machines, canonical JSON, and sessions that are stored.

mod canonical;
mod client;
mod frames;
mod jsonl;
mod server;

use crate::machine::drive;
pub use canonical::canonical;
pub use frames::{client_frames, server_frames};
pub use jsonl::jsonl;

/// Runs a client through operations: see `Client`.
pub fn client_conn(data: &[u8]) {
    drive::<client::Client>(data);
}

/// Runs a server's connection through operations: see `Server`.
pub fn server_conn(data: &[u8]) {
    drive::<server::Server>(data);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLIENT: &str = r#"(CONNECT|INPUT|PONG|APPROVAL_RESPONSE|ASK_USER_RESPONSE|PLAN_REVIEW_RESPONSE|ULW_RESPONSE|mode_change|prompt_update|SESSION_STATUS|ONBOARD_SUBMIT|ADMIN_ADD|ADMIN_LATER|INIT|later|P\\u004fNG)"#;
    const CLIENT_MEMBER: &str = r#""(type|payload|from|signature|session_id|session|last_msg_id|prompt|images|files|answer|approved|scope|mode|feedback|request_id|message|action|turns|x)":("plan"|"once"|"continue"|""|"x"|"\\u00e9"|true|null|7|1\.50|-0|\[\]|\["data:,x"\]|\{\}|\{"session_id":"s"\}|\{"invite_code":"c","payment":1\})"#;
    const SERVER: &str = "(CONNECTED|OUTPUT|PING|ERROR|SESSION_STATUS|RUNTIME_INPUT_ACK|ONBOARD_REQUIRED|ONBOARD_SUCCESS|ADMIN_RESULT|user_input|assistant|llm_call|llm_result|thinking|tool_call|tool_result|ask_user|approval_needed|plan_review|compact|mode_changed|ulw_turns_reached|files_received|intent|eval|tool_blocked|agent_image|diff_preview|complete|session_sync|later)";
    const SERVER_MEMBER: &str = r#""(type|id|ts|session_id|session|chat_items|status|server_newer|message|error|received|code|content|turn|name|tool_id|args|result|timing_ms|question|text|options|fields|methods|mode|usage|runtime_input|files|plan_content|tool|x)":("executing"|"done"|""|"x"|"\\u00e9"|true|false|null|7|1\.50|-0|\[\]|\["a"\]|\[\{"id":"i","type":"user","content":"c"\}\]|\{\}|\{"messages":\[\],"turn":1\})"#;

    /// A frame of such a type with such members.
    fn frame(tag: &'static str, member: &'static str) -> impl Strategy<Value = String> {
        let members = prop::collection::vec(member, 0..7);
        (tag, members, any::<prop::sample::Index>()).prop_map(|(tag, mut members, at)| {
            let at = at.index(members.len() + 1);
            members.insert(at, format!(r#""type":"{tag}""#));
            format!("{{{}}}", members.join(" ,"))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn frames_of_clients_keep_their_rules(text in frame(CLIENT, CLIENT_MEMBER)) {
            client_frames(&text);
        }

        #[test]
        fn frames_of_servers_keep_their_rules(text in frame(SERVER, SERVER_MEMBER)) {
            server_frames(&text);
        }

        #[test]
        fn broken_frames_keep_their_rules(
            text in frame(CLIENT, CLIENT_MEMBER),
            at in any::<prop::sample::Index>(),
        ) {
            let mut letters: Vec<char> = text.chars().collect();
            letters.remove(at.index(letters.len()));
            let text: String = letters.into_iter().collect();
            client_frames(&text);
            server_frames(&text);
        }

        #[test]
        fn files_are_read_by_the_rules(
            first: u8,
            lines in prop::collection::vec(
                r#"\{"session_id":"[ab]","status":"(running|done|x)","created":(1|1\.5|1e400|"1"),?("(session|prompt|result|expires|duration_ms|owner|inputs|more)":("unsigned"|"a"|null|7|-1\.5|\{\}|\{"a":\r1\}|\[\]|\[\{"id":"i","prompt":"p"\}\]),?){0,4}\}[ \r]?"#,
                0..6,
            ),
            end in r#"\n|\{"sess|"#,
        ) {
            let mut data = vec![first];
            data.extend(lines.join("\n").replace(",}", "}").bytes());
            data.extend(end.bytes());
            jsonl(&data);
        }

        #[test]
        fn the_client_keeps_its_rules(
            settings: u8,
            // A host that lets the client in makes the rest interesting.
            opening in prop::sample::select(vec![&[1, 0][..], &[1, 11, 12, 1, 12], &[1, 1], &[1, 0, 16, 16, 1, 13], &[]]),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            client_conn(&[&[settings], opening, &rest[..]].concat());
        }

        #[test]
        fn connections_of_servers_keep_their_rules(
            settings: u8,
            // A client that is admitted, or is at the gate, makes the rest interesting.
            opening in prop::sample::select(vec![&[1, 0, 9][..], &[1, 0, 10], &[1, 0, 10, 1, 10, 11, 9], &[1, 2, 9], &[]]),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            server_conn(&[&[settings], opening, &rest[..]].concat());
        }
    }
}
