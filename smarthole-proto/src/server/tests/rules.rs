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
fn the_server_machine_conforms() {
    let now = Instant::now();
    let mut nasty = conformance::nasty_texts();
    nasty.extend([NOTES, ACK].map(str::to_owned));
    let texts: Vec<&str> = nasty.iter().map(String::as_str).collect();
    let config = ServerConfig {
        handshake_timeout: Some(Duration::from_secs(1)),
        ..ServerConfig::default()
    };
    let mut deciding = Played::with(config.clone());
    deciding.take(NOTES);
    for mut conn in [
        Played::new().conn,
        Played::with(config).conn,
        deciding.conn,
        Played::ready(ServerConfig::default()).conn,
    ] {
        conformance::early_timeout_is_a_no_op(&mut conn, now);
        conformance::any_text_is_survived(&mut conn, &texts, now);
        conformance::timeouts_make_progress(&mut conn, 10);
        conformance::closed_is_inert(&mut conn, &texts, now);
    }
}

#[test]
fn an_unknown_error_code_is_sent_verbatim() {
    let mut played = Played::new();
    played.take(NOTES);
    let error = RegistrationError::new(ErrorCode::Other("LATER".into()), "not now");
    played.conn.refuse(error).unwrap();
    assert!(played.sent()[0].contains(r#""code":"LATER","message":"not now""#));
}
