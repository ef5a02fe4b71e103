//! What the router is asked.

use super::*;

#[test]
fn the_router_gets_capabilities_and_input_method() {
    let mut test = Test::new(&[]);
    let registration = Registration {
        capabilities: vec!["tasks".into(), "reminders".into()],
        ..Registration::new("notes", "I keep notes.")
    };
    test.hub.register(ConnId(1), &registration).unwrap();
    // A confidence above 1 counts as absent.
    for (confidence, passed_on) in [(0.5, Some(0.5)), (1.5, None)] {
        let input = Input::voice("buy milk", Some(confidence));
        test.hub.submit(input, test.now, WALL).unwrap();
        let events = test.events();
        let Some(HubEvent::Route { request, .. }) = events.last() else {
            panic!("{events:?}");
        };
        assert_eq!(request.input_method, InputMethod::Voice);
        assert_eq!(request.confidence, passed_on);
        let capabilities = &request.candidates[0].capabilities;
        assert!(capabilities.iter().eq(["tasks", "reminders"]));
    }
}
