//! Messages, feeds and their order.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{join, join3};
use tokio::time::Instant;

use super::{Engine, Rule, with_id};
use rpc_core::store::{AskError, LogConfig, Message, Messages, Position, StoreError};

/// How many messages an unread subscription gets.
const FLOOD: usize = 70_000;

/// A message reaches the subscribers of its subject only.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn messages_reach_all_who_are_subscribed(engine: &dyn Engine) {
    let must = "a message reaches all who are subscribed to its subject, in order, and no one else";
    let rule = Rule::new(engine, "messages", must);
    let (one, other) = (rule.connect().await, rule.connect().await);
    let mut subscribed = [
        (
            rule.subscribe(&*one, "messages.a").await,
            "messages.a",
            vec!["1", "4", "end"],
        ),
        (
            rule.subscribe(&*other, "messages.*").await,
            "messages.*",
            vec!["1", "2", "4", "end"],
        ),
        (
            rule.subscribe(&*other, "messages.>").await,
            "messages.>",
            vec!["1", "2", "3", "4", "end"],
        ),
    ];
    let sent = [
        ("a", "1"),
        ("b", "2"),
        ("a.c", "3"),
        ("a", "4"),
        ("a", "end"),
    ];
    for (subject, payload) in sent {
        let subject = format!("messages.{subject}");
        let publishing = rule.soon("a message", one.publish(&subject, payload.into()));
        rule.ok("a message", publishing.await);
    }
    for (messages, pattern, expected) in &mut subscribed {
        for expected in expected {
            let message = rule.received(messages).await;
            rule.equal(pattern, message.payload, (*expected).into());
            let bare = (&*message.id, message.position, message.reply_to);
            rule.equal("id, position and reply_to", bare, ("", None, None));
        }
    }
    rule.holds(one.is_connected(), || "it says that it is not connected");
    let sent = one.try_publish("messages.a", "at once".into());
    rule.holds(sent, || "a message is not sent at once");
    let (messages, ..) = &mut subscribed[2];
    let payload = rule.received(messages).await.payload;
    rule.equal("what is sent at once", payload, "at once".into());
}

/// A message is not stored, and not taken for a subject of a log.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_message_is_not_stored(engine: &dyn Engine) {
    let must = "a message on a subject of a log, or on none, is refused with `Config`";
    let rule = Rule::new(engine, "refused", must);
    let store = rule.connect().await;
    let log = rule.open(&*store, rule.config()).await;
    let within = Duration::from_secs(1);
    for subject in [
        &*rule.subject("a"),
        "",
        "refused..a",
        "refused.*",
        "refused.>",
        "a b",
    ] {
        let published = rule.soon("a message", store.publish(subject, "it".into()));
        rule.refused(&format!("a message on {subject:?}"), published.await);
        let sent = store.try_publish(subject, "it".into());
        rule.holds(!sent, || {
            format!("a message on {subject:?} is said to be sent")
        });
        let asked = rule.soon("a question", store.ask(subject, "it".into(), within));
        let asked = asked.await.map_err(|error| match error {
            AskError::Store(error) => error,
            other => StoreError::unavailable(other),
        });
        rule.refused(&format!("a question on {subject:?}"), asked);
    }
    for pattern in ["", "refused..a", "refused.>.a", "a b"] {
        let subscribed = rule.soon("a subscription", store.subscribe(pattern)).await;
        rule.refused(&format!("a subscription to {pattern:?}"), subscribed);
    }
    let stored = rule.numbers(&*log, ">").await;
    rule.equal("what is stored", stored, vec![]);
}

/// A feed brings records and messages to all subscribers in one order, and each record with its number and that
/// of the record before it.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_feed_brings_records_and_messages_in_one_order(engine: &dyn Engine) {
    let must =
        "a feed brings records, with the numbers before them, and messages to all in one order";
    let rule = Rule::new(engine, "feed", must);
    let config = LogConfig {
        feed: Some("fed.*.f.>".to_owned()),
        ..LogConfig::new(&rule.subject("*.>"))
    };
    let (one, other) = (rule.connect().await, rule.connect().await);
    let log = rule.open(&*one, config).await;
    let mut first = rule.subscribe(&*one, "fed.*.f.>").await;
    let mut second = rule.subscribe(&*other, "fed.>").await;
    let mut gaps = [one.gaps(), other.gaps()];
    for gaps in &mut gaps {
        gaps.mark_unchanged();
    }
    // What follows an answer comes after it.
    let purged = Some(rule.subject("a.>"));
    for (subject, feed, before, sequence, previous) in [
        ("a.b.c", "fed.a.f.b.c", None, 1, 0),
        ("b.a", "fed.b.f.a", None, 2, 0),
        ("a.b.c", "fed.a.f.b.c", None, 3, 1),
        ("a.b.c", "fed.a.f.b.c", purged, 4, 0),
        ("b.a", "fed.b.f.a", None, 5, 2),
    ] {
        if let Some(pattern) = before {
            rule.ok("a purge", log.purge(&pattern, u64::MAX).await);
        }
        let id = format!("id {sequence}");
        let appending = rule.try_append(&*log, subject, "record", with_id(&id));
        rule.ok("an append", appending.await);
        rule.ok("a message", one.publish(feed, "message".into()).await);
        let position = Some(Position { sequence, previous });
        for messages in [&mut first, &mut second] {
            let record = rule.received(messages).await;
            rule.equal("the subject of a record", &*record.subject, feed);
            rule.equal("a record", record.payload, "record".into());
            rule.equal("its position", record.position, position);
            rule.equal("its id", &*record.id, &*id);
            let message = rule.received(messages).await;
            rule.equal("the message after it", message.payload, "message".into());
            rule.equal("its position", message.position, None);
        }
    }
    let appends = async {
        for at in 0..100 {
            rule.append(&*log, "c.c", &format!("record {at}")).await;
        }
    };
    let publishes = async {
        for at in 0..100 {
            let payload = format!("message {at}").into();
            rule.ok("a message", other.publish("fed.c.f.c", payload).await);
            tokio::task::yield_now().await;
        }
    };
    join(appends, publishes).await;
    rule.ok("a message", other.publish("fed.c.f.c", "end".into()).await);
    let received = [
        until_end(&rule, &mut first).await,
        until_end(&rule, &mut second).await,
    ];
    let is_lost = gaps.iter().any(|gaps| gaps.has_changed().unwrap_or(true));
    let [first, second] = &received;
    rule.holds(is_lost || first == second, || {
        let mut pairs = first.iter().zip(second);
        let at = pairs.position(|(one, other)| one != other);
        format!(
            "two subscribers differ at {at:?} of {} and {}",
            first.len(),
            second.len()
        )
    });
    rule.holds(is_lost || first.len() == 200, || {
        format!("{} of 200 come, and no gap is counted", first.len())
    });
    for received in &received {
        let positions: Vec<Position> = received.iter().filter_map(|it| it.position).collect();
        let is_in_order = positions
            .windows(2)
            .all(|two| two[0].sequence < two[1].sequence);
        rule.holds(is_in_order, || "records come out of order");
        let follow = positions
            .windows(2)
            .all(|two| two[1].previous == two[0].sequence);
        rule.holds(follow, || "a record names another one as the one before it");
    }
}

async fn until_end(rule: &Rule<'_, dyn Engine + '_>, messages: &mut Messages) -> Vec<Message> {
    let mut received = Vec::new();
    loop {
        let message = rule.received(messages).await;
        if &*message.payload == b"end" {
            return received;
        }
        received.push(message);
    }
}

/// A slow reader loses nothing, or a gap is counted.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_loss_is_counted_as_a_gap(engine: &dyn Engine) {
    let must = "a subscription that is read too slowly loses nothing, or a gap is counted";
    let rule = Rule::new(engine, "gaps", must);
    let (one, other) = (rule.connect().await, rule.connect().await);
    let mut messages = rule.subscribe(&*one, "gaps.a").await;
    let mut gaps = one.gaps();
    gaps.mark_unchanged();
    for at in 0..FLOOD {
        let publishing = rule.soon("a message", other.publish("gaps.a", at.to_string().into()));
        rule.ok("a message", publishing.await);
    }
    let mut numbers: Vec<usize> = Vec::new();
    let wait = Duration::from_secs(2);
    while let Ok(message) = tokio::time::timeout(wait, messages.next()).await {
        let message =
            message.unwrap_or_else(|| rule.broken("a subscription ends before its store"));
        numbers.extend(String::from_utf8_lossy(&message.payload).parse::<usize>());
    }
    let is_in_order = numbers.windows(2).all(|two| two[0] < two[1]);
    rule.holds(is_in_order, || "messages come twice or out of order");
    let is_reported = gaps.has_changed().unwrap_or(true);
    rule.holds(is_reported || numbers.len() == FLOOD, || {
        format!(
            "{} of {FLOOD} messages come, and no gap is counted",
            numbers.len()
        )
    });
    rule.ok("a message", other.publish("gaps.a", "again".into()).await);
    let again = rule.received(&mut messages).await.payload;
    rule.equal("the message after them", again, "again".into());
}

/// A question gets the answer of a listener; that there is none, and that none answers, are
/// different errors.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn a_question_gets_an_answer_or_the_reason(engine: &dyn Engine) {
    let must = "a question gets an answer, or the reason: no subscriber, or no answer in time";
    let rule = Rule::new(engine, "ask", must);
    let (one, other) = (rule.connect().await, rule.connect().await);
    let within = Duration::from_secs(20);
    let asking = rule.soon("a question", one.ask("ask.a", Bytes::new(), within));
    let expected = Err(AskError::NoListener);
    rule.equal("a question without a subscriber", asking.await, expected);
    let mut questions = rule.subscribe(&*other, "ask.*").await;
    // The second question is answered first.
    let answering = async {
        let mut asked = [
            rule.received(&mut questions).await,
            rule.received(&mut questions).await,
        ];
        asked.sort_by(|one, other| other.payload.cmp(&one.payload));
        for Message {
            payload, reply_to, ..
        } in asked
        {
            let reply_to = reply_to.unwrap_or_default();
            rule.holds(!reply_to.is_empty(), || "there is no place for the answer");
            other.answer(&reply_to, payload);
            other.answer(&reply_to, "another".into());
        }
    };
    let ask = |what: &'static str| rule.soon("a question", one.ask("ask.a", what.into(), within));
    let (first, second, ()) = join3(ask("first"), ask("second"), answering).await;
    rule.equal("the answer", first, Ok(Bytes::from("first")));
    rule.equal("the second answer", second, Ok(Bytes::from("second")));
    let (within, began) = (Duration::from_secs(1), Instant::now());
    let asking = rule.soon("a question", one.ask("ask.a", "again".into(), within));
    let expected = Err(AskError::NoAnswer);
    rule.equal("a question without an answer", asking.await, expected);
    let took = began.elapsed();
    rule.holds(took < 10 * within, || {
        format!("a question of 1 s takes {took:?}")
    });
    let question = rule.received(&mut questions).await;
    // No one waits any more.
    other.answer(&question.reply_to.unwrap_or_default(), "late".into());
    let answering = async {
        let question = rule.received(&mut questions).await;
        other.answer(&question.reply_to.unwrap_or_default(), question.payload);
    };
    let within = Duration::from_secs(20);
    let asking = rule.soon("a question", one.ask("ask.a", "last".into(), within));
    let (answer, ()) = join(asking, answering).await;
    rule.equal("the last answer", answer, Ok(Bytes::from("last")));
}

/// Logs, watches and subscriptions go on after their store is dropped.
///
/// # Cancel safety
/// Dropping the future ends the test.
pub(super) async fn handles_outlive_their_store(engine: &dyn Engine) {
    let must = "logs, watches and subscriptions go on after their store is dropped";
    let rule = Rule::new(engine, "outlive", must);
    let (one, other) = (rule.connect().await, rule.connect().await);
    let log = rule.open(&*one, rule.config()).await;
    let mut messages = rule.subscribe(&*one, "outlive.f").await;
    let mut watch = rule.ok("a watch", log.watch(&rule.subject(">")).await);
    let mark = rule.watched(&mut watch, "the mark of a watch").await;
    rule.equal("the mark of a watch", mark, None);
    drop(one);
    rule.append(&*log, "a", "it").await;
    drop(log);
    let watched = rule.watched(&mut watch, "a record").await;
    rule.equal("what is watched", watched.map(|it| it.sequence), Some(1));
    rule.ok("a message", other.publish("outlive.f", "it".into()).await);
    let payload = rule.received(&mut messages).await.payload;
    rule.equal("the message", payload, "it".into());
}
