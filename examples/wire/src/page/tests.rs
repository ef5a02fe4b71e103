//! The page over HTTP, without a browser.

use std::sync::Arc;

use http::header;

use super::*;

const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}
{"at":0.002,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"</script><script>alert(1)</script>\"}"}
{"at":0.003,"conn":1,"dir":"c2s","kind":"text","data":"{\"token\":\"hunter2\"}"}
"#;

fn filled() -> Shared {
    let view = View::named("run");
    open(
        RUN.as_bytes(),
        Explainer::new(None, Shown::default()),
        &view,
        true,
    )
    .unwrap();
    view
}

async fn ask(site: &Arc<Site>, method: Method, path: &str, body: &str) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(path);
    let request = request.body(Bytes::copy_from_slice(body.as_bytes()));
    let response = Arc::clone(site).respond(request.unwrap()).await;
    let policy = &response.headers()[header::CONTENT_SECURITY_POLICY];
    assert!(policy.to_str().unwrap().contains("default-src 'none'"));
    let status = response.status();
    (
        status,
        String::from_utf8(response.into_body().to_vec()).unwrap(),
    )
}

async fn rows(site: &Arc<Site>, method: Method, path: &str, body: &str) -> serde_json::Value {
    let (status, body) = ask(site, method, path, body).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    serde_json::from_str(&body).unwrap()
}

fn numbers(answer: &serde_json::Value) -> Vec<u64> {
    let rows = answer["rows"].as_array().unwrap().iter();
    rows.map(|row| row["line"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn the_page_requests_only_missing_frames() {
    let site = Arc::new(Site::new(filled(), false, None, Shown::default()));
    let all = rows(&site, Method::GET, "/rows?after=0", "").await;
    assert_eq!(numbers(&all), [2, 3, 4]);
    assert_eq!(
        (&all["more"], &all["complete"]),
        (&false.into(), &true.into())
    );
    assert_eq!(all["rows"][1]["answers"]["line"], 2);
    assert!(!all.to_string().contains("hunter2"), "{all}");
    let last = rows(&site, Method::GET, "/rows?after=3", "").await;
    assert_eq!((numbers(&last), &last["last"]), (vec![4], &4.into()));
    for query in ["", "?after=x", "?after=-1"] {
        let (status, _) = ask(&site, Method::GET, &format!("/rows{query}"), "").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn many_frames_come_in_several_answers() {
    let view = filled();
    {
        let mut view = lock(&view);
        let row = view.rows[0].clone();
        for n in 5..3000 {
            view.push(Row { n, ..row.clone() });
        }
    }
    let site = Arc::new(Site::new(view, true, None, Shown::default()));
    let first = rows(&site, Method::GET, "/rows?after=0", "").await;
    assert_eq!(
        (numbers(&first).len(), &first["more"]),
        (2000, &true.into())
    );
    let rest = rows(&site, Method::GET, "/rows?after=2001", "").await;
    assert_eq!((numbers(&rest).len(), &rest["more"]), (998, &false.into()));
}

#[tokio::test]
async fn a_recording_that_is_opened_replaces_the_one_before() {
    let site = Arc::new(Site::new(View::named("old"), false, None, Shown::default()));
    let (status, _) = ask(&site, Method::POST, "/open?a%20b.jsonl", RUN).await;
    assert_eq!(status, StatusCode::OK);
    let all = rows(&site, Method::GET, "/rows?after=0", "").await;
    assert_eq!(
        (numbers(&all), &all["name"]),
        (vec![2, 3, 4], &"a b.jsonl".into())
    );
    assert!(!all.to_string().contains("hunter2"), "{all}");
    let (status, why) = ask(&site, Method::POST, "/open?x", r#"{"log":{}}"#).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
    let live = Arc::new(Site::new(filled(), true, None, Shown::default()));
    let (status, _) = ask(&live, Method::POST, "/open?x", RUN).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn each_path_has_its_methods_and_all_files_exist() {
    let site = Arc::new(Site::new(filled(), false, None, Shown::default()));
    for path in ["/", "/page.css", "/page.js", "/icon.svg", "/recording.html"] {
        assert_eq!(ask(&site, Method::GET, path, "").await.0, StatusCode::OK);
        let (status, _) = ask(&site, Method::POST, path, "").await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    assert_eq!(
        ask(&site, Method::GET, "/open", "").await.0,
        StatusCode::METHOD_NOT_ALLOWED
    );
    assert_eq!(
        ask(&site, Method::GET, "/nowhere", "").await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn the_faults_of_a_proxy_are_shown() {
    let site = Site::new(filled(), true, None, Shown::default()).with_faults("c2s drop".to_owned());
    let all = rows(&Arc::new(site), Method::GET, "/rows?after=0", "").await;
    assert_eq!(all["faults"], "c2s drop");
}

#[test]
fn the_page_as_a_file_has_the_frames_and_no_markup_of_theirs() {
    let mut file = Vec::new();
    offline(&lock(&filled()), &mut file).unwrap();
    let file = String::from_utf8(file).unwrap();
    let (_, data) = file.split_once("class=\"recording\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let lines: Vec<serde_json::Value> = data
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["name"], "run");
    assert!(lines[2]["data"].as_str().unwrap().contains("</script>"));
    assert!(!file.contains("{head}") && !file.contains("hunter2"));
    let row = lock(&filled()).rows[0].clone();
    let mut view = View::default();
    (0..1200).for_each(|n| view.push(Row { n, ..row.clone() }));
    let mut file = Vec::new();
    offline(&view, &mut file).unwrap();
    let file = String::from_utf8(file).unwrap();
    assert_eq!(file.matches(BEGIN).count(), 3);
    // Nothing that ends the script, or that a policy would refuse.
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
}
