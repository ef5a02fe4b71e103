//! What `wire decode` costs, which is part of the example programs: a recording of all five protocols,
//! explained and thrown away.

#[cfg(not(feature = "gateway"))]
use crate::report::Report;

/// The name of the section, for `--goals`.
const DECODE: &str = "decode";
const WHAT: &str = "wire decode, a recording of five protocols, CPU";
const PEER: &str = "serde_json, each line and what is in it checked";

#[cfg(not(feature = "gateway"))]
pub(crate) fn table(report: &mut Report, _: bool) {
    report.missing(DECODE, WHAT, PEER, "build with `--features gateway`");
}

#[cfg(feature = "gateway")]
pub(crate) use measured::{explain, recording, table};

#[cfg(feature = "gateway")]
mod measured {
    use std::borrow::Cow;
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use rpc_core::testing::Side;
    use rpc_core::testing::transcript::{BadLine, Entry, Header, Kind};
    use serde::Deserialize;
    use serde::de::IgnoredAny;
    use switchboard::wire::Protocol;
    use switchboard::wire::decode::{Options, decode};
    use switchboard::wire::explain::Explainer;

    use super::{DECODE, PEER, WHAT};
    use crate::process::cpu;
    use crate::report::Report;

    /// How often everything is measured.
    const TIMES: usize = 7;
    /// The goal, in MB a second.
    const LEAST: f64 = 300.0;

    pub(crate) fn table(report: &mut Report, quick: bool) {
        let text = recording(if quick { 5_000_000 } else { 20_000_000 });
        let lines = text.lines().count();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            eprintln!("{WHAT}");
            ours.push(nanoseconds(|| explain(&text)));
            theirs.push(nanoseconds(|| check(&text)));
        }
        let least = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
        let speed = |times: &[f64]| text.len() as f64 * 1e3 / least(times);
        let words = |times: &[f64]| {
            let line = least(times) / lines as f64;
            format!("{:.0} MB/s, {line:.0} ns a line", speed(times))
        };
        let what = format!("{WHAT}, {} B a line", text.len() / lines);
        let is_kept = speed(&ours) >= LEAST;
        let bound = format!("≥ {LEAST} MB/s");
        report.bound(DECODE, &what, words(&ours), bound, is_kept);
        let ratios = theirs.iter().zip(&ours).map(|(theirs, ours)| theirs / ours);
        let peer = (PEER, words(&theirs));
        report.repeated(DECODE, &what, words(&ours), peer, (ratios.collect(), None));
    }

    fn nanoseconds(work: impl Fn()) -> f64 {
        let before = cpu(std::process::id());
        work();
        (cpu(std::process::id()) - before) as f64
    }

    pub(crate) fn explain(text: &str) {
        let options = Options::default();
        let bad = |error: &BadLine| panic!("{error}");
        decode(&options, text.as_bytes(), &mut std::io::sink(), bad).unwrap();
    }

    #[derive(Deserialize)]
    struct Line<'a> {
        kind: Option<&'a str>,
        #[serde(borrow, default)]
        data: Cow<'a, str>,
    }

    fn check(text: &str) {
        for line in text.lines() {
            let line: Line<'_> = serde_json::from_str(line).unwrap();
            if line.kind == Some("text") {
                let _: IgnoredAny = serde_json::from_str(&line.data).unwrap();
            }
        }
    }

    /// A recording of so many bytes, at least, a fifth of each protocol. Three are those of real servers,
    /// again and again, without what clients did wrong on purpose.
    pub(crate) fn recording(size: usize) -> String {
        let mut text = String::new();
        for (protocol, entries) in [
            (Protocol::Acolyte, recorded(Protocol::Acolyte)),
            (Protocol::ConnectOnion, recorded(Protocol::ConnectOnion)),
            (Protocol::Exoclaw, recorded(Protocol::Exoclaw)),
            (Protocol::SmartHole, smarthole()),
            (Protocol::Snek, snek()),
        ] {
            let mut header = Header::new();
            header.protocol = Some(protocol.name().to_owned());
            header.write(&mut text);
            let end = text.len() + size / 5;
            let mut conn = 0;
            while text.len() < end {
                let last = conn;
                for entry in &entries {
                    let mut entry = entry.clone();
                    entry.conn += last;
                    conn = conn.max(entry.conn);
                    entry.write(&mut text);
                }
            }
        }
        text
    }

    fn recorded(protocol: Protocol) -> Vec<Entry<'static>> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tests = crates.join(format!("{}-proto/tests", protocol.name()));
        let mut files = Vec::new();
        find(&tests.join("transcripts"), &mut files);
        find(&tests.join("vectors"), &mut files);
        files.sort();
        let mut all = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            // Some files are no recordings.
            let Ok(recording) = crate::recordings::parse(&text) else {
                continue;
            };
            let mut explainer = Explainer::new(Some(protocol), false);
            let first = all.last().map_or(0, |last: &Entry<'_>| last.conn);
            for mut entry in recording.entries {
                if explainer.explain(1, &entry).is_known() {
                    entry.conn += first;
                    all.push(entry);
                }
            }
        }
        assert!(!all.is_empty(), "{}", tests.display());
        all
    }

    fn find(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find(&path, found);
            } else if path.extension().is_some_and(|it| it == "jsonl") {
                found.push(path);
            }
        }
    }

    fn entries(frames: Vec<(Side, String)>) -> Vec<Entry<'static>> {
        let entry = |(number, (side, text)): (u64, (Side, String))| {
            let at = Duration::from_micros(1731 * number);
            Entry::new(at, 1, Some(side), Kind::Text, text)
        };
        (0..).zip(frames).map(entry).collect()
    }

    fn snek() -> Vec<Entry<'static>> {
        let mut frames = vec![
            (
                Side::Client,
                r#"{"method":"login","args":["mybot","mypassword"],"kwargs":{},"callId":"0"}"#
                    .to_owned(),
            ),
            (
                Side::Server,
                r#"{"callId":"0","success":true,"data":{"username":"mybot"}}"#.to_owned(),
            ),
        ];
        for number in 1..50 {
            let uid = format!("6f1c2d3e-8f3a-4bbb-8ccc-{number:012}");
            frames.extend([
                (Side::Client, format!(r#"{{"method":"send_message","args":["{uid}","Hello everybody, this is message {number} of a bot",true],"kwargs":{{}},"callId":"{number}"}}"#)),
                (Side::Server, format!(r#"{{"callId":"{number}","success":true,"data":null}}"#)),
                (Side::Server, format!(r#"{{"event":"message","message":"hello @mybot, what do you say to number {number}?","username":"alice","user_nick":"Alice","channel_uid":"{uid}","is_final":true}}"#)),
            ]);
        }
        entries(frames)
    }

    fn smarthole() -> Vec<Entry<'static>> {
        let mut frames = vec![
            (Side::Client, r#"{"type":"registration","payload":{"name":"lights","description":"Turns the lights of the house on and off"}}"#.to_owned()),
            (Side::Server, r#"{"type":"registration_response","payload":{"success":true,"clientId":"550e8400-e29b-41d4-a716-446655440000","message":"Client 'lights' registered successfully"}}"#.to_owned()),
        ];
        for number in 1..50 {
            let id = format!("550e8400-e29b-41d4-a716-{number:012}");
            frames.extend([
                (Side::Server, format!(r#"{{"type":"message","payload":{{"id":"{id}","text":"turn the lights in room {number} on","timestamp":"2025-11-25T11:12:18.123Z","metadata":{{"inputMethod":"voice","directRouted":false,"confidence":0.93}}}}}}"#)),
                (Side::Client, format!(r#"{{"type":"response","payload":{{"messageId":"{id}","type":"ack","payload":{{}}}}}}"#)),
            ]);
        }
        entries(frames)
    }
}
