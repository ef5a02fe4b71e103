//! Vectors of what happens to a message and its parts: routing, permission, sanitising, drive
//! links, colours, uids, addresses.

use snek_proto::client::ClientConfig;
use snek_proto::color::{hsl_to_hex, is_html_color};
use snek_proto::frame::{Message, User};
use snek_proto::id::is_channel_uid;
use snek_proto::net::dialer;
use snek_proto::permission::{Triggers, should_respond};
use snek_proto::routing::{Route, pong, route};
use snek_proto::sanitize::{DEFAULT_DRIVE_BASE, rewrite_drive_urls, sanitize_names};

use super::{Vector, config, run};

#[test]
fn routing_matches_the_vectors() {
    run("routing", |vector: &Vector| {
        let me = match &vector.strs("me")[..] {
            [username, nick] => User::new(*username, *nick),
            _ => User::new("mybot", "MyBot"),
        };
        let sender = vector.try_str("from").unwrap_or("alice");
        let text = vector.str("text");
        let is_final = vector.get("final").as_bool().unwrap_or(true);
        let mut message = Message::new("ch1", sender, "Nick", text);
        message.is_final = is_final.into();
        let found = route(&me, &message);
        let handler = match found {
            Route::Partial => None,
            Route::OwnMessage => Some("on_own_message"),
            Route::Ping(_) => Some("on_ping"),
            Route::Join => Some("on_join"),
            Route::Leave => Some("on_leave"),
            Route::Mention => Some("on_mention"),
            Route::Message => Some("on_message"),
        };
        assert_eq!(handler, vector.try_str("handler"), "{}", vector.name());
        if let Route::Ping(rest) = found {
            assert_eq!(rest, vector.str("rest"), "{}", vector.name());
            assert_eq!(pong(rest), vector.str("pong"), "{}", vector.name());
        }
    });
}

#[test]
fn permissions_match_the_vectors() {
    run("permission", |vector| {
        let triggers = Triggers::new(vector.strs("triggers")).unwrap();
        let respond = should_respond(
            vector.try_str("tag"),
            vector.is("joined"),
            &triggers,
            vector.str("me"),
            vector.str("text"),
        );
        assert_eq!(respond, vector.is("respond"), "{}", vector.name());
    });
}

#[test]
fn sanitized_names_match_the_vectors() {
    run("sanitize", |vector| {
        let (given, expected) = (vector.str("in"), vector.str("out"));
        assert_eq!(sanitize_names(given), expected, "{}", vector.name());
        assert_eq!(
            sanitize_names(expected),
            expected,
            "{}: again",
            vector.name()
        );
    });
}

#[test]
fn completed_drive_links_match_the_vectors() {
    run("drive", |vector| {
        let base = vector.try_str("base").unwrap_or(DEFAULT_DRIVE_BASE);
        let (given, expected) = (vector.str("in"), vector.str("out"));
        assert_eq!(
            rewrite_drive_urls(given, base),
            expected,
            "{}",
            vector.name()
        );
        assert_eq!(
            rewrite_drive_urls(expected, base),
            expected,
            "{}: again",
            vector.name()
        );
    });
}

#[test]
fn colors_match_the_vectors() {
    run("colour", |vector| {
        let text = vector.str("text");
        if let Some(hsl) = vector.get("hsl").as_array() {
            let part = |at: usize| hsl[at].as_f64().unwrap();
            assert_eq!(
                hsl_to_hex(part(0), part(1), part(2)),
                text,
                "{}",
                vector.name()
            );
            assert!(is_html_color(text), "{}", vector.name());
        } else {
            assert_eq!(is_html_color(text), vector.is("valid"), "{}", vector.name());
        }
    });
}

#[test]
fn channel_uids_match_the_vectors() {
    run("uid", |vector| {
        let valid = is_channel_uid(vector.str("text"));
        assert_eq!(valid, vector.is("valid"), "{}", vector.name());
    });
}

#[test]
fn dialed_urls_match_the_vectors() {
    run("urls", |vector| {
        let config = ClientConfig {
            insecure: true,
            ..config()
        };
        match (
            dialer(vector.str("url"), &config),
            vector.try_str("dialled"),
        ) {
            (Ok(dialer), Some(url)) => {
                let shown = format!("{dialer:?}");
                assert!(
                    shown.contains(&format!("url: {url:?}")),
                    "{}: {shown}",
                    vector.name()
                );
            }
            (outcome, expected) => assert!(
                outcome.is_err() && expected.is_none(),
                "{}: {outcome:?}",
                vector.name()
            ),
        }
    });
}
