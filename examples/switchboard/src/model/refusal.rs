//! [`Refusal`]: why a provider does not answer, read from its status and its text.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use regex::Regex;
use serde_json::Value;

use super::answer::text_of;

use super::error::one_line;
use super::http::wait;

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
    /// Its text, on one line; empty if there is none for people.
    pub(super) message: String,
    /// Its words for programs, in lower case: a type and a code.
    words: String,
    /// The members of the request that it names for programs, each with its path.
    pub(super) members: Vec<String>,
    /// How long it asks to wait.
    pub(super) wait: Option<Duration>,
}

/// The members in which servers have the text of an error, in lower case, one below the other in any order. What a
/// provider behind the provider says comes first.
const TEXTS: &str = "error_description error metadata raw message faultstring detail msg errors base_resp status_msg \
    error_msg innererror fault reason title statusmessage";

/// How servers speak of what is sent to a model.
const SIZE: &str = concat!(
    r"\b(?:tokens?|context|prompts?|conversation)\b|\b(?:input|messages?|sequence)s?\b.{0,20}\b(?:length|too long)",
    r"|\blength of the (?:input|messages)|\brequest is too long",
);
/// How they say that it is more than there may be.
const MORE: &str = concat!(
    r"exceed|\btoo (?:long|large|many|big)|(?:longer|larger|greater|less) than|at most|reduce|shorten|overflow",
    r"|maximum|\bmax\b|limit|range|[<>]|context (?:size|length|window)",
);
const BOUND: &str = r"[0-9]|limit|maximum|\bmax\b|window|length|size|too long";
/// How they speak of what may be sent in a time.
const RATE: &str = r"\bper[ _-]?(?:sec|min|hour|day)|rate.?limit|\b[tr]p[smd]\b|quota|too many requests|\bthrottl|slow down";
/// How they speak of what no wait brings back.
const SPENT: &str = concat!(
    r"credit balance|insufficient.(?:quota|balance|funds|credit)|current balance|recharge|available credits",
    r"|spending limit|billing|payment",
);

impl Report {
    /// Reads the body of an error, or an event that reports one: the first [text for people](text_in). JSON
    /// without one and pages of HTML are not text.
    pub(super) fn read(body: &str) -> Self {
        let body = body.trim();
        let Ok(value) = rpc_core::json::from_slice::<Value>(body.as_bytes()) else {
            let in_xml = || Some(body.split_once("<Message>")?.1.split_once("</Message>")?.0);
            let is_text = !body.starts_with(['<', '{', '[']);
            let message = if is_text { Some(body) } else { in_xml() };
            return Self::said(one_line(message.unwrap_or_default()));
        };
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").filter(|error| error.is_object());
        let mut report = Self::said(one_line(&text_in(value).unwrap_or_default()));
        let word = |name| error.unwrap_or(value).get(name)?.as_str();
        let words: Vec<&str> = ["type", "code"].into_iter().filter_map(word).collect();
        report.words = words.join(" ").to_lowercase();
        report.walk(value);
        report
    }

    /// Creates the report of these words.
    pub(super) fn said(message: String) -> Self {
        let wait = wait::said(&message);
        Self {
            message,
            wait,
            ..Self::default()
        }
    }

    /// Reads what is meant for programs, wherever it is.
    fn walk(&mut self, value: &Value) {
        for value in value.as_array().into_iter().flatten() {
            self.walk(value);
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("param", Value::String(member)) => self.members.push(member.clone()),
                ("loc", Value::Array(path)) => {
                    let path: Vec<_> = path.iter().map(text_of).collect();
                    self.members.push(path.join("."));
                }
                (_, Value::Number(_) | Value::String(_)) => {
                    let wait = wait::named(name, &text_of(value), SystemTime::now());
                    self.wait = self.wait.max(wait);
                }
                _ => self.walk(value),
            }
        }
    }

    /// Returns the reason. `status` is that of the answer, unless the error came within one.
    pub(super) fn refusal(&self, status: Option<u16>) -> Refusal {
        let says = self.message.to_lowercase();
        let has = |words: &str| finds(words, &self.words);
        let is_spent =
            || self.wait.is_none() && finds(SPENT, &says) && !finds(r"\bper[ _-]min", &says);
        // A status says more than most words, except that some servers report a model as a request.
        match status {
            Some(402) => Refusal::Quota,
            _ if has("insufficient_quota|billing") => Refusal::Quota,
            None | Some(400 | 403 | 429) if is_spent() => Refusal::Quota,
            None | Some(400 | 413 | 422 | 429 | 500..) if self.is_too_long(&says, status) => {
                Refusal::TooLong
            }
            Some(401) => Refusal::Key,
            Some(403) => Refusal::Permission,
            Some(413) => Refusal::TooLarge,
            Some(429) => Refusal::RateLimit,
            Some(529) => Refusal::Overloaded,
            Some(300..=399) => Refusal::Address,
            _ if finds("v1/responses|responses api|not a chat model", &says) => Refusal::Interface,
            _ if has("model_not_found")
                || says.contains("model") && finds("not found|does not exist", &says)
                || says.contains("model") && has("not_found") =>
            {
                Refusal::Model
            }
            // A provider that is there has a sentence of its own.
            Some(404 | 405)
                if says.is_empty()
                    || finds(r"not (?:found|allowed)|\b(?:routes?|url|path)\b", &says) =>
            {
                Refusal::Address
            }
            Some(501 | 505) => Refusal::Request,
            Some(408 | 409 | 425 | 500..) => Refusal::Unavailable,
            _ if has("overloaded") => Refusal::Overloaded,
            _ if has("rate_limit") => Refusal::RateLimit,
            _ if has("authentication|invalid_api_key") => Refusal::Key,
            _ if has("permission") => Refusal::Permission,
            _ if has("request_too_large") => Refusal::TooLarge,
            None if !has("invalid_request|invalid_prompt") => Refusal::Broken,
            _ => Refusal::Request,
        }
    }

    /// Whether this speaks of a conversation that is longer than the model takes.
    fn is_too_long(&self, says: &str, status: Option<u16>) -> bool {
        if finds("context_length|exceed_context|tokens_exceeded", &self.words) {
            return true;
        }
        // Without the names of members, such as `max_tokens` and `messages.0.content`.
        let is_word = |word: &&str| !word.trim_end_matches(['.', ':']).contains(['_', '[', '.']);
        let words: Vec<&str> = says.split_whitespace().filter(is_word).collect();
        let says = words.join(" ");
        let is = |pattern| finds(pattern, &says);
        // What is larger than all of a minute's tokens does not get smaller with time.
        let is_rate = !is("request too large.*reduce") && (status == Some(429) || is(RATE));
        let is_of_answer =
            is("(?:completion|output) tokens") && !is("context|prompt|input|messages");
        let is_of_files = is(r"\b(?:images?|audio|videos?|files?)\b") && !is("token");
        is(SIZE) && is(MORE) && is(BOUND) && !is_rate && !is_of_answer && !is_of_files
    }
}

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
        Value::Object(members) => TEXTS.split_whitespace().find_map(|text| {
            let mut members = members.iter();
            let (_, told) = members.find(|(name, _)| name.eq_ignore_ascii_case(text))?;
            // Those of a form have the names of its fields.
            let fields = told
                .as_object()
                .filter(|_| ["errors", "detail"].contains(&text));
            text_in(told).or_else(|| fields?.values().find_map(text_in))
        }),
        _ => None,
    }
}

/// Whether a text has something of this form. Errors are rare.
pub(super) fn finds(form: &str, text: &str) -> bool {
    Regex::new(form).is_ok_and(|form| form.is_match(text))
}

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
            (505, "", Request),
            (520, "", Unavailable),
            (409, "", Unavailable),
            (425, "", Unavailable),
            (404, r#"{"detail":"Not Found"}"#, Address),
            (
                404,
                r#"{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)"}}"#,
                Address,
            ),
            (
                404,
                r#"{"error":{"message":"No endpoints found that support tool use. See https://openrouter.ai/docs/routing","code":404}}"#,
                Request,
            ),
        ] {
            assert_eq!(of(status, body), expected, "{status} {body}");
        }
    }

    /// How providers say that a conversation is too long.
    #[test]
    fn too_long_is_understood_in_the_words_of_any_provider() {
        for (status, says) in [
            (
                400,
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
            ),
            (
                400,
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            ),
            (
                400,
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            (
                400,
                "This model's maximum prompt length is 131072 but the request contains 200000 tokens.",
            ),
            (
                400,
                "Invalid request: Your request exceeded model token limit: 8192",
            ),
            (400, "Range of input length should be [1, 30720]"),
            (400, "invalid params, context window exceeds limit (2013)"),
            (
                400,
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            ),
            (
                400,
                "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            ),
            (
                400,
                "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 8252.",
            ),
            (
                400,
                "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens.",
            ),
            (
                400,
                "Prompt has 256468 tokens, but the configured context size is 256000 tokens",
            ),
            (400, "the request is too long: 9000 bytes"),
            (400, "prompt is too long: 208310 tokens > 200000 maximum"),
            (400, "Input is too long for requested model."),
            (
                400,
                "Too many input tokens. Max input tokens: 200000, request input token count: 250000",
            ),
            (
                400,
                "Please reduce the length of the messages or completion.",
            ),
            (
                400,
                "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
            ),
            (
                413,
                "Request too large for model `m` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size and try again.",
            ),
            (
                429,
                "Request too large for m in organization o on tokens per min (TPM): Limit 30000, Requested 42000. The input or output tokens must be reduced in order to run successfully.",
            ),
            (
                422,
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 512 `max_new_tokens`",
            ),
            (
                422,
                "Input validation error: `inputs` must have less than 1024 tokens. Given: 1500",
            ),
            (
                400,
                "The prompt is too long: 140000, model maximum context length: 131071",
            ),
            (
                400,
                "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
            ),
            (500, "the input length exceeds the context length"),
            (
                500,
                "the request exceeds the available context size, try increasing it",
            ),
            (
                413,
                "Error: 5021: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (7968).",
            ),
            (400, "Prompt exceeds max length"),
            (
                400,
                "prompt token count of 130000 exceeds the limit of 128000",
            ),
            (
                400,
                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            ),
            (400, "prompt tokens too long, max 5120"),
            (
                400,
                "Total tokens of image and text exceed max message tokens",
            ),
            (
                400,
                "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens (8000 of text input, 1000 in the output). Please reduce the length of either one.",
            ),
            (400, "Conversation too long: 210000 tokens, at most 200000"),
        ] {
            assert_eq!(of(status, says), Refusal::TooLong, "{says}");
        }
        for (status, body) in [
            (
                400,
                r#"{"error":{"message":"Nope","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"the request is too long","code":"max_tokens_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"Nope","type":"exceed_context_size_error"}}"#,
            ),
        ] {
            assert_eq!(of(status, body), Refusal::TooLong, "{body}");
        }
    }

    #[test]
    fn other_limits_are_no_long_conversation() {
        use Refusal::*;
        for (status, says, expected) in [
            (
                429,
                "Rate limit reached for m in organization o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
                RateLimit,
            ),
            (
                429,
                "Number of request tokens has exceeded your per-minute rate limit",
                RateLimit,
            ),
            (
                429,
                "Too many tokens, please wait before trying again.",
                RateLimit,
            ),
            (
                429,
                "Quota exceeded for generate_content_requests_per_minute per minute",
                RateLimit,
            ),
            (
                429,
                "You exceeded your current quota, please check your plan and billing details. Please retry in 6.1s.",
                RateLimit,
            ),
            (
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                Quota,
            ),
            (
                429,
                "Your account is suspended due to insufficient balance, please recharge",
                Quota,
            ),
            (
                403,
                "Your team has used all available credits or reached its monthly spending limit",
                Quota,
            ),
            (402, "Insufficient Balance", Quota),
            (400, "Rate limit reached: 60000 tokens per min", Request),
            (
                400,
                "max_tokens is too large: 5000. This model supports at most 4096 completion tokens, whereas you provided 5000 completion tokens.",
                Request,
            ),
            (
                400,
                "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for m",
                Request,
            ),
            (
                400,
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                Request,
            ),
            (
                400,
                "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 130",
                Request,
            ),
            (
                400,
                "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40",
                Request,
            ),
            (422, "Input should be less than or equal to 2", Request),
            (
                400,
                "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
                Request,
            ),
            (
                400,
                "At most 1 image(s) may be provided in one prompt.",
                Request,
            ),
            (400, "temperature must be less than 2", Request),
            (413, "Request Entity Too Large", TooLarge),
            (
                401,
                "the security token is longer than the limit of 20",
                Key,
            ),
            (500, "Internal error", Unavailable),
        ] {
            assert_eq!(of(status, says), expected, "{says}");
        }
    }
}
