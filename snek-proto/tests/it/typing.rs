//! Typing indicators of a bot against a scripted server. Paused clock.

use std::collections::HashSet;
use std::time::Duration;

use snek_proto::bot::BotConfig;
use snek_proto::color::is_html_color;
use snek_proto::error::BotError;
use tokio::time::{Instant, sleep, timeout};

use crate::acting::{Acting, config};
use crate::scripted::Peer;

const SECOND: Duration = Duration::from_secs(1);

/// The colours shown in the channel within this time. Other requests are answered.
async fn colors(line: &mut Peer, within: Duration) -> Vec<String> {
    let mut colors = Vec::new();
    let end = Instant::now() + within;
    while let Ok(request) = tokio::time::timeout_at(end, line.request()).await {
        if request.method == "set_typing" {
            assert_eq!(request.args[0], "ch1");
            colors.push(request.args[1].as_str().unwrap().to_owned());
        } else {
            line.answer(&request, serde_json::json!({})).await;
        }
    }
    colors
}

#[tokio::test(start_paused = true)]
async fn typing_is_sent_at_once_and_every_second_in_a_new_color() {
    let mut bot = Acting::start(config(), |cx| async move {
        let typing = cx.typing();
        sleep(SECOND * 10 + SECOND / 2).await;
        drop(typing);
        sleep(SECOND * 100).await;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let first = colors(&mut line, SECOND / 2).await;
    assert_eq!(first.len(), 1);
    let colors = colors(&mut line, SECOND * 60).await;
    assert_eq!(colors.len(), 10);
    assert!(colors.iter().all(|color| is_html_color(color)));
    let different: HashSet<_> = colors.iter().collect();
    assert!(different.len() > 5, "{colors:?}");
}

#[tokio::test(start_paused = true)]
async fn typing_has_the_requested_or_a_bright_color() {
    let mut bot = Acting::start(config(), |cx| async move {
        cx.set_typing(Some("#010203")).await?;
        cx.set_typing(None).await?;
        cx.set_typing(Some("red")).await
    });
    let mut line = bot.mentioned().await;
    let colors = colors(&mut line, SECOND * 5).await;
    assert_eq!((colors.len(), &*colors[0]), (2, "#010203"));
    assert!(is_html_color(&colors[1]) && colors[1] != "#010203");
    let errors = bot.errors();
    assert!(
        matches!(&errors[..], [BotError::ValidationError { what, .. }] if what == "color"),
        "{errors:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn typing_lasts_as_long_as_its_guard() {
    let mut bot = Acting::start(config(), |cx| async move {
        let answer = cx.typing().during(async {
            sleep(SECOND * 3 + SECOND / 2).await;
            "thought"
        });
        cx.reply(answer.await).await?;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    assert_eq!(colors(&mut line, SECOND * 30).await.len(), 4);
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn two_handlers_in_one_channel_share_typing() {
    let mut bot = Acting::start(config(), |cx| async move {
        cx.typing().during(sleep(SECOND * 3 + SECOND / 2)).await;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    line.send_message("ch1", "ann", "@MyBot").await;
    assert_eq!(colors(&mut line, SECOND * 30).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn typing_ends_with_a_panicking_handler() {
    let mut bot = Acting::start(config(), |cx| async move {
        let _typing = cx.typing();
        sleep(SECOND * 2 + SECOND / 2).await;
        panic!("as planned");
    });
    let mut line = bot.mentioned().await;
    assert_eq!(colors(&mut line, SECOND * 30).await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn typing_ends_with_an_aborted_handler() {
    let mut bot = Acting::start(config(), |cx| async move {
        let _typing = cx.typing();
        std::future::pending().await
    });
    let mut line = bot.mentioned().await;
    assert_eq!(colors(&mut line, SECOND / 2).await.len(), 1);
    bot.shut_down();
    let mut more = 0;
    while let Some(request) = line.try_request().await {
        assert_eq!(request.method, "set_typing");
        more += 1;
    }
    assert_eq!(more, 5);
    assert_eq!(bot.task.await.unwrap().unwrap().aborted, 1);
}

#[tokio::test(start_paused = true)]
async fn typing_survives_a_reconnect() {
    let mut bot = Acting::start(config(), |cx| async move {
        cx.typing().during(sleep(SECOND * 10)).await;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    assert_eq!(colors(&mut line, SECOND / 2).await.len(), 1);
    line.cut();
    let mut line = Peer::logged_in(&mut bot.listener).await;
    let after = colors(&mut line, SECOND * 30).await.len();
    assert!((7..=9).contains(&after), "{after}");
    assert_eq!(bot.errors(), []);
}

#[tokio::test(start_paused = true)]
async fn the_typing_interval_is_configurable_and_not_zero() {
    let config = BotConfig {
        typing_interval: Duration::ZERO,
        ..config()
    };
    let mut bot = Acting::start(config, |cx| async move {
        cx.typing().during(sleep(SECOND)).await;
        Ok(())
    });
    let mut line = bot.mentioned().await;
    let shown = timeout(SECOND * 5, colors(&mut line, SECOND * 3)).await;
    assert!((15..=21).contains(&shown.unwrap().len()));
}
