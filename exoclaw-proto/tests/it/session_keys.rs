//! Rules of the keys of sessions.

use std::borrow::Cow;

use exoclaw_proto::session::SessionKey;

/// A key is its parts, and no other parts have it.
pub(crate) fn parts(one: [&str; 4], two: [&str; 4]) {
    let key =
        |[agent, channel, account, peer]: [&str; 4]| SessionKey::new(agent, channel, account, peer);
    let (first, second) = (key(one), key(two));
    let is_same = one == two;
    assert_eq!(first == second, is_same, "keys are equal if parts are");
    let texts = (first.as_str(), second.as_str());
    assert_eq!(texts.0 == texts.1, is_same, "texts are equal if parts are");
    for (key, parts) in [(&first, one), (&second, two)] {
        assert_eq!(read(key), parts, "parts survive");
        let again = SessionKey::parse(&key.to_string());
        assert_eq!(again.as_ref(), Ok(key), "texts parse");
        let json = serde_json::to_string(key).unwrap_or_default();
        let again = serde_json::from_str::<SessionKey>(&json);
        assert!(again.is_ok_and(|again| again == *key), "JSON parses");
    }
}

/// A key has one text.
pub(crate) fn text(text: &str) {
    if let Ok(parsed) = SessionKey::parse(text) {
        let [agent, channel, account, peer] = read(&parsed);
        let made = SessionKey::new(&agent, &channel, &account, &peer);
        assert_eq!(made.as_str(), text, "a key has one text");
    }
}

fn read(key: &SessionKey) -> [Cow<'_, str>; 4] {
    [key.agent(), key.channel(), key.account(), key.peer()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn session_keys_round_trip(
            one in prop::array::uniform4("[ab:%235Aé]{0,6}"),
            two in prop::array::uniform4("[:%23A5]{0,2}"),
            text in "[a:%23A5]{0,12}",
        ) {
            super::parts(one.each_ref().map(|it| &**it), two.each_ref().map(|it| &**it));
            super::text(&text);
        }
    }
}
