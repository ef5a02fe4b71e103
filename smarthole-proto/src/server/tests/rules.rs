//! The rules of all machines, and codes that are new.

use super::*;

#[test]
fn a_shutdown_is_sent_after_queued_frames() {
    let mut played = Played::ready(ServerConfig::default());
    played.conn.send("last".into()).unwrap();
    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, SHUTTING_DOWN);
    played.conn.close_with(frame, played.now);
    assert_eq!(played.sent(), ["last", "close 1001 Server shutting down"]);
    let closed = ServerEvent::Closed(CloseReason::Local);
    assert_eq!(played.events(), [closed]);
}

#[test]
fn an_unknown_error_code_is_sent_verbatim() {
    let mut played = Played::new();
    played.take(NOTES);
    let error = RegistrationError::new(ErrorCode::Other("LATER".into()), "not now");
    played.conn.refuse(error).unwrap();
    assert!(played.sent()[0].contains(r#""code":"LATER","message":"not now""#));
}
