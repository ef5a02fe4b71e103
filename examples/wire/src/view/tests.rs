//! Views of short recordings.

use std::sync::{Arc, Mutex};

use super::*;
use crate::Protocol;
use crate::secrets::Shown;

const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}
{"at":0.004,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"pong\"}"}
{"at":0.005,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"2\",\"method\":\"chat.send\",\"params\":{\"channel\":\"web\",\"account\":\"a\",\"content\":\"hi\"}}"}
{"at":0.006,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"2\",\"event\":\"text\",\"data\":\"Hello\"}"}
{"at":0.007,"conn":2,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"status\"}"}
{"at":0.008,"conn":2,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"error\":\"no\"}"}
{"at":0.009,"conn":1,"dir":"s2c","kind":"close","code":1011,"data":"broken"}
{"at":0.010,"conn":2,"dir":"c2s","kind":"text","data":"{\"token\":\"hunter2\"}"}
nonsense
"#;

pub(crate) fn view(text: &str) -> View {
    let view = Shared::default();
    open(
        text.as_bytes(),
        Explainer::new(None, Shown::default()),
        &view,
        true,
    )
    .unwrap();
    Arc::into_inner(view).unwrap().into_inner().unwrap()
}

fn problems(view: &View) -> Vec<(usize, &str)> {
    let rows = view.rows.iter();
    rows.filter_map(|row| Some((row.n, row.explained.problem.as_deref()?.split(": ").next()?)))
        .collect()
}

#[test]
fn an_error_is_shown_at_the_frame_at_fault() {
    let expected = [
        (4, "never answered"),
        (7, "says that it failed"),
        (8, "closed with 1011"),
        (9, "never answered"),
        (10, "not a line of a recording"),
    ];
    assert_eq!(problems(&view(RUN)), expected);
}

#[test]
fn a_running_recording_reports_no_unanswered_call() {
    let (view, mut explainer) = (Shared::default(), Explainer::new(None, Shown::default()));
    for (line, n) in RUN.lines().take(6).zip(1..) {
        add(&view, &mut explainer, n, line);
    }
    let view = lock(&view);
    assert_eq!(problems(&view), []);
}

#[test]
fn secrets_are_in_no_header_unless_they_are_wanted() {
    let text = r#"{"transcript":1,"client":"a b","server":"ws://u:hunter2@h/ws?token=hunter2"}"#;
    for (shows, server) in [
        (false, None),
        (true, Some("ws://u:hunter2@h/ws?token=hunter2")),
    ] {
        let view = Shared::default();
        open(
            text.as_bytes(),
            Explainer::new(
                None,
                match shows {
                    true => Shown::all(),
                    false => Shown::default(),
                },
            ),
            &view,
            true,
        )
        .unwrap();
        let header = lock(&view).header.clone();
        match server {
            Some(server) => assert_eq!(header.server.as_deref(), Some(server)),
            None => assert!(!header.server.unwrap().contains("hunter2")),
        }
        assert_eq!(header.client.as_deref(), Some("a b"));
    }
}

#[test]
fn the_beginning_stays_when_frames_make_room() {
    let mut view = View::default();
    let mut explainer = Explainer::new(Some(Protocol::Exoclaw), Shown::default());
    let line = r#"{"at":0,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}"#;
    let one = Shared::default();
    add(&one, &mut explainer, 1, line);
    let row = lock(&one).rows[0].clone();
    for n in 1..=MAX_ROWS + 10 {
        view.push(Row { n, ..row.clone() });
    }
    assert_eq!(view.rows.len() + view.dropped, MAX_ROWS + 10);
    assert!((MAX_ROWS * 98 / 100..=MAX_ROWS).contains(&view.rows.len()));
    assert_eq!(
        (view.rows[0].n, view.rows[FIRST_ROWS].n),
        (1, FIRST_ROWS + 1 + view.dropped)
    );
    let data = "x".repeat(MAX_BYTES / 2);
    for n in [MAX_ROWS + 11, MAX_ROWS + 12] {
        let data = data.clone();
        view.push(Row {
            n,
            data,
            ..row.clone()
        });
    }
    assert!(view.rows.len() <= 3 && view.rows[0].n == 1);
}

#[test]
fn lines_that_are_written_show_up_in_the_view_and_in_the_file() {
    #[derive(Clone, Default)]
    struct File(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for File {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (file, view) = (File::default(), Shared::default());
    let explainer = Explainer::new(None, Shown::default());
    let mut filling = fill(explainer, Arc::clone(&view));
    let (mut feed, thread) = Feed::new(file.clone(), move |fed| filling(&fed)).unwrap();
    for line in RUN.split_inclusive('\n') {
        std::io::Write::write_all(&mut feed, line.as_bytes()).unwrap();
    }
    drop(feed);
    thread.join().unwrap();
    assert!(lock(&view).is_complete);
    assert_eq!(lock(&view).rows.len(), 9);
    assert_eq!(lock(&view).header.protocol.as_deref(), Some("exoclaw"));
    assert_eq!(file.0.lock().unwrap().as_slice(), RUN.as_bytes());
}
