//! Ids of messages, and what is printed of a hub.

use super::*;

#[test]
fn ids_are_unique_and_well_formed() {
    let mut ids = std::collections::HashSet::new();
    for seed in [7, 8] {
        let now = Instant::now();
        let mut hub = Hub::new(HubConfig::default(), seed, now);
        for number in 0..500 {
            let conn = ConnId(number);
            let registration = Registration::new(format!("c{number}"), "d");
            let client = hub.register(conn, &registration).unwrap().to_string();
            let text = Input::text(format!("c{number}: x"));
            let message = hub.submit(text, now, WALL).unwrap().to_string();
            assert_eq!((client.len(), message.len()), (36, 40));
            assert!(message.starts_with("msg-"), "{message}");
            ids.extend([client, message]);
        }
    }
    assert_eq!(ids.len(), 2_000);
}

#[test]
fn debug_output_hides_private_text() {
    let mut test = Test::new(&["notes"]);
    test.submit("notes: secret").unwrap();
    let shown = format!("{:?}", test.hub);
    assert!(!shown.contains("secret"), "{shown}");
    assert!(shown.contains("in_flight: 1"), "{shown}");
}
