//! [`Refusal`]: why a provider does not answer, read from its status and its text.

use std::borrow::Cow;

use serde_json::Value;

use super::error::excerpt;

/// The reason why a provider does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The key is wrong, or there is none.
    Key,
    /// The key does not allow this.
    Permission,
    /// The provider does not have the model.
    Model,
    /// The provider has the model through another interface only, such as OpenAI's Responses.
    Interface,
    /// There is nothing at the address.
    Address,
    /// Too many requests for now.
    RateLimit,
    /// What was paid for is used up; waiting does not help.
    Quota,
    /// The provider has too much to do.
    Overloaded,
    /// The provider has failed, or is not there for the moment.
    Unavailable,
    /// The conversation is longer than the model's context.
    TooLong,
    /// The request has too many bytes.
    TooLarge,
    /// Something else in the request.
    Request,
    /// An error in an answer, without a known reason.
    Broken,
}

/// What a provider says of an error.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Its text, on one line and cut to a length; empty if there is none for people.
    pub(super) message: String,
    /// Its words for programs, in lower case: a type and a code.
    words: String,
}

impl Report {
    /// Reads the body of an error, or an event that reports one: the first [text for people](text_in). JSON
    /// without one and pages of HTML are not text.
    pub(super) fn read(body: &str) -> Self {
        let body = body.trim();
        let Ok(value) = rpc_core::json::from_slice::<Value>(body.as_bytes()) else {
            let in_xml = || Some(body.split_once("<Message>")?.1.split_once("</Message>")?.0);
            let is_text = !body.starts_with(['<', '{', '[']);
            let message = if is_text { Some(body) } else { in_xml() };
            return Self {
                message: excerpt(message.unwrap_or_default()),
                words: String::new(),
            };
        };
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").filter(|error| !error.is_null());
        let message = text_in(value).unwrap_or_default();
        let error = error.filter(|error| error.is_object()).unwrap_or(value);
        let words = ["type", "code"].map(|name| error.get(name).and_then(Value::as_str));
        let words: Vec<&str> = words.into_iter().flatten().collect();
        Self {
            message: excerpt(&message),
            words: words.join(" ").to_lowercase(),
        }
    }

    /// Returns the reason. `status` is that of the answer, unless the error came within one.
    pub(super) fn refusal(&self, status: Option<u16>) -> Refusal {
        let says = self.message.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| self.words.contains(word));
        let says_one = |texts: &[&str]| texts.iter().any(|text| says.contains(text));
        if has(&["insufficient_quota", "billing"])
            || says_one(&["credit balance", "insufficient_quota"])
            || status == Some(402)
        {
            return Refusal::Quota;
        }
        if has(&["context_length", "exceed_context"])
            || matches!(status, None | Some(400 | 413 | 422 | 500)) && says_one(&TOO_LONG)
        {
            return Refusal::TooLong;
        }
        // A status says more than most words, except that some servers report a model as a request.
        match status {
            Some(401) => return Refusal::Key,
            Some(403) => return Refusal::Permission,
            Some(413) => return Refusal::TooLarge,
            Some(429) => return Refusal::RateLimit,
            Some(529) => return Refusal::Overloaded,
            Some(300..=399) => return Refusal::Address,
            _ => {}
        }
        if says_one(&["v1/responses", "responses api", "not a chat model"]) {
            return Refusal::Interface;
        }
        let lacks_model = has(&["model_not_found"])
            || says.contains("model") && says_one(&["not found", "does not exist"])
            || has(&["not_found"]) && says.contains("model");
        if lacks_model {
            return Refusal::Model;
        }
        match status {
            Some(404 | 405) => Refusal::Address,
            Some(501) => Refusal::Request,
            Some(500..) => Refusal::Unavailable,
            _ if has(&["overloaded", "server_is_overloaded"]) => Refusal::Overloaded,
            _ if has(&["rate_limit"]) => Refusal::RateLimit,
            _ if has(&["authentication", "invalid_api_key"]) => Refusal::Key,
            _ if has(&["permission"]) => Refusal::Permission,
            _ if has(&["request_too_large"]) => Refusal::TooLarge,
            Some(408) => Refusal::Unavailable,
            Some(_) => Refusal::Request,
            None if has(&["invalid_request", "invalid_prompt"]) => Refusal::Request,
            None => Refusal::Broken,
        }
    }
}

/// The members in which servers have the text of an error, in lower case, one below the other in any order. What a
/// provider behind the provider says comes first.
const TEXTS: [&str; 17] = [
    "error_description",
    "error",
    "metadata",
    "raw",
    "message",
    "faultstring",
    "detail",
    "msg",
    "errors",
    "base_resp",
    "status_msg",
    "error_msg",
    "innererror",
    "fault",
    "reason",
    "title",
    "statusmessage",
];

/// Returns the first text for people in a report of an error.
fn text_in(report: &Value) -> Option<Cow<'_, str>> {
    match report {
        Value::String(text) if text.trim().is_empty() => None,
        // A report in a report.
        Value::String(text) if text.starts_with(['{', '[']) => {
            let inner = serde_json::from_str(text).ok();
            let told = inner.and_then(|inner| Some(text_in(&inner)?.into_owned().into()));
            told.or_else(|| Some(text.into()))
        }
        Value::String(text) => Some(text.into()),
        Value::Array(list) => list.iter().find_map(text_in),
        Value::Object(members) => TEXTS.iter().find_map(|text| {
            let mut members = members.iter();
            let (_, told) = members.find(|(name, _)| name.eq_ignore_ascii_case(text))?;
            // Those of a form have the names of its fields.
            let fields = told
                .as_object()
                .filter(|_| ["errors", "detail"].contains(text));
            text_in(told).or_else(|| fields?.values().find_map(text_in))
        }),
        _ => None,
    }
}

/// How servers say that a conversation is too long for the model: OpenAI, vLLM, Anthropic,
/// llama.cpp and others.
const TOO_LONG: [&str; 9] = [
    "context length",
    "context window",
    "context limit",
    "context size",
    "maximum model length",
    "prompt is too long",
    "input is too long",
    "prompt too long",
    "reduce the length of the messages",
];

impl Refusal {
    /// Returns whether the same request may succeed after a while.
    pub const fn passes(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Unavailable)
    }
}

#[cfg(test)]
mod tests {
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
        let long = Report::read(&"ß".repeat(5000)).message;
        assert_eq!(long.chars().count(), 301);
    }

    #[test]
    fn each_provider_is_understood() {
        use Refusal::*;
        for (status, body, expected) in [
            // OpenAI
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
                Key,
            ),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist or you do not have access to it.","code":"model_not_found"}}"#,
                Model,
            ),
            (
                429,
                r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#,
                RateLimit,
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Quota,
            ),
            (
                400,
                r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
                TooLong,
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported value: 'temperature'","code":"unsupported_value"}}"#,
                Request,
            ),
            (
                404,
                r#"{"error":{"message":"This model is only supported in v1/responses and not in v1/chat/completions."}}"#,
                Interface,
            ),
            (
                200,
                r#"{"type":"error","code":"server_error","message":"oh"}"#,
                Broken,
            ),
            // Anthropic
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#,
                TooLong,
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}"#,
                Quota,
            ),
            (
                404,
                r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
                Model,
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                TooLarge,
            ),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
            ),
            (
                200,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
            ),
            // Ollama
            (
                404,
                r#"{"error":"model \"x\" not found, try pulling it first"}"#,
                Model,
            ),
            (
                400,
                r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#,
                Request,
            ),
            (
                200,
                r#"{"error":"an error was encountered while running the model: CUDA error"}"#,
                Broken,
            ),
            // vLLM
            (
                400,
                r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 9000 tokens","type":"BadRequestError","code":400}"#,
                TooLong,
            ),
            (
                404,
                r#"{"error":{"message":"The model `x` does not exist.","type":"NotFoundError","code":404}}"#,
                Model,
            ),
            (401, r#"{"error":"Unauthorized"}"#, Key),
            // Whatever precedes them
            (404, "404 page not found", Address),
            (307, "", Address),
            (403, "<html>", Permission),
            (500, "<html>", Unavailable),
            (503, "", Unavailable),
            (501, "", Request),
        ] {
            assert_eq!(of(status, body), expected, "{status} {body}");
        }
    }
}
