//! Vectors of direct routing.

use smarthole_proto::direct::{parse, route};

use super::run;

#[test]
fn direct_texts_match_the_vectors() {
    run("direct", |vector| {
        let (name, text) = (vector.name(), vector.str("text"));
        let clients = vector.strs("clients");
        let found = route(text, clients.iter().copied());
        let expected = vector.try_str("client").zip(vector.try_str("rest"));
        assert_eq!(found, expected, "{name}");
        if let Some((client, rest)) = expected {
            let direct = parse(text).unwrap();
            assert_eq!(direct.client(clients.iter().copied()), Some(client));
            assert_eq!(direct.text, rest, "{name}");
            assert!(direct.name.eq_ignore_ascii_case(client), "{name}");
            assert_eq!(route(text, []), None, "{name}: nobody is there");
        }
    });
}
