//! No spelling of a secret is shown, and nothing else is hidden.

use switchboard_wire::secrets::{frame, head, is_secret, within};

/// Frames of all protocols, with the secret `hunter2`.
const FRAMES: &[&str] = &[
    r#"{"method":"login","args":["ann","hunter2"],"kwargs":{},"callId":"1"}"#,
    r#"{"method":"log\u0069n","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"m\u0065thod":"login","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"method":"Login","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"mehtod":"login","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"method":1,"args":["hunter2"],"callId":"1"}"#,
    r#"{"method":"login","args":["hunter2"],"callId":"1"}"#,
    r#"{"method":"login","args":[],"kwargs":{"username":"ann","password":"hunter2"}}"#,
    r#"{"method":"register","args":["ann@x","hunter2","Ann"],"callId":"1"}"#,
    r#"{"method":"register","args":{"a":"hunter2"},"callId":"1"}"#,
    r#"{"method":"set_password","args":["hunter2"],"callId":"1"}"#,
    r#"{"method":"set_password","args":["hunter2","new"],"callId":"1"}"#,
    r#"{"event":"message","kwargs":{"password":"hunter2"}}"#,
    r#"{"callId":"1","data":{"password":"hunter2"}}"#,
    r#"{"token":"hunter2"}"#,
    r#"{"Token":"hunter2","id":"1","method":"ping"}"#,
    r#"{"tok\u0065n":"hunter2"}"#,
    r#"{"token":["hunter2"]}"#,
    r#"{"token":{"value":"hunter2"}}"#,
    r#"{"id":"1","method":"x","params":{"a":[{"token":"hunter2"}]}}"#,
    r#"{"id":"1","method":"x","params":{"api_key":"hunter2"}}"#,
    r#"{"id":"1","method":"x","params":{"apiKey":"hunter2"}}"#,
    r#"{"id":"1","method":"x","params":{"API-KEY":"hunter2"}}"#,
    r#"{"id":"1","method":"x","params":{"x-api-key":"hunter2"}}"#,
    r#"{"access_token":"hunter2"}"#,
    r#"{"accessToken":"hunter2"}"#,
    r#"{"refresh_token":"hunter2"}"#,
    r#"{"private_key":"hunter2"}"#,
    r#"{"privateKey":"hunter2"}"#,
    r#"{"secret_key":"hunter2"}"#,
    r#"{"client_secret":"hunter2"}"#,
    r#"{"aws_secret_access_key":"hunter2"}"#,
    r#"{"passwd":"hunter2"}"#,
    r#"{"pwd":"hunter2"}"#,
    r#"{"passphrase":"hunter2"}"#,
    r#"{"userPassword":"hunter2"}"#,
    r#"{"db_password":"hunter2"}"#,
    r#"{"authorization":"Bearer hunter2"}"#,
    r#"{"Authorization":"Basic hunter2"}"#,
    r#"{"headers":{"authorization":"hunter2"}}"#,
    r#"{"auth":"hunter2"}"#,
    r#"{"cookie":"a=hunter2"}"#,
    r#"{"jwt":"hunter2"}"#,
    r#"{"bearer":"hunter2"}"#,
    r#"{"credentials":{"name":"ann","value":"hunter2"}}"#,
    r#"{"otp":"hunter2"}"#,
    r#"{"webhook_secret":"hunter2"}"#,
    r#"{"type":"CONNECT","payload":{"invite_code":"hunter2"},"signature":"hunter2"}"#,
    r#"{"type":"X","a":[{"b":{"\u0073ignature" : "hunter2"}}]}"#,
    r#"{"type":"ERROR","message":"no","received":"{signature: hunter2"}"#,
    r#"{"type":"X","payment":["hunter2"]}"#,
    r#"{"type":"ONBOARD_SUBMIT","payload":{"payment":{"id":"hunter2"}}}"#,
    r#"{"type":"chat.start","id":"rpc_1","payload":{"request":{"apiKey":"hunter2"}}}"#,
    r#"{"arguments":"{\"password\":\"hunter2\"}"}"#,
    r#"{"content":"[{\"api_key\":\"hunter2\"}]"}"#,
    r#"{"url":"ws://ann:hunter2@h/ws"}"#,
    r#"{"url":"wss://h/ws?token=hunter2"}"#,
    r#"{"url":"/ws?a=1&access_token=hunter2"}"#,
    r#"{"text":"curl -H 'Authorization: Bearer hunter2' x"}"#,
    r#"{"text":"set PASSWORD=hunter2 and go"}"#,
    r#"{"text":"API_KEY=\"hunter2\""}"#,
    r#"{"text":"the key is sk-hunter2hunter2hunter2"}"#,
    r#"{"text":"ghp_hunter2hunter2hunter2hunter2"}"#,
    r#"{"text":"eyJhunter2abcd.eyJhunter2abcd.c2ln"}"#,
    r#"{"method":"login","args":["ann","hunter2"#,
    r#"hunter2"}"#,
    r#"{"token":"hunter2",}"#,
];

#[test]
fn no_frame_shows_a_secret_whatever_protocol_it_is_of() {
    for text in FRAMES {
        let shown = frame(text);
        assert!(!shown.contains("hunter2"), "{text}: {shown}");
        assert!(
            shown.starts_with("(not shown")
                || serde_json::from_str::<serde_json::Value>(&shown).is_ok(),
            "{shown}"
        );
    }
}

#[test]
fn what_is_no_secret_stays() {
    for text in [
        r#"{"id":"1","event":"usage","data":{"input_tokens":3,"output_tokens":4}}"#,
        r#"{"id":"1","event":"text","data":"a \"token\": \u0041 signature, my login"}"#,
        r#"{"method":"send_message","args":["c","my password is not here",true],"callId":"1"}"#,
        r#"{"type":"X","max_tokens":5,"token_type":"none","token_budget":9,"has_password":true}"#,
        r#"{"key":"value","keys":["a"],"keyboard":"de","public_key":"abc","monkey":"x"}"#,
        r#"{"error":"auth_failed","code":4001}"#,
        r#"{"author":"ann","authority":"h","session_id":"s1","nonce":"n","hash":"h"}"#,
        r#"{"type":"CONNECTED","session_id":"550e8400","status":"new"}"#,
        r#"{"type":"ONBOARD_REQUIRED","methods":["invite_code","payment"]}"#,
        r#"{"text":"the bearer of bad news, pin it, a=b&c=d, 1+1=2"}"#,
        r#"{"password":null,"token":"","secret":false}"#,
        r#"{"url":"https://h/a?b=c#d","path":"src/auth/token.rs"}"#,
        r#"{"received":true,"type":"x"}"#,
    ] {
        assert_eq!(frame(text), *text);
    }
    for name in [
        "tokens",
        "input_tokens",
        "key",
        "tokenizer",
        "passenger",
        "compass",
        "author",
        "design",
        "idempotency_key",
    ] {
        assert!(!is_secret(name), "{name}");
    }
}

#[test]
fn no_head_shows_a_secret() {
    for text in [
        "GET /?auth=hunter2 HTTP/1.1\r\n\r\n",
        "GET /?a=1&sig=hunter2 HTTP/1.1\r\n\r\n",
        "GET /v1/ws?api_key=hunter2 HTTP/1.1\r\n\r\n",
        "GET /?t%6fken=hunter2 HTTP/1.1\r\n\r\n",
        "GET /x?a=1;token=hunter2 HTTP/1.1\r\n\r\n",
        "GET /x#access_token=hunter2 HTTP/1.1\r\n\r\n",
        "GET http://u:hunter2@h/ HTTP/1.1\r\n\r\n",
        "GET //u:hunt/hunter2@h HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\nAuthorization: hunter2\n\n",
        "GET / HTTP/1.1\r\nAuthorization : Bearer hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nAuthorization: Bearer\r\n hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Auth-Token: hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nApi-Key: hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Amz-Signature: hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nCookie: s=hunter2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nSet-Cookie: s=hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nhunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nReferer: http://h/?token=hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: Bearer.hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: a, x.bearer.hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: realtime, openai-insecure-api-key.hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: token-hunter2\r\n\r\n",
        "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: chat, hunter2abcdefghijklmnop9\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /v1?token=hunter2\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: wss://u:hunter2@h:1/\r\n\r\n",
    ] {
        let shown = head(text);
        assert!(
            !shown.contains("hunter2") && shown.contains("***"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), text.lines().count(), "{shown}");
    }
    for text in [
        "GET /ws?a=1&b=2#c HTTP/1.1\r\nHost: u@h\r\nSec-WebSocket-Key: x==\r\nReferer: http://h/a?b\r\n\
         Content-Type: text/html; charset=utf-8\r\nX-Author: ann\r\n\r\n",
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n folded\r\n\r\n",
        "GET /search?keyword=x&encoding=y HTTP/1.1\r\nIdempotency-Key: 7\r\nSec-WebSocket-Protocol: acolyte.v1\r\n\r\n",
    ] {
        assert_eq!(head(text), *text);
    }
    assert_eq!(
        within("ws://u:hunter2@h/ws?token=hunter2&a=1"),
        "ws://***@h/ws?token=***&a=1"
    );
}
