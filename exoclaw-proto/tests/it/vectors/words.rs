//! Vectors of texts: errors and their kinds, keys of sessions, tokens and addresses.

use exoclaw_proto::auth::{Auth, check_bind};
use exoclaw_proto::budget::Exceeded;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::session::SessionKey;
use serde_json::{Value, json};

use super::{run, variant};

#[test]
fn error_kinds_match_the_vectors() {
    run("errors", |vector| {
        let (name, words) = (vector.name(), vector.str("words"));
        let kind = RpcError::new(words).kind();
        assert_eq!(variant(&kind), vector.str("kind"), "{name}");
        let exceeded = Exceeded::parse(words);
        let budget = exceeded.map(|it| json!([it.scope.to_string(), it.used, it.limit]));
        assert_eq!(
            budget.as_ref().unwrap_or(&Value::Null),
            vector.get("budget"),
            "{name}"
        );
        if let Some(exceeded) = exceeded {
            let again = Exceeded::parse(&exceeded.to_string());
            assert_eq!(again, Some(exceeded), "{name}");
        }
    });
}

#[test]
fn session_keys_match_the_vectors() {
    run("session_keys", |vector| {
        let (name, text) = (vector.name(), vector.str("text"));
        if vector.has("error") {
            let error = SessionKey::parse(text).unwrap_err().to_string();
            assert!(error.contains(vector.str("error")), "{name}: {error}");
            return;
        }
        let parts: Vec<_> = vector.list("parts").iter().collect();
        let parts: Vec<_> = parts.iter().map(|part| part.as_str().unwrap()).collect();
        let [agent, channel, account, peer] = parts[..] else {
            panic!("{name}: four parts")
        };
        let key = SessionKey::new(agent, channel, account, peer);
        assert_eq!(key.as_str(), text, "{name}");
        assert_eq!(SessionKey::parse(text).as_ref(), Ok(&key), "{name}");
        let read = [key.agent(), key.channel(), key.account(), key.peer()];
        assert_eq!(read, parts[..], "{name}");
    });
}

#[test]
fn tokens_and_addresses_match_the_vectors() {
    run("auth", |vector| {
        let name = vector.name();
        let auth = match vector.try_str("token") {
            Some(token) => Auth::token(token),
            None => Ok(Auth::open()),
        };
        if let Some(error) = vector.try_str("error") {
            assert_eq!(variant(&auth.unwrap_err()), error, "{name}");
            return;
        }
        let auth = auth.unwrap();
        if let Some(offered) = vector.try_str("offered") {
            assert_eq!(auth.check(offered), vector.is("allowed"), "{name}");
        }
        if let Some(host) = vector.try_str("host") {
            let bound = check_bind(host, &auth);
            assert_eq!(bound.is_ok(), vector.is("allowed"), "{name}");
        }
    });
}
