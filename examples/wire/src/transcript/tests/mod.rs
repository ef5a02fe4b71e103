//! Tests of transcripts: what is written is read, and so is what was recorded before.

pub(crate) mod recordings;

use super::*;

fn entry(from: Option<Side>, kind: Kind, data: &str) -> Entry<'_> {
    Entry::new(Duration::from_micros(1_000_001), 3, from, kind, data)
}

fn one(line: &str) -> Entry<'static> {
    match Reader::default().read(line) {
        Ok(Some(Item::Entry(entry))) => entry.into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn transcripts_round_trip() {
    let mut transcript = Transcript::new(Header {
        protocol: Some("snek".to_owned()),
        created: Some("2026-11-25T11:12:18Z".to_owned()),
        server: Some("ws://127.0.0.1:8080".to_owned()),
        ..Header::new()
    });
    let texts = ["", "{\"a\": \"\\u0041\u{1}\"}\n", "é\u{2028}"];
    for text in texts {
        let entry = entry(Some(Side::Client), Kind::Text, text).into_owned();
        transcript.entries.push(entry);
    }
    let payload = data_encoding::HEXLOWER.encode(&[0, 0x7f, 0xff]);
    transcript.entries.extend([
        entry(Some(Side::Server), Kind::Ping, &payload).into_owned(),
        entry(None, Kind::Note, "a remark").into_owned(),
        entry(Some(Side::Server), Kind::Close, "bye")
            .with_code(Some(1000))
            .into_owned(),
    ]);
    let text = transcript.to_string();
    assert_eq!(text.lines().count(), 1 + transcript.entries.len());
    assert_eq!(Transcript::parse(&text), Ok(transcript));
}

#[test]
fn times_are_exact_to_the_microsecond() {
    for micros in [0, 1, 999_999, 1_234_567, 86_400_000_001] {
        let at = Duration::from_micros(micros);
        let mut line = String::new();
        Entry::new(at, 1, None, Kind::Note, "").write(&mut line);
        assert_eq!(one(&line).at, at, "{line}");
    }
}

#[test]
fn binary_payloads_are_hexadecimal() {
    let ping = |data| entry(None, Kind::Ping, data).payload();
    assert_eq!(ping("00ffA1"), Some(vec![0, 255, 161]));
    assert_eq!(ping("0"), None);
    assert_eq!(ping("zz"), None);
    assert_eq!(entry(None, Kind::Text, "00").payload(), None);
}

#[test]
fn unknown_members_are_ignored_and_missing_ones_defaulted() {
    let read = one(r#"{"later":[1],"kind":"close","conn":2,"at":1,"dir":"s2c"}"#);
    assert_eq!((read.kind, read.conn), (Kind::Close, 2));
    assert_eq!((&*read.data, read.code), ("", None));
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let (header, entry) = ("{\"transcript\":1}\n", r#"{"at":1,"conn":1,"kind":"note"}"#);
    let transcript = Transcript::parse(&format!("\u{feff}{header}{entry}")).unwrap();
    assert_eq!(
        (transcript.header.transcript, transcript.entries.len()),
        (1, 1)
    );
    assert!(Transcript::parse(&format!("{header}\u{feff}{entry}")).is_err());
}

#[test]
fn an_invalid_line_is_reported_without_its_contents() {
    let text = "{\"transcript\":1}\n\n{\"secret\":\"hunter2\"}";
    let error = Transcript::parse(text).unwrap_err();
    assert_eq!(error.line, 3);
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let error = Transcript::parse("{\"transcript\":2}").unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
    for line in [
        r#"{"at":-1,"conn":1,"kind":"text"}"#,
        r#"{"at":1,"conn":1,"kind":"text","dir":"up"}"#,
        r#"{"at":1,"conn":1,"kind":"telepathy"}"#,
        r#"{"at":1,"conn":1,"dir":"s2c","kind":"close","code":99999}"#,
        r#"{"at":1,"conn":1,"dir":"s2c","kind":"close","code":-1}"#,
        "nonsense",
    ] {
        assert!(Transcript::parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_line_reads_the_same_in_every_form() {
    let kinds = ["text", "sse", "close", "eof", "ping", "telepathy"];
    let datas = [
        "",
        r#","data":"""#,
        r#","data":"{\"a\":\"\\n\"}\n""#,
        r#","data":"é\u0041\ud83d\ude00""#,
        r#","data":"\ud83d""#,
        ",\"data\":\"\u{1}\"",
        r#","data":"x"#,
        r#","data":null"#,
    ];
    let times = [
        "0.000000",
        "1.5",
        "12.345678",
        "00.000000",
        "999999999.999999",
        "1e3",
        "-1.000000",
    ];
    let ends = ["}", "}\n", "}\r\n", "} ", "", r#","x":1}"#, "}}"];
    let mut read = 0;
    for (kind, data) in kinds.iter().flat_map(|kind| datas.map(|data| (kind, data))) {
        for (at, end) in times.iter().flat_map(|at| ends.map(|end| (at, end))) {
            for (conn, dir, code) in [
                ("7", r#","dir":"c2s""#, ""),
                ("0", r#","dir":"s2c""#, r#","code":1000"#),
                ("07", "", r#","code":70000"#),
                ("4294967296", r#","dir":"up""#, ""),
            ] {
                let line =
                    format!(r#"{{"at":{at},"conn":{conn}{dir},"kind":"{kind}"{code}{data}{end}"#);
                // White space that says nothing, and is not what is written.
                let other = line.replacen("\"at\":", "\"at\": ", 1);
                let results = [&line, &other].map(|it| Reader::default().read(it).ok());
                let [quick, slow] = &results;
                assert_eq!(quick, slow, "{line}");
                read += usize::from(written::entry(&line).is_some());
            }
        }
    }
    assert!(read > 100, "{read}");
}
