//! The agent's HTTP answers, and what the page's files must not hold.

use super::*;

fn header<'r>(response: &'r Response<Bytes>, name: &str) -> &'r str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

#[test]
fn the_page_and_its_files_exist_and_nothing_else() {
    for path in PAGE
        .files
        .iter()
        .map(|(path, _)| *path)
        .chain(["/", "/page/app.css"])
    {
        for method in [Method::GET, Method::HEAD] {
            let response = respond(&method, path);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            let kind = match path.rsplit('.').next() {
                Some("js") => "text/javascript; charset=utf-8",
                Some("css") => "text/css; charset=utf-8",
                Some("svg") => "image/svg+xml",
                _ => "text/html; charset=utf-8",
            };
            assert_eq!(header(&response, "content-type"), kind, "{path}");
            assert!(!response.body().is_empty(), "{path}");
        }
        let response = respond(&Method::POST, path);
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(header(&response, "allow"), "GET, HEAD");
    }
    for path in ["", "*", "//", "/APP.JS", "/app.js/", "/%2e%2e/secret", "/é"] {
        assert_eq!(
            respond(&Method::GET, path).status(),
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
}

#[test]
fn every_answer_is_guarded() {
    for (method, path) in [
        (Method::GET, "/"),
        (Method::PUT, "/"),
        (Method::GET, "/nowhere"),
    ] {
        let response = respond(&method, path);
        assert_eq!(header(&response, "x-content-type-options"), "nosniff");
        let policy = header(&response, "content-security-policy");
        for rule in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "trusted-types dompurify",
        ] {
            assert!(policy.contains(rule), "{method} {path}: {rule}");
        }
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{method} {path}"
        );
    }
}

#[test]
fn the_page_is_whole_and_keeps_to_itself() {
    crate::page::tests::check(&PAGE);
}
