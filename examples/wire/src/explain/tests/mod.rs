//! Tests of the explainer.

mod recordings;

use super::*;

fn shown(all: bool) -> Shown {
    match all {
        true => Shown::all(),
        false => Shown::default(),
    }
}

fn texts(explainer: &mut Explainer, frames: &[(Side, &str)]) -> Vec<Explained> {
    let explained = frames.iter().enumerate().map(|(index, (from, text))| {
        let at = Duration::from_millis(index as u64);
        explainer.explain(
            index + 1,
            &Entry::new(at, 1, Some(*from), Kind::Text, *text),
        )
    });
    explained.collect()
}

#[test]
fn an_answer_names_the_line_that_it_answers() {
    let mut explainer = Explainer::new(None, Shown::default());
    let frames = texts(
        &mut explainer,
        &[
            (Side::Client, r#"{"id":"a","method":"ping"}"#),
            (Side::Client, r#"{"id":"b","method":"status"}"#),
            (Side::Server, r#"{"id":"a","result":"pong"}"#),
            (Side::Server, r#"{"id":"c","result":"pong"}"#),
        ],
    );
    let [_, _, answer, foreign] = &frames[..] else {
        panic!()
    };
    let asked = answer.relations.answers.as_ref().unwrap();
    assert_eq!((asked.line, &*asked.kind), (1, "ping"));
    assert_eq!(asked.after, Duration::from_millis(2));
    assert_eq!(foreign.relations.answers, None);
    assert_eq!(explainer.protocol(), Some(Protocol::Exoclaw));
}

#[test]
fn an_error_without_a_call_answers_the_malformed_text() {
    for (protocol, error) in [
        (Protocol::Exoclaw, r#"{"id":"0","error":"parse error"}"#),
        (
            Protocol::Acolyte,
            r#"{"id":"rpc_unknown","type":"error","error":"no"}"#,
        ),
        (
            Protocol::ConnectOnion,
            r#"{"type":"ERROR","message":"Invalid JSON"}"#,
        ),
    ] {
        let mut explainer = Explainer::new(Some(protocol), Shown::default());
        let frames = texts(
            &mut explainer,
            &[(Side::Client, "{no"), (Side::Server, error)],
        );
        let answers = frames[1].relations.answers.as_ref().map(|it| it.line);
        assert_eq!(answers, Some(1), "{error}");
    }
}

#[test]
fn the_place_of_an_error_is_a_byte_of_the_text() {
    let mut explainer = Explainer::new(Some(Protocol::Acolyte), Shown::default());
    let wrong = r#"{"id":"rpc_a","type":"chat.queued","position":"soon"}"#;
    let frames = texts(
        &mut explainer,
        &[(Side::Server, wrong), (Side::Server, r#"{"id":"a",}"#)],
    );
    let fault = frames[0].fault.as_ref().unwrap();
    assert!(
        wrong[fault.at.saturating_sub(6)..].contains("soon"),
        "{fault:?}"
    );
    assert!(fault.error.contains("position"), "{fault:?}");
    let fault = frames[1].fault.as_ref().unwrap();
    assert_eq!((fault.at, &*fault.error), (10, "not valid JSON"));
}

#[test]
fn secrets_are_shown_only_if_wanted() {
    let login = r#"{"method":"login","args":["ann","hunter2"],"kwargs":{},"callId":"1"}"#;
    let broken = r#"{"method":"login","args":["ann","hunter2"#;
    let upgrade = "GET /rpc.ws?token=hunter2 HTTP/1.1\r\nAuthorization: hunter2\r\n\r\nhunter2";
    for (shows, expected) in [(false, 0), (true, 3)] {
        let mut explainer = Explainer::new(Some(Protocol::Snek), shown(shows));
        let mut all = texts(
            &mut explainer,
            &[(Side::Client, login), (Side::Client, broken)],
        );
        let entry = Entry::new(Duration::ZERO, 1, Some(Side::Client), Kind::Http, upgrade);
        all.push(explainer.explain(3, &entry));
        let told = all
            .iter()
            .filter(|it| format!("{it:?}").contains("hunter2"));
        assert_eq!(told.count(), expected, "{all:?}");
    }
}

#[test]
fn the_place_of_an_error_shows_no_secret() {
    for (protocol, text) in [
        (Protocol::Exoclaw, r#"{"method":"ping","token":"hunter2"}"#),
        (Protocol::Exoclaw, r#"{"token":"hunter2"}"#),
        (
            Protocol::Snek,
            r#"{"mehtod":"login","args":["ann","hunter2"],"callId":"1"}"#,
        ),
        (Protocol::Snek, r#"{"callId":"1","password":"hunter2"}"#),
        (
            Protocol::ConnectOnion,
            r#"{"type":"CONNECT","payload":5,"signature":"hunter2"}"#,
        ),
    ] {
        for from in [Side::Client, Side::Server] {
            let mut explainer = Explainer::new(Some(protocol), Shown::default());
            let entry = Entry::new(Duration::ZERO, 1, Some(from), Kind::Text, text);
            // The first frame of a client may be a token.
            let _ = explainer.explain(
                1,
                &Entry::new(Duration::ZERO, 1, Some(from), Kind::Text, "{}"),
            );
            let explained = explainer.explain(2, &entry);
            if from == Side::Server && protocol == Protocol::Snek && text.contains("password") {
                // An answer of the server may have any members.
                continue;
            }
            let at = explained.fault.as_ref().map_or(0, |fault| fault.at);
            let (place, _) = crate::place::place(text, at, explained.redacted);
            assert!(!place.contains("hunter2"), "{place}: {explained:?}");
            assert!(!explained.words.contains("hunter2"), "{explained:?}");
            assert!(!explainer.data(&entry).contains("hunter2"), "{explained:?}");
        }
    }
}

#[test]
fn the_first_frame_of_an_exoclaw_client_may_be_a_token_with_other_members() {
    let token = r#"{"token":"hunter2","client":"x","id":"0"}"#;
    let hello = r#"{"ok":true,"version":"0.1.0"}"#;
    let mut explainer = Explainer::new(Some(Protocol::Exoclaw), Shown::default());
    let frames = texts(
        &mut explainer,
        &[
            (Side::Client, token),
            (Side::Server, hello),
            (Side::Client, token),
        ],
    );
    assert_eq!((&*frames[0].kind, &frames[0].fault), ("token", &None));
    assert_eq!(frames[1].relations.answers.as_ref().unwrap().line, 1);
    let fault = frames[2].fault.as_ref().unwrap();
    assert!(fault.error.contains("`method` is missing"), "{fault:?}");
    assert!(!format!("{frames:?}").contains("hunter2"), "{frames:?}");
}

#[test]
fn the_data_of_an_entry_has_no_secrets() {
    let login = r#"{"method":"login","args":["ann","hunter2"],"kwargs":{},"callId":"1"}"#;
    let upgrade = "GET /rpc.ws?token=hunter2 HTTP/1.1\r\nAuthorization: hunter2\r\n\r\nhunter2";
    let of = |kind, data| Entry::new(Duration::ZERO, 1, Some(Side::Client), kind, data);
    let all = [
        of(Kind::Text, login),
        of(Kind::Http, upgrade),
        of(Kind::Body, "password=hunter2"),
    ];
    for (protocol, shows, expected) in [
        (None, false, 0),
        (Some(Protocol::Snek), false, 0),
        (Some(Protocol::Snek), true, 3),
    ] {
        let explainer = Explainer::new(protocol, shown(shows));
        let told = all
            .iter()
            .filter(|it| explainer.data(it).contains("hunter2"));
        assert_eq!(told.count(), expected, "{protocol:?}");
    }
}

#[test]
fn a_call_lasts_until_its_last_answer() {
    for (protocol, frames) in [
        (
            Protocol::Exoclaw,
            vec![
                (Side::Client, r#"{"id":"a","method":"ping"}"#, "asks"),
                (
                    Side::Server,
                    r#"{"id":"a","event":"text","data":"x"}"#,
                    "partial",
                ),
                (Side::Server, r#"{"id":"a","event":"done"}"#, "done"),
                (Side::Server, r#"{"id":"a","error":"no"}"#, "failed"),
            ],
        ),
        (
            Protocol::Snek,
            vec![
                (
                    Side::Client,
                    r#"{"method":"get_user","args":[null],"kwargs":{},"callId":"a"}"#,
                    "asks",
                ),
                (
                    Side::Server,
                    r#"{"callId":"a","success":true,"data":null}"#,
                    "done",
                ),
                (
                    Side::Server,
                    r#"{"callId":"a","success":false,"data":{"error":"no"}}"#,
                    "failed",
                ),
            ],
        ),
        (
            Protocol::SmartHole,
            vec![(
                Side::Server,
                r#"{"type":"registration_response","payload":{"success":false,"code":"INVALID_NAME","message":"m"}}"#,
                "failed",
            )],
        ),
        (
            Protocol::Acolyte,
            vec![
                (
                    Side::Server,
                    r#"{"id":"rpc_a","type":"chat.started"}"#,
                    "partial",
                ),
                (
                    Side::Server,
                    r#"{"id":"rpc_a","type":"chat.event","event":{"type":"text-delta","text":"x"}}"#,
                    "partial",
                ),
            ],
        ),
        (
            Protocol::ConnectOnion,
            vec![
                (
                    Side::Server,
                    r#"{"type":"thinking","id":"1","ts":1}"#,
                    "partial",
                ),
                (Side::Server, r#"{"type":"PING"}"#, "asks"),
                (Side::Server, r#"{"type":"ERROR","message":"no"}"#, "failed"),
            ],
        ),
    ] {
        let mut explainer = Explainer::new(Some(protocol), Shown::default());
        for (from, text, expected) in frames {
            let found = &texts(&mut explainer, &[(from, text)])[0];
            let stage = match (
                found.relations.asks,
                found.relations.partial,
                found.relations.failed,
            ) {
                (true, false, false) => "asks",
                (false, true, false) => "partial",
                (false, false, true) => "failed",
                _ => "done",
            };
            assert_eq!(
                (stage, &found.fault),
                (expected, &None),
                "{text}: {found:?}"
            );
        }
    }
}

#[test]
fn a_secret_within_a_frame_is_omitted() {
    let nested = r#"{"id":"1","method":"ping","params":{"a":[{"token":"hunter2"}]}}"#;
    let mut explainer = Explainer::new(Some(Protocol::Exoclaw), Shown::default());
    let frames = texts(&mut explainer, &[(Side::Client, nested)]);
    assert_eq!(frames[0].kind, "ping");
    assert!(frames[0].redacted, "{frames:?}");
    assert!(!frames[0].words.contains("hunter2"), "{frames:?}");
}

#[test]
fn long_texts_are_described_by_their_beginning() {
    let long = "very ".repeat(10_000);
    let frames = [
        (
            Side::Client,
            r#"{"id":"1","method":"chat.history"}"#.to_owned(),
        ),
        (
            Side::Server,
            format!(r#"{{"id":"1","result":"{long}","new":1}}"#),
        ),
    ];
    let frames: Vec<_> = frames.iter().map(|(from, text)| (*from, &**text)).collect();
    let whole = texts(&mut Explainer::new(None, Shown::default()), &frames);
    let short = texts(
        &mut Explainer::new(None, Shown::default()).shortening(),
        &frames,
    );
    assert!(whole[1].words.len() > long.len());
    assert!(
        (500..3_000).contains(&short[1].words.len()),
        "{}",
        short[1].words.len()
    );
    assert_eq!(whole[1].words[..500], short[1].words[..500]);
    assert_eq!(whole[1].unknown, short[1].unknown);
    assert_eq!(whole[1].relations.answers, short[1].relations.answers);
}

#[test]
fn a_kind_that_no_crate_knows_is_a_problem() {
    let mut explainer = Explainer::new(Some(Protocol::ConnectOnion), Shown::default());
    let frames = texts(&mut explainer, &[(Side::Server, r#"{"type":"TELEPATHY"}"#)]);
    assert!(frames[0].unknown_kind && frames[0].is_problem());
    assert_eq!(frames[0].kind, "TELEPATHY");
}
