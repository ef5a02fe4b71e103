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
            Request,
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
            TooLong,
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
        (400, "'messages' must be shorter than 8193 tokens"),
        (
            400,
            "the conversation does not fit the model's window of 8192 tokens",
        ),
        (400, "输入长度超过最大限制 8192 tokens"),
        (400, "Prompt 超长"),
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
        (413, "Request Entity Too Large", TooLong),
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
