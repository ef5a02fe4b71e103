//! How answers end.

use crate::model::Finish;

#[test]
fn reasons_of_the_end_are_made_of_a_few_words() {
    for (reason, finish) in [
        ("MAX_TOKENS", Finish::Length),
        ("model_length", Finish::Length),
        ("max-output-tokens", Finish::Length),
        ("TOOL_CALL", Finish::ToolCalls),
        ("SAFETY", Finish::ContentFilter),
        ("PROHIBITED_CONTENT", Finish::ContentFilter),
        ("content_filtered", Finish::ContentFilter),
        ("ERROR_TOXIC", Finish::ContentFilter),
        ("eos", Finish::Other("eos".to_owned())),
    ] {
        assert_eq!(Finish::from(reason), finish);
    }
}

#[test]
fn an_unknown_reason_is_told_unless_it_speaks_of_an_end() {
    for reason in [
        "eos",
        "EOS_TOKEN",
        "completed",
        "end",
        "none",
        "load",
        "stop_token",
    ] {
        assert_eq!(Finish::from(reason).shortfall(), None, "{reason}");
    }
    let notice = Finish::from("OTHER").shortfall().unwrap();
    assert_eq!(
        notice,
        "the model has stopped early (OTHER): ask it to go on"
    );
}
