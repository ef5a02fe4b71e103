//! Vectors of bindings: which agent a chat goes to.

use exoclaw_proto::binding::{Binding, Bindings};
use exoclaw_proto::frame::SessionRef;
use serde::Deserialize;
use serde_json::Value;

use super::run;

#[test]
fn chats_are_routed_as_in_the_vectors() {
    run("bindings", |vector| {
        let name = vector.name();
        let bindings = Vec::<Binding>::deserialize(vector.get("bindings")).unwrap();
        let default = vector.try_str("default").map(str::to_owned);
        let router = Bindings::new(bindings, default);
        if let Some(error) = vector.try_str("refused") {
            let refused = router.unwrap_err().to_string();
            assert!(refused.contains(error), "{name}: {refused}");
            return;
        }
        let router = router.unwrap();
        let route: Vec<_> = vector.list("route").iter().map(Value::as_str).collect();
        let [channel, account, peer, guild, team] = route[..] else {
            panic!("{name}: a route has five parts")
        };
        let route = SessionRef {
            peer: peer.map(Into::into),
            guild: guild.map(Into::into),
            team: team.map(Into::into),
            ..SessionRef::new(channel.unwrap(), account.unwrap())
        };
        match router.resolve(&route) {
            Ok(agent) => assert_eq!(Some(agent), vector.try_str("agent"), "{name}"),
            Err(error) => assert_eq!(error.to_string(), vector.str("error"), "{name}"),
        }
    });
}
