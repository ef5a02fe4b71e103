//! What each provider says, and what it means.

use super::*;

fn of(status: u16, body: &str) -> Refusal {
    Report::read(body).refusal((status != 200).then_some(status))
}

#[test]
fn a_provider_is_quoted_from_any_form_of_error() {
    for (body, words) in [
        (r#"{"error":{"message":"no key"}}"#, "no key"),
        (r#"[{"error":{"message":"no key"}}]"#, "no key"),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "Overloaded",
        ),
        (r#"{"error":"no key"}"#, "no key"),
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        (
            r#"{"detail":[{"loc":["body","tools"],"msg":"Field required"}]}"#,
            "Field required",
        ),
        (
            r#"{"object":"error","message":"too long","code":400}"#,
            "too long",
        ),
        (r#"{"type":"error","code":"x","message":"no"}"#, "no"),
        (
            r#"{"object":"error","message":{"detail":[{"loc":["body"],"msg":"no such role"}]}}"#,
            "no such role",
        ),
        (r#"{"message":["too long"]}"#, "too long"),
        (
            r#"{"success":false,"errors":[{"code":10000,"message":"no key"}]}"#,
            "no key",
        ),
        (
            r#"{"base_resp":{"status_code":1004,"status_msg":"no key"}}"#,
            "no key",
        ),
        (
            r#"{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"no tools\"}}"}}}"#,
            "no tools",
        ),
        (
            r#"{"error":{"message":"flagged","metadata":{"provider_name":"P"}}}"#,
            "flagged",
        ),
        (r#"{"Message":"no key"}"#, "no key"),
        (
            r#"{"type":"about:blank","title":"no key","status":401}"#,
            "no key",
        ),
        (
            r#"{"fault":{"faultstring":"no key","detail":{"errorcode":"x"}}}"#,
            "no key",
        ),
        (r#"{"error":true,"reason":"no key"}"#, "no key"),
        (
            r#"{"error":"invalid_token","error_description":"no key"}"#,
            "no key",
        ),
        (r#"{"errors":{"model":["no model"]}}"#, "no model"),
        (r#"{"error_code":17,"error_msg":"no key"}"#, "no key"),
        (r#"{"error":{"innererror":{"message":"no key"}}}"#, "no key"),
        (
            "<Error><Code>x</Code><Message>no key</Message></Error>",
            "no key",
        ),
        ("  plain words\n", "plain words"),
        ("bad\0 \u{1b}[31mkey", "bad [31mkey"),
        ("<html>\n<b>502</b></html>", ""),
        (r#"{"code":7}"#, ""),
        ("{\"error\":", ""),
        ("", ""),
        ("\0", ""),
    ] {
        assert_eq!(Report::read(body).message, words, "{body}");
    }
}

#[test]
fn each_provider_is_understood_in_its_own_words() {
    let lines = include_str!("cases.txt").lines();
    for line in lines.filter(|it| it.starts_with(char::is_numeric)) {
        let (status, rest) = line.split_once(' ').unwrap();
        let (refusal, body) = rest.split_once(' ').unwrap_or((rest, ""));
        let found = of(status.parse().unwrap(), body);
        assert_eq!(format!("{found:?}"), refusal, "{line}");
    }
}
