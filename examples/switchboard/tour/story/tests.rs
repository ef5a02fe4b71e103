//! What the story does when something in it goes wrong.

use super::*;

#[tokio::test]
async fn a_poem_without_red_roses_is_an_error_and_not_a_good_end() {
    let screen = Screen::new(std::io::sink(), false);
    let told = tell(&screen, "Tulips are white.\n").await;
    let error = format!("{:?}", told.unwrap_err());
    assert!(error.contains("what Zoe reads"), "{error}");
}
