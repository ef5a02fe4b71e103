//! What every page consists of, what its files must not hold, and how Markdown is rendered for it.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::*;

/// Checks a page with its own files: the page and its scripts name only files that are there, all files
/// are used, and none reaches for another host or makes markup on its own.
pub(crate) fn check(page: &[u8], own: &[(&'static str, Asset)]) {
    let all: Vec<_> = own.iter().chain(&FILES).collect();
    let source = |asset: &Asset| std::str::from_utf8(asset.body).unwrap();
    let page = std::str::from_utf8(page).unwrap();
    assert!(!page.contains(['{', '}']), "{page}");
    let mut named: Vec<_> = page
        .split('"')
        .filter(|part| part.starts_with('/'))
        .map(str::to_owned)
        .collect();
    for (path, asset) in &all {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let imports = source(asset).split("from \".").skip(1);
        named.extend(imports.map(|rest| format!("{folder}{}", rest.split('"').next().unwrap())));
    }
    for path in &named {
        assert!(
            all.iter().any(|(known, _)| known == path),
            "{path} is missing"
        );
    }
    for (path, _) in &all {
        assert!(
            named.iter().any(|named| named == path),
            "{path} is used by nobody"
        );
    }
    for (path, text) in all
        .iter()
        .filter(|(path, _)| *path != "/icon.svg")
        .map(|(path, asset)| (*path, source(asset)))
        .chain([("the page", page)])
    {
        for word in [
            "://\"",
            "http:",
            "url(",
            "@import",
            " style=",
            " onclick=",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "cookie",
        ] {
            assert!(!text.contains(word), "{path}: {word}");
        }
        // One place makes elements of HTML, and that has come from the server.
        let made = text.matches("innerHTML").count();
        assert_eq!(made, usize::from(path == "/page/nodes.js"), "{path}");
    }
}

#[test]
fn a_file_is_found_by_its_path() {
    assert!(file("/page/dom.js").is_some_and(|asset| asset.body.starts_with(b"//")));
    for path in ["/dom.js", "/page/", "/page/DOM.js", "/page/../dom.js", ""] {
        assert!(file(path).is_none(), "{path}");
    }
}

async fn render(kind: &'static str, body: impl Into<Bytes>) -> (StatusCode, Value) {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
    let response = Renderer::default().respond(&headers, body.into()).await;
    let value = serde_json::from_slice(response.body());
    (response.status(), value.unwrap_or_default())
}

#[tokio::test]
async fn markdown_is_rendered_text_by_text() {
    let (status, rendered) = render("application/json", r##"["ü 😀\n\na **b", "", "# b"]"##).await;
    assert_eq!(status, StatusCode::OK);
    let expected = json!([
        // As scripts count.
        { "closed": 6, "done": "<p>ü 😀</p>", "open": "<p>a **b</p>" },
        { "closed": 0, "done": "", "open": "" },
        { "closed": 0, "done": "", "open": "<h1>b</h1>" },
    ]);
    assert_eq!(rendered, expected);
}

#[tokio::test]
async fn what_is_no_list_of_texts_is_refused() {
    for (kind, body, expected) in [
        (
            "text/plain",
            "[]".to_owned(),
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ),
        ("application/json", String::new(), StatusCode::BAD_REQUEST),
        ("application/json", "{}".to_owned(), StatusCode::BAD_REQUEST),
        (
            "application/json",
            "[1]".to_owned(),
            StatusCode::BAD_REQUEST,
        ),
        (
            "application/json",
            json!(vec![""; 257]).to_string(),
            StatusCode::BAD_REQUEST,
        ),
        (
            "application/json",
            json!(["a".repeat(MAX_BODY)]).to_string(),
            StatusCode::PAYLOAD_TOO_LARGE,
        ),
    ] {
        assert_eq!(render(kind, body).await.0, expected);
    }
}

#[tokio::test]
async fn a_few_are_rendered_at_a_time() {
    let renderer = Renderer::default();
    let headers =
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    let taken = renderer.take_all();
    let refused = renderer.respond(&headers, "[]".into()).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(taken);
    let rendered = renderer.respond(&headers, "[]".into()).await;
    assert_eq!(rendered.status(), StatusCode::OK);
}
