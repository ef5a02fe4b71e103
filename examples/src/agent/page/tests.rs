//! The agent's HTTP answers, and what the page's files must not hold.

use super::*;

fn header<'r>(response: &'r Response<Bytes>, name: &str) -> &'r str {
    let value = response.headers().get(name);
    value.map_or("", |value| value.to_str().unwrap())
}

fn source(path: &str) -> &'static str {
    let (_, asset) = FILES.iter().find(|(place, _)| *place == path).unwrap();
    std::str::from_utf8(asset.body).unwrap()
}

#[test]
fn the_page_and_its_files_are_there_and_nothing_else() {
    for (path, asset) in &FILES {
        for method in [Method::GET, Method::HEAD] {
            let response = respond(&method, path);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(header(&response, "content-type"), asset.kind, "{path}");
            assert_eq!(response.body(), asset.body, "{path}");
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
            "trusted-types 'none'",
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
fn the_page_names_only_files_that_are_there() {
    let named = source("/").split('"').filter(|part| part.starts_with('/'));
    let imported = FILES
        .iter()
        .filter(|(path, _)| path.ends_with(".js"))
        .flat_map(|(path, _)| source(path).split("from \"."))
        .filter_map(|rest| rest.split_once('"'))
        .map(|(path, _)| path)
        .filter(|path| path.ends_with(".js") && path.starts_with('/'));
    let mut names: Vec<_> = named.chain(imported).collect();
    assert!(names.len() > 6, "{names:?}");
    names.push("/");
    for path in &names {
        assert_eq!(
            respond(&Method::GET, path).status(),
            StatusCode::OK,
            "{path}"
        );
    }
    for (path, _) in &FILES {
        assert!(names.contains(path), "{path} is used by nobody");
    }
}

#[test]
fn the_files_reach_for_no_other_host_and_make_no_markup() {
    for path in FILES
        .iter()
        .map(|(path, _)| path)
        .filter(|path| **path != "/icon.svg")
    {
        let text = source(path);
        for word in [
            "://\"",
            "http:",
            "url(",
            "@import",
            " style=",
            " onclick=",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "cookie",
        ] {
            assert!(!text.contains(word), "{path}: {word}");
        }
    }
}
