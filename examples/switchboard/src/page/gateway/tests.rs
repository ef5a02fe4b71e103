//! The gateway's HTTP answers, and what the page's files must not hold.

use super::*;
use crate::web::TEXT;

const OTHERS: [Method; 6] = [
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
    Method::OPTIONS,
    Method::TRACE,
    Method::CONNECT,
];

fn header(response: &Response<Bytes>, name: &str) -> String {
    let value = response.headers().get(name);
    value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
}

#[test]
fn the_page_and_its_files_have_their_types() {
    for (path, kind, start) in [
        ("/", "text/html; charset=utf-8", "<!doctype html>"),
        ("/app.js", "text/javascript; charset=utf-8", "//"),
        ("/line.js", "text/javascript; charset=utf-8", "//"),
        ("/page/app.css", "text/css; charset=utf-8", "/*"),
        ("/icon.svg", "image/svg+xml", "<svg"),
        ("/manifest.json", "application/manifest+json", "{"),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let response = respond(&method, path);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(header(&response, "content-type"), kind, "{path}");
            assert!(response.body().starts_with(start.as_bytes()), "{path}");
        }
    }
}

#[test]
fn health_is_ok() {
    let response = respond(&Method::GET, "/health");
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(header(&response, "content-type"), TEXT);
    assert_eq!(response.body(), "ok");
}

#[test]
fn any_other_path_gets_the_page() {
    let page = respond(&Method::GET, "/");
    let text = |response: &Response<Bytes>| {
        let text = std::str::from_utf8(response.body()).unwrap();
        text.replace("../", "")
    };
    for path in [
        "",
        "*",
        "//",
        "/ws/",
        "/chat/today",
        "/app.js/",
        "/APP.JS",
        "/webhook",
        "/webhook/",
        "/webhook/a/b",
        "/%2e%2e/secret",
        "/é",
    ] {
        let response = respond(&Method::GET, path);
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        assert_eq!(text(&response), text(&page), "{path}");
        assert_eq!(response.headers(), page.headers(), "{path}");
    }
}

#[test]
fn an_unknown_health_check_is_not_found() {
    for path in ["/health/", "/healthz", "/ready/", "/readyz"] {
        let response = respond(&Method::GET, path);
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn a_plain_request_of_the_upgrade_path_names_the_protocol() {
    let response = respond(&Method::GET, WS_PATH);
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(header(&response, "content-type"), TEXT);
}

#[test]
fn other_methods_are_refused_with_an_empty_body() {
    for path in ["/", "/app.js", "/health", "/ws", "/nowhere", "/webhook/x"] {
        for method in &OTHERS {
            let response = respond(method, path);
            assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
            assert!(response.body().is_empty(), "{method} {path}");
        }
    }
    for path in [
        "/",
        "/page/app.css",
        "/health",
        "/ws",
        "/nowhere",
        "/webhook/",
    ] {
        let response = respond(&Method::POST, path);
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(header(&response, "allow"), "GET, HEAD", "{path}");
        assert!(response.body().is_empty(), "{path}");
    }
    let response = respond(&Method::GET, "/webhook/telegram");
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(header(&response, "allow"), "POST");
}

#[test]
fn a_webhook_without_an_adapter_is_named() {
    let response = respond(&Method::POST, "/webhook/telegram");
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(header(&response, "content-type"), TEXT);
    assert_eq!(response.body(), "no channel adapter for 'telegram'");
}

#[test]
fn every_answer_is_guarded() {
    for (method, path) in [
        (Method::GET, "/"),
        (Method::GET, "/app.js"),
        (Method::GET, "/health"),
        (Method::GET, "/ws"),
        (Method::PUT, "/"),
        (Method::POST, "/webhook/<script>"),
    ] {
        let response = respond(&method, path);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(header(&response, name), value, "{method} {path}");
        }
        let policy = header(&response, "content-security-policy");
        for rule in ["default-src 'none'", "frame-ancestors 'none'"] {
            assert!(policy.contains(rule), "{method} {path}: {rule}");
        }
        assert!(!policy.contains("unsafe"), "{method} {path}");
        assert!(!policy.contains('*'), "{method} {path}");
    }
}

#[test]
fn the_page_is_whole_and_keeps_to_itself() {
    crate::page::tests::check(&PAGE);
}
