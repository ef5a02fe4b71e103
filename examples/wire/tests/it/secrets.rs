//! No spelling of a secret is shown, and nothing else is hidden.

use switchboard_wire::secrets::{self, Shown, is_secret};

/// A text without the lengths and the hashes of what is hidden.
fn plain(shown: &str) -> String {
    let mut parts = shown.split("***");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let part = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let (space, rest) = part.split_at(1);
        let (hash, rest) = rest.split_at(4);
        assert!(
            space == " " && u16::from_str_radix(hash, 16).is_ok(),
            "{shown}"
        );
        out = out + "***" + rest;
    }
    out
}

pub(crate) fn frame(text: &str) -> String {
    plain(&secrets::frame(text, &Shown::default()))
}

fn head(text: &str) -> String {
    plain(&secrets::head(text))
}

pub(crate) fn within(text: &str) -> String {
    plain(&secrets::within(text))
}

/// Frames of all protocols, with the secret `hunter2`.
const FRAMES: &[&str] = &[
    r#"{"method":"login","args":["ann","hunter2"],"kwargs":{},"callId":"1"}"#,
    r#"{"method":"log\u0069n","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"m\u0065thod":"login","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"method":"Login","args":["ann","hunter2"],"callId":"1"}"#,
    r#"{"mehtod":"login","args":["ann","hunter2"],"callId":"1"}"#,
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
    r#"{"method":"user.login","args":["ann","hunter2"]}"#,
    r#"{"method":"loginUser","params":["ann","hunter2"]}"#,
    r#"{"method":"register_user","args":["a@b","hunter2"]}"#,
    r#"{"auth":["hunter2"]}"#,
    r#"{"auth":{"type":"bearer","value":"hunter2"}}"#,
    r#"{"auth":{"key":"hunter2"}}"#,
    r#"{"headers":[["X-Api-Key","hunter2"]]}"#,
    r#"{"argv":["curl","-u","ann:hunter2"]}"#,
    r#"{"cmd":"curl -u ann:hunter2 https://h"}"#,
    r#"{"2fa":"hunter2"}"#,
    r#"{"recovery_codes":["hunter2","x"]}"#,
    r#"{"two_factor_code":"hunter2"}"#,
    r#"{"keys":{"openai":"hunter2hunter2"}}"#,
    r#"{"sig":"hunter2hunter2"}"#,
    r#"{"invitation":"hunter2hunter2"}"#,
    r#"{"seed":"hunter2hunter2"}"#,
    r#"{"passwort":"hunter2"}"#,
    r#"{"contraseña":"hunter2"}"#,
    r#"{"mot_de_passe":"hunter2"}"#,
    r#"{"\u043f\u0430\u0440\u043e\u043b\u044c":"hunter2"}"#,
    r#"{"密码":"hunter2"}"#,
    r#"{"ｐａｓｓｗｏｒｄ":"hunter2"}"#,
    r#"{"text":"<password>hunter2</password>"}"#,
    r#"{"text":"my password is hunter2"}"#,
    r#"{"text":"machine h login ann password hunter2hunter2"}"#,
    r#"{"text":"invalid api key: hunter2"}"#,
    r#"{"text":"Incorrect API key provided: hunter2"}"#,
    r#"{"text":"bad token 'hunter2hunter2'"}"#,
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

/// Names of secrets, in words.
const SECRETS: &[&str] = &[
    "password",
    "pass word",
    "passwd",
    "pwd",
    "user pass",
    "pass phrase",
    "api key",
    "signing key",
    "access token",
    "refresh token",
    "id token",
    "bot token",
    "client secret",
    "secret access key",
    "private key",
    "auth token",
    "authorization",
    "auth header",
    "token value",
    "csrf token",
    "session token",
    "jwt",
    "otp code",
    "verification code",
    "invite code",
    "seed phrase",
    "mnemonic",
    "card cvv",
    "credentials",
    "set cookie",
    "cookie2",
    "password 1",
    "webhook signature",
    "client assertion",
    "psk",
    "pin",
];

/// Names that only look like it.
const HARMLESS: &[&str] = &[
    "tokens",
    "max tokens",
    "token count",
    "total tokens",
    "tokens per second",
    "token type",
    "token limit",
    "token budget",
    "token expires at",
    "token url",
    "password length",
    "password hint",
    "has password",
    "keyboard",
    "key",
    "key id",
    "public key",
    "primary key",
    "cache key",
    "sort key",
    "monkey",
    "compass",
    "passenger",
    "author",
    "authority",
    "auth type",
    "auth failed",
    "secretary",
    "pinned",
    "spin",
    "cookies enabled",
    "design",
    "code",
    "status code",
    "error code",
    "tokenizer",
    "session id",
    "nonce",
    "idempotency key",
    "passwordless",
    "signal",
];

/// Returns a name in the ways in which programs write it.
fn spellings(name: &str) -> Vec<String> {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    let pascal: String = name.split(' ').map(capital).collect();
    let camel = pascal[..1].to_lowercase() + &pascal[1..];
    let snake = name.replace(' ', "_");
    [
        snake.to_uppercase(),
        name.replace(' ', "-"),
        name.replace(' ', "."),
        snake,
        pascal,
        camel,
    ]
    .into()
}

/// Returns frames and texts in which the value of a name stands.
fn places(name: &str, value: &str) -> [String; 12] {
    let quoted = |text: String| serde_json::to_string(&text).unwrap();
    let object = format!(r#"{{"{name}":"{value}"}}"#);
    [
        object.clone(),
        format!(r#"{{"id":"1","method":"x","params":{{"list":[1,{object}]}}}}"#),
        format!(r#"{{"type":"X","arguments":{}}}"#, quoted(object.clone())),
        format!(
            r#"{{"a":{}}}"#,
            quoted(format!(r#"{{"b":{}}}"#, quoted(object.clone())))
        ),
        format!(
            r#"{{"error":{}}}"#,
            quoted(format!("cannot parse {object} here"))
        ),
        format!(
            r#"{{"error":{}}}"#,
            quoted(object[..object.len() - 2].to_owned())
        ),
        format!(r#"{{"error":"cannot use {name}={value}: refused"}}"#),
        format!(r#"{{"error":"refused: {name}: {value}"}}"#),
        format!(r#"{{"url":"wss://h/ws?a=1&{name}={value}&b=2"}}"#),
        format!(r#"{{"next":"/login?to=https%3A%2F%2Fh%2F%3F{name}%3D{value}"}}"#),
        format!(r#"{{"headers":[{{"name":"{name}","value":"{value}"}}]}}"#),
        format!(
            r#"{{"args":["--{}","{value}"]}}"#,
            name.replace(['_', '.'], "-")
        ),
    ]
}

#[test]
fn a_secret_is_hidden_in_each_spelling_and_place_and_nothing_else() {
    let mut wrong = Vec::new();
    for (names, is_secret) in [(SECRETS, true), (HARMLESS, false)] {
        for name in names.iter().flat_map(|name| spellings(name)) {
            for text in places(&name, "hunter2") {
                // In URLs, a code and a key are secrets.
                let is_url = text.contains('?')
                    && ["code", "key"]
                        .iter()
                        .any(|it| name.to_lowercase().contains(it));
                if (is_secret || !is_url) && frame(&text).contains("hunter2") == is_secret {
                    wrong.push(frame(&text));
                }
            }
            let heads = [
                format!("GET /ws?{name}=hunter2 HTTP/1.1\r\n\r\n"),
                format!(
                    "GET / HTTP/1.1\r\nX-{}: hunter2\r\n\r\n",
                    name.replace(['_', '.'], "-")
                ),
                format!("GET / HTTP/1.1\r\nSec-WebSocket-Protocol: chat, {name}, hunter2\r\n\r\n"),
            ];
            wrong.extend(
                heads
                    .iter()
                    .map(|it| head(it))
                    .filter(|it| is_secret && it.contains("hunter2")),
            );
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_secret_is_known_by_its_form() {
    for text in [
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nhunter2",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nhunter2\n-----END PGP PRIVATE KEY BLOCK-----",
        "Authorization: Basic hunter2",
        "ann:hunter2@db.example:5432/x",
        "postgres://ann:hunter2@db/x",
        "curl --token hunter2 -X GET",
        "Server=h;Uid=ann;Pwd=hunter2;",
    ] {
        for text in [text.to_owned(), format!("it said {text}")] {
            let json = serde_json::json!({ "text": text }).to_string();
            for shown in [within(&text), frame(&json)] {
                assert!(!shown.contains("hunter2"), "{shown}");
            }
        }
    }
    for text in [
        "sk-learn-preprocessing and npm-run-all-parallel",
        "mailto:ann@example.com, write to ann@example.com at 12:30",
        "the token: expected a string; token == null; key: value; code: 4001; token = next(1)",
        "a basic idea, a bearer of 2 rings",
        "--password-file secret.txt --tokens 12",
    ] {
        assert_eq!(within(text), text);
    }
    for text in [
        r#"{"auth":"none"}"#,
        r#"{"pass":3,"fail":1}"#,
        r#"{"token":12,"line":3}"#,
    ] {
        assert_eq!(frame(text), text);
    }
}

#[test]
fn text_without_secrets_stays() {
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
        r#"{"auth":{"required":true,"methods":["token"],"url":"https://h/a"},"labelKey":"tool.label.file_read"}"#,
        r#"{"keys":["Ctrl","F1"],"seed":42,"invitation":"come to my party","function_signature":"fn a1(b: u8)"}"#,
        r#"{"text":"the password is here, a token bucket2000, secret garden, pin numpy==1.26.4, key=Enter"}"#,
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
        "GET /?invite=hunter2 HTTP/1.1\r\n\r\n",
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

#[test]
fn all_behind_bearer_in_a_subprotocol_is_secret_whatever_words_it_has() {
    for key in [
        "topsecret",
        "my-key",
        "password",
        "token.of-ann",
        "secret-of.ann",
        "keykey",
        "Basic",
        "auth.token.key",
        "ann",
        "acolyte.v1",
        "bearer.ann",
        "a!#$%&'*+^_`|~z",
    ] {
        for name in ["bearer.", "Bearer.", "BEARER.", "x.bearer."] {
            for (before, after) in [("", ""), ("acolyte.v1, ", ", chat"), ("chat,", ",mqtt")] {
                let list = |key: &str| format!("{before}{name}{key}{after}");
                for start in [
                    "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: ",
                    "HTTP/1.1 101 Switching\r\nsec-websocket-protocol:",
                    "GET / HTTP/1.1\nSEC-WEBSOCKET-PROTOCOL: soap,\n ",
                ] {
                    let text = format!("{start}{}\r\nX: y\r\n\r\n", list(key));
                    let shown = format!("{start}{}\r\nX: y\r\n\r\n", list("***"));
                    assert_eq!(head(&text), shown);
                }
            }
        }
    }
    // The name and the key as two offers.
    let text = "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: acolyte.v1, Bearer, top.vsecret\r\n\r\n";
    assert_eq!(head(text), text.replace("top.vsecret", "***"));
    for text in [
        "the server refuses bearer.topsecret: unknown",
        r#"curl -H "Sec-WebSocket-Protocol: acolyte.v1, Bearer.topsecret""#,
    ] {
        assert_eq!(within(text), text.replace("topsecret", "***"));
    }
}

/// Lines of code, commands and files with the secret `Zq7xK2pLm9`.
const LINES: &[&str] = &[
    "let token: &str = \"Zq7xK2pLm9\";",
    "const token: string = \"Zq7xK2pLm9\"",
    "password := \"Zq7xK2pLm9\"",
    "curl --user ann:Zq7xK2pLm9 https://x",
    "mysql -u root -pZq7xK2pLm9 db",
    "sshpass -p Zq7xK2pLm9 ssh host",
    "redis-cli -a Zq7xK2pLm9 ping",
    "setx API_TOKEN Zq7xK2pLm9",
    "machine api.x.com login ann password Zq7xK2pLm9",
    "token Zq7xK2pLm9 has expired",
    "cookie d=xoxd-Zq7xK2pLm9abc",
    "SUAMZQ7XK2PLM7ZQ7XK2PLM7ZQ7XK2PLM7ZQ7XK2PLM7ZQ7XK2PLM7ZQ7X",
    "name=\"password\"\r\n\r\nZq7xK2pLm9\r\n",
    "GET /token/Zq7xK2pLm9/ws HTTP/1.1",
];

#[test]
fn secrets_of_code_commands_and_paths_are_hidden() {
    for line in LINES {
        let frame_of = serde_json::json!({ "text": line }).to_string();
        for shown in [within(line), frame(&frame_of)] {
            assert!(!shown.to_lowercase().contains("q7xk2p"), "{line}: {shown}");
        }
    }
    for line in [
        "mysql -u root -p",
        "the password must be changed",
        "GET /confirm/order HTTP/1.1",
        "let token: usize = count",
    ] {
        assert_eq!(within(line), line);
    }
    let challenge = "WWW-Authenticate: Bearer realm=Zq7";
    assert_eq!(head(challenge), challenge);
}
