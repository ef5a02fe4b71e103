//! Tests of [`TextStream`], single rules first, then random schedules against a naive model.

use proptest::prelude::*;

use super::*;

fn stream(config: StreamConfig) -> (TextStream, Instant) {
    (TextStream::new(config), Instant::now())
}

fn texts(stream: &mut TextStream, now: Instant) -> Option<(String, bool)> {
    let post = stream.poll_send(now)?;
    Some((post.text.to_string(), post.is_final == Final::Yes))
}

fn sent(text: &str, is_final: bool) -> Option<(String, bool)> {
    Some((text.to_owned(), is_final))
}

#[test]
fn only_the_newest_text_is_sent_next() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.push("a");
    assert_eq!(texts(&mut stream, now), sent("a", false));
    for delta in ["b", "c", "d"] {
        stream.push(delta);
        assert_eq!(texts(&mut stream, now), None);
    }
    stream.on_answer(true, now);
    assert_eq!(texts(&mut stream, now), sent("abcd", false));
    stream.on_answer(true, now);
    assert_eq!(texts(&mut stream, now), None);
    stream.finish();
    assert_eq!(texts(&mut stream, now), sent("abcd", true));
    stream.on_answer(true, now);
    assert_eq!(texts(&mut stream, now), None);
}

#[test]
fn partials_are_throttled_and_the_final_one_is_not() {
    let interval = Duration::from_millis(100);
    let (mut stream, now) = stream(StreamConfig {
        interval,
        ..StreamConfig::default()
    });
    stream.push("a");
    assert_eq!(stream.poll_timeout(), None);
    assert_eq!(texts(&mut stream, now), sent("a", false));
    stream.on_answer(true, now);
    assert_eq!(stream.poll_timeout(), None, "nothing has changed");
    stream.push("b");
    assert_eq!(texts(&mut stream, now), None);
    assert_eq!(stream.poll_timeout(), Some(now + interval));
    assert_eq!(texts(&mut stream, now + interval), sent("ab", false));
    stream.on_answer(true, now + interval);
    stream.push("c");
    stream.finish();
    assert_eq!(stream.poll_timeout(), None);
    assert_eq!(texts(&mut stream, now + interval), sent("abc", true));
}

#[test]
fn a_failed_partial_is_not_repeated_and_delays_the_next() {
    let pause = Duration::from_secs(2);
    let (mut stream, now) = stream(StreamConfig {
        pause,
        ..StreamConfig::default()
    });
    stream.push("a");
    assert!(stream.poll_send(now).is_some());
    stream.on_answer(false, now);
    assert_eq!(texts(&mut stream, now + pause), None, "repeated");
    stream.push("b");
    assert_eq!(texts(&mut stream, now), None);
    assert_eq!(stream.poll_timeout(), Some(now + pause));
    assert_eq!(texts(&mut stream, now + pause), sent("ab", false));
    stream.finish();
    stream.on_answer(false, now + pause);
    assert_eq!(texts(&mut stream, now + pause), sent("ab", true));
}

#[test]
fn equal_and_empty_partials_are_skipped() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.set("");
    assert_eq!(texts(&mut stream, now), None);
    stream.set("a");
    assert!(stream.poll_send(now).is_some());
    stream.on_answer(true, now);
    stream.set("b");
    stream.set("a");
    assert_eq!(texts(&mut stream, now), None);
    assert_eq!(stream.poll_timeout(), None);
}

#[test]
fn an_empty_reply_has_a_final_message() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.finish();
    assert_eq!(texts(&mut stream, now), sent("", true));
    assert_eq!(stream.fitted(), Ok(()));
}

#[test]
fn an_aborted_reply_ends_with_a_note() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.push("so far");
    stream.fail("the snek bit");
    stream.push("ignored");
    stream.finish();
    assert_eq!(
        texts(&mut stream, now),
        sent("so far\n\nthe s-nek bit", true)
    );
    let mut empty = TextStream::new(StreamConfig::default());
    empty.fail("sorry");
    assert_eq!(texts(&mut empty, now), sent("sorry", true));
    let mut quiet = TextStream::new(StreamConfig {
        note: "".into(),
        ..StreamConfig::default()
    });
    quiet.push("so far");
    assert_eq!(&*quiet.abandon().unwrap().text, "so far");
}

#[test]
fn an_abandoned_reply_ends_once() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.push("a");
    assert!(stream.poll_send(now).is_some());
    stream.push("b");
    let post = stream.abandon().unwrap();
    assert_eq!(
        (&*post.text, post.is_final),
        ("ab\n\n(interrupted)", Final::Yes)
    );
    assert_eq!(stream.abandon(), None);
    stream.on_answer(true, now);
    assert_eq!(texts(&mut stream, now), None);
}

#[test]
fn a_finished_reply_gets_no_note_when_abandoned() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.push("a");
    assert!(stream.poll_send(now).is_some());
    stream.finish();
    assert_eq!(&*stream.abandon().unwrap().text, "a");
}

#[test]
fn a_name_split_over_two_chunks_is_broken_up() {
    let (mut stream, now) = stream(StreamConfig::default());
    stream.push("ask sn");
    assert_eq!(texts(&mut stream, now), sent("ask sn", false));
    stream.on_answer(true, now);
    stream.push("ek");
    assert_eq!(texts(&mut stream, now), sent("ask s-nek", false));
    stream.on_answer(true, now);
    stream.push("bot");
    assert_eq!(texts(&mut stream, now), sent("ask snekbot", false));
}

#[test]
fn an_oversized_text_is_truncated_and_reported() {
    let (mut stream, now) = stream(StreamConfig {
        max_bytes: 5,
        ..StreamConfig::default()
    });
    stream.push("aéé");
    assert_eq!(texts(&mut stream, now), sent("aéé", false));
    stream.on_answer(true, now);
    stream.push("é");
    stream.push("x");
    assert_eq!(
        texts(&mut stream, now),
        None,
        "the part that fits is the same"
    );
    stream.finish();
    assert_eq!(texts(&mut stream, now), sent("aéé", true));
    assert_eq!(stream.fitted(), Err(Refused::TooLarge { size: 8, max: 5 }));
}

#[test]
fn a_shorter_replacement_text_fits_again() {
    let (mut stream, now) = stream(StreamConfig {
        max_bytes: 5,
        ..StreamConfig::default()
    });
    stream.push("much too long");
    stream.set("short");
    stream.finish();
    assert_eq!(texts(&mut stream, now), sent("short", true));
    assert_eq!(stream.fitted(), Ok(()));
}

#[test]
fn escapes_count_in_their_encoded_length() {
    let (mut stream, now) = stream(StreamConfig {
        max_bytes: 12,
        ..StreamConfig::default()
    });
    stream.push("\"\\\n\u{1}xyz");
    stream.fail("no");
    assert_eq!(texts(&mut stream, now), sent("\"\\\n\n\nno", true));
    let max = 12;
    assert_eq!(stream.fitted(), Err(Refused::TooLarge { size: 21, max }));
}

#[test]
fn truncation_creates_no_name() {
    let (mut stream, now) = stream(StreamConfig {
        max_bytes: 8,
        ..StreamConfig::default()
    });
    stream.push("ask snekbot");
    stream.finish();
    let (text, _) = texts(&mut stream, now).unwrap();
    assert_eq!(text, "ask s-ne");
}

proptest! {
    #[test]
    fn json_lengths_match_the_encoder(text: String) {
        let encoded = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(json_len(&text), encoded.len() - 2);
    }

    #[test]
    fn truncated_texts_fit(text: String, note: String, max in 0_usize..40) {
        let mut stream = TextStream::new(StreamConfig { max_bytes: max, ..StreamConfig::default() });
        stream.push(&text);
        stream.fail(&note);
        let post = stream.poll_send(Instant::now()).unwrap();
        let fits = json_len(&post.text) <= max;
        prop_assert!(fits, "{:?}", post.text);
    }
}

/// What may happen to a stream.
#[derive(Clone, Debug)]
enum Step {
    Push(String),
    Set(String),
    /// The message in flight is answered, or fails as on a lost line.
    Answer(bool),
    Wait(u64),
    Finish,
    Fail,
    Abandon,
}

fn step() -> impl Strategy<Value = Step> {
    let text = "(sn|ek|snek| |x|é|ira|\n){0,3}";
    prop_oneof![
        6 => text.prop_map(Step::Push),
        1 => text.prop_map(Step::Set),
        4 => any::<bool>().prop_map(Step::Answer),
        3 => (0_u64..300).prop_map(Step::Wait),
        1 => Just(Step::Finish),
        1 => Just(Step::Fail),
        1 => Just(Step::Abandon),
    ]
}

/// What went out and what has to be true of it.
#[derive(Default)]
struct Model {
    text: String,
    over: bool,
    broken: bool,
    in_flight: bool,
    finals: usize,
    last: Option<(String, Instant)>,
    failed_at: Option<Instant>,
}

impl Model {
    fn take(&mut self, post: &Post, now: Instant, config: &StreamConfig) {
        assert_eq!(self.finals, 0, "a message after the final one");
        let text = sanitize_names(&self.text).into_owned();
        if post.is_final == Final::Yes {
            self.finals += 1;
            let expected = match (self.broken, text.is_empty()) {
                (false, _) => text,
                (true, true) => config.note.clone(),
                (true, false) => format!("{text}\n\n{}", config.note),
            };
            assert_eq!(*post.text, *expected);
        } else {
            assert!(!self.over, "a partial after the end");
            assert!(!self.in_flight, "two messages at a time");
            assert_eq!(*post.text, *text, "not the whole text so far");
            if let Some((last, at)) = &self.last {
                assert_ne!(*last, text, "the same text twice");
                assert!(now >= *at + config.interval, "too soon");
            }
            if let Some(at) = self.failed_at {
                assert!(now >= at + config.pause, "too soon after a failure");
            }
            self.last = Some((text, now));
        }
        self.in_flight = true;
    }

    fn end(&mut self, broken: bool) {
        if !self.over {
            self.over = true;
            self.broken = broken;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn texts_grow_in_order_and_end_once_under_any_schedule(
        steps in proptest::collection::vec(step(), 0..40),
        interval in 0_u64..200,
    ) {
        let config = StreamConfig { interval: Duration::from_millis(interval), pause: Duration::from_millis(150), ..StreamConfig::default() };
        let mut stream = TextStream::new(config.clone());
        let mut model = Model::default();
        let mut now = Instant::now();
        // However the schedule goes, the answer is given up in the end.
        for step in steps.into_iter().chain([Step::Abandon]) {
            match step {
                Step::Push(delta) => {
                    stream.push(&delta);
                    if !model.over {
                        model.text.push_str(&delta);
                    }
                }
                Step::Set(whole) => {
                    stream.set(&whole);
                    if !model.over {
                        model.text = whole;
                    }
                }
                Step::Answer(taken) => {
                    stream.on_answer(taken, now);
                    if std::mem::take(&mut model.in_flight) && !taken && model.finals == 0 {
                        model.failed_at = Some(now);
                    }
                }
                Step::Wait(ms) => now += Duration::from_millis(ms),
                Step::Finish => {
                    stream.finish();
                    model.end(false);
                }
                Step::Fail => {
                    stream.fail(&config.note);
                    model.end(true);
                }
                Step::Abandon => {
                    model.end(true);
                    match stream.abandon() {
                        Some(post) => model.take(&post, now, &config),
                        None => assert_eq!(model.finals, 1, "no final message"),
                    }
                }
            }
            if let Some(post) = stream.poll_send(now) {
                model.take(&post, now, &config);
            }
            prop_assert_eq!(stream.poll_send(now), None);
            prop_assert_eq!(stream.in_flight, model.in_flight);
            if let Some(at) = stream.poll_timeout() {
                prop_assert!(at > now, "a deadline that has passed");
            }
            if !model.in_flight && !model.over && stream.poll_timeout().is_none() {
                // At rest: what was shown last is the newest text.
                let shown = model.last.as_ref().map_or("", |(text, _)| text);
                let newest = sanitize_names(&model.text);
                prop_assert!(newest.is_empty() || newest == shown);
            }
        }
        prop_assert_eq!(model.finals, 1);
    }
}
