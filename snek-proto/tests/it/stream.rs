//! Streamed answers of a bot against a scripted server. Paused clock.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use serde_json::json;
use snek_proto::bot::{BotConfig, Context, PumpError, StreamConfig};
use snek_proto::error::BotError;
use tokio::time::{sleep, timeout};

use crate::acting::{Acting, config};
use crate::scripted::{Peer, Request};

/// Pieces of text, one after each wait.
fn pieces(
    texts: &'static [&'static str],
    wait: Duration,
) -> impl Stream<Item = Result<&'static str, Infallible>> + Send {
    stream::iter(texts).then(move |text| async move {
        sleep(wait).await;
        Ok(*text)
    })
}

fn pumped<E: std::fmt::Debug>(
    result: Result<(snek_proto::frame::CallValue, String), PumpError<E>>,
) -> String {
    result.unwrap().1
}

/// The next request, which has to be a message: its text and whether it is the last one.
async fn message(line: &mut Peer) -> (Request, String, bool) {
    let request = timeout(Duration::from_secs(600), line.request()).await;
    let request = request.unwrap();
    assert_eq!(request.method, "send_message", "{request:?}");
    assert_eq!(request.args[0], "ch1");
    let text = request.args[1].as_str().unwrap().to_owned();
    let is_final = request.args[2].as_bool().unwrap();
    (request, text, is_final)
}

/// Answers the next message, which has to be this one.
async fn expect(line: &mut Peer, text: &str, is_final: bool) {
    let (request, found, last) = message(line).await;
    assert_eq!((&*found, last), (text, is_final));
    line.answer(&request, json!({})).await;
}

async fn nothing_more(line: &mut Peer) {
    let more = timeout(Duration::from_secs(20), line.request()).await;
    assert!(more.is_err(), "a message too many: {more:?}");
}

#[tokio::test(start_paused = true)]
async fn a_text_grows_in_partial_messages_and_ends_in_a_final_one() {
    let mut bot = Acting::start(config(), |cx| async move {
        let deltas = pieces(&["Working", " on it", "... done!"], Duration::from_secs(1));
        assert_eq!(
            pumped(cx.stream().pump(deltas).await),
            "Working on it... done!"
        );
        Ok(())
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "Working", false).await;
    expect(&mut line, "Working on it", false).await;
    expect(&mut line, "Working on it... done!", false).await;
    expect(&mut line, "Working on it... done!", true).await;
    nothing_more(&mut line).await;
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_gets_the_first_newest_and_final_text() {
    let mut bot = Acting::start(config(), |cx| async move {
        let deltas = pieces(&["a", "b", "c", "d", "e", "f"], Duration::from_secs(3));
        pumped(cx.stream().pump(deltas).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let mut seen = Vec::new();
    loop {
        let (request, text, is_final) = message(&mut line).await;
        let early = timeout(Duration::from_secs(10), line.request()).await;
        assert!(early.is_err(), "a message before the answer: {early:?}");
        line.answer(&request, json!({})).await;
        seen.push(text);
        if is_final {
            break;
        }
    }
    assert_eq!(seen, ["a", "abcd", "abcdef"]);
    nothing_more(&mut line).await;
}

#[tokio::test(start_paused = true)]
async fn try_push_sends_without_waiting() {
    let mut bot = Acting::start(config(), |cx| async move {
        let mut answer = cx.stream();
        answer.push("one");
        // The bot's connection gets to work while the handler waits for something else.
        sleep(Duration::from_secs(1)).await;
        answer.push(" two");
        answer.push(" three");
        answer.flush().await;
        answer.set("four");
        answer.push(" five");
        answer.finish().await?;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "one", false).await;
    expect(&mut line, "one two", false).await;
    expect(&mut line, "one two three", false).await;
    expect(&mut line, "four", false).await;
    expect(&mut line, "four five", true).await;
    nothing_more(&mut line).await;
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn the_final_message_is_sent_despite_refused_partials() {
    let mut bot = Acting::start(config(), |cx| async move {
        let deltas = pieces(&["a", "b", "c"], Duration::from_millis(400));
        pumped(cx.stream().pump(deltas).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    for (text, is_final) in [("a", false), ("abc", true)] {
        let (request, found, last) = message(&mut line).await;
        assert_eq!((&*found, last), (text, is_final));
        if is_final {
            line.answer(&request, json!({})).await;
        } else {
            line.refuse(&request, "no partial messages here").await;
        }
    }
    nothing_more(&mut line).await;
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn a_refused_partial_delays_the_next_by_a_second() {
    let mut bot = Acting::start(config(), |cx| async move {
        let deltas = pieces(&["a", "b", "c", "d"], Duration::from_millis(400));
        pumped(cx.stream().pump(deltas).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let (request, _, _) = message(&mut line).await;
    let before = tokio::time::Instant::now();
    line.refuse(&request, "not now").await;
    expect(&mut line, "abc", false).await;
    assert_eq!(before.elapsed().as_millis(), 1_000);
    expect(&mut line, "abcd", false).await;
    expect(&mut line, "abcd", true).await;
}

#[tokio::test(start_paused = true)]
async fn sanitizing_names_can_be_disabled_per_bot_and_stream() {
    let stream = StreamConfig {
        sanitize: false,
        ..StreamConfig::default()
    };
    for config in [
        BotConfig {
            sanitize: false,
            ..config()
        },
        BotConfig { stream, ..config() },
    ] {
        let mut bot = Acting::start(config, |cx| async move {
            cx.stream().fail("ask snek").await?;
            Ok(())
        });
        let mut line = bot.mentioned().await;
        expect(&mut line, "ask snek", true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn unanswered_partials_delay_the_final_message_briefly() {
    let mut bot = Acting::start(config(), |cx| async move {
        pumped(cx.stream().pump(pieces(&["a", "b"], Duration::ZERO)).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let (_, text, _) = message(&mut line).await;
    assert_eq!(text, "a");
    let before = tokio::time::Instant::now();
    expect(&mut line, "ab", true).await;
    assert_eq!(before.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn the_call_timeout_applies_to_partial_messages() {
    let mut config = config();
    config.client.call_timeout = Duration::from_secs(3);
    let mut bot = Acting::start(config, |cx| async move {
        pumped(cx.stream().pump(pieces(&["a", "b"], Duration::ZERO)).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let (_, text, _) = message(&mut line).await;
    assert_eq!(text, "a");
    let before = tokio::time::Instant::now();
    expect(&mut line, "ab", true).await;
    assert_eq!(before.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn partial_messages_are_throttled() {
    let stream = StreamConfig {
        interval: Duration::from_secs(1),
        ..StreamConfig::default()
    };
    let mut bot = Acting::start(BotConfig { stream, ..config() }, |cx| async move {
        let deltas = pieces(&["a", "b", "c", "d", "e"], Duration::from_millis(400));
        pumped(cx.stream().pump(deltas).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    for (text, is_final) in [("a", false), ("abc", false), ("abcde", true)] {
        expect(&mut line, text, is_final).await;
    }
    nothing_more(&mut line).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_survives_a_reconnect_with_its_final_message() {
    let mut bot = Acting::start(config(), |cx| async move {
        let deltas = pieces(&["a", "b", "c"], Duration::from_millis(100));
        pumped(cx.stream().pump(deltas).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "a", false).await;
    line.cut();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    expect(&mut line, "abc", true).await;
    nothing_more(&mut line).await;
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn a_stream_continues_after_a_reconnect() {
    let mut bot = Acting::start(config(), |cx| async move {
        let deltas = pieces(&["a", "b", "c", "d", "e", "f"], Duration::from_millis(600));
        pumped(cx.stream().pump(deltas).await);
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let (_, text, _) = message(&mut line).await;
    assert_eq!(text, "a");
    line.cut();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    let mut last = String::new();
    let mut partials = 0;
    loop {
        let (request, text, is_final) = message(&mut line).await;
        line.answer(&request, json!({})).await;
        assert!(text.starts_with(&last), "{text} after {last}");
        if is_final {
            assert_eq!(text, "abcdef");
            break;
        }
        last = text;
        partials += 1;
    }
    assert!(partials > 0, "nothing came over the new line but the end");
}

#[tokio::test(start_paused = true)]
async fn a_failed_producer_leaves_its_text_and_a_note() {
    let mut bot = Acting::start(config(), |cx| async move {
        let oops = BotError::DatabaseError {
            message: "gone".into(),
        };
        let deltas = stream::iter([Ok("half of"), Err(oops), Ok("ignored")]);
        let error = cx.stream().pump(deltas).await.unwrap_err();
        assert!(
            matches!(&error, PumpError::Producer { text, posted: Ok(()), .. } if text == "half of"),
            "{error:?}"
        );
        Err(error.into())
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "half of", false).await;
    expect(&mut line, "half of\n\n(interrupted)", true).await;
    nothing_more(&mut line).await;
    assert_eq!(bot.errors()[0].name(), "DatabaseError");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_writer_finalizes_its_text() {
    let mut bot = Acting::start(config(), |cx| async move {
        let mut answer = cx.stream();
        answer.push("so");
        sleep(Duration::from_secs(1)).await;
        answer.push(" far");
        Ok(())
    });
    let mut line = bot.mentioned().await;
    // The first one is still unanswered when the writer goes.
    let (first, text, _) = message(&mut line).await;
    assert_eq!(text, "so");
    expect(&mut line, "so far\n\n(interrupted)", true).await;
    line.answer(&first, json!({})).await;
    nothing_more(&mut line).await;
}

#[tokio::test(start_paused = true)]
async fn an_unsent_partial_is_dropped_with_its_writer() {
    let mut bot = Acting::start(config(), |cx| async move {
        cx.stream().push("at once");
        Ok(())
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "at once\n\n(interrupted)", true).await;
    nothing_more(&mut line).await;
}

#[tokio::test(start_paused = true)]
async fn a_dropped_writer_ends_its_text_in_the_room_of_its_unsent_partial() {
    let mut config = config();
    config.client.link.max_commands = 1;
    let mut bot = Acting::start(config, |cx| async move {
        let mut answer = cx.stream();
        cx.client().try_command(|_, _| {})?;
        answer.push("at once");
        // The partial message gets the only room, and nobody looks.
        sleep(Duration::from_secs(1)).await;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "at once\n\n(interrupted)", true).await;
    nothing_more(&mut line).await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_still_ends_its_reply() {
    let mut bot = Acting::start(config(), |cx| async move {
        let mut answer = cx.stream();
        answer.push("oh");
        sleep(Duration::from_secs(1)).await;
        panic!("as planned");
    });
    let mut line = bot.mentioned().await;
    expect(&mut line, "oh", false).await;
    expect(&mut line, "oh\n\n(interrupted)", true).await;
    nothing_more(&mut line).await;
}

/// Says something and never comes to an end.
async fn endless(cx: Context) -> Result<(), BotError> {
    let deltas = pieces(&["begun"], Duration::ZERO).chain(stream::pending());
    pumped(cx.stream().pump(deltas).await);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_aborted_handler_still_ends_its_reply() {
    let mut bot = Acting::start(config(), endless);
    let mut line = bot.mentioned().await;
    expect(&mut line, "begun", false).await;
    bot.shut_down();
    expect(&mut line, "begun\n\n(interrupted)", true).await;
    assert!(
        line.try_request().await.is_none(),
        "the line was not closed"
    );
    assert_eq!(bot.task.await.unwrap().unwrap().aborted, 1);
}

#[tokio::test(start_paused = true)]
async fn the_connections_message_limit_applies_to_streamed_text() {
    let mut config = config();
    config.client.limits.max_message_bytes = 1024;
    let mut bot = Acting::start(config, |cx| async move {
        let mut answer = cx.stream();
        // Escaped, each of them takes two bytes.
        answer.set(&"\"".repeat(1000));
        answer.finish().await?;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    for is_final in [false, true] {
        let (request, text, last) = message(&mut line).await;
        assert_eq!(last, is_final);
        assert!(text.len() > 300, "{}", text.len());
        line.answer(&request, json!({})).await;
    }
    tokio::task::yield_now().await;
    nothing_more(&mut line).await;
    assert_eq!(bot.errors().len(), 1);
}
