//! The page over HTTP, without a browser.

use std::sync::Arc;

use http::header;

use super::*;
use crate::faults::Plan;
use crate::view::{Lines, open};

const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}
{"at":0.002,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"</script><script>alert(1)</script>\"}"}
{"at":0.003,"conn":1,"dir":"c2s","kind":"text","data":"{\"token\":\"hunter2\"}"}
"#;

fn filled() -> Shared {
    let view = Shared::default();
    open(RUN.as_bytes(), Lines::new(None, false), &view).unwrap();
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
    rows.map(|row| row["n"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn the_page_requests_only_missing_frames() {
    let site = Arc::new(Site::new(filled(), "run.jsonl", false, None, false));
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
    let site = Arc::new(Site::new(view, "x", true, None, false));
    let first = rows(&site, Method::GET, "/rows?after=0", "").await;
    assert_eq!(
        (numbers(&first).len(), &first["more"]),
        (2000, &true.into())
    );
    let rest = rows(&site, Method::GET, "/rows?after=2001", "").await;
    assert_eq!((numbers(&rest).len(), &rest["more"]), (998, &false.into()));
}

#[tokio::test]
async fn a_recording_that_is_dropped_comes_in_pieces() {
    let site = Arc::new(Site::new(Shared::default(), "x", true, None, false));
    let (first, second) = RUN.trim_end().split_at(150);
    let other = rows(&site, Method::POST, "/explain?id=b&last", RUN).await;
    let mut all = numbers(&rows(&site, Method::POST, "/explain?id=a", first).await);
    let rest = rows(&site, Method::POST, "/explain?id=a&last", second).await;
    all.extend(numbers(&rest));
    assert_eq!(all, [2, 3, 4]);
    assert_eq!(numbers(&other), [2, 3, 4]);
    let (status, _) = ask(&site, Method::POST, "/explain", RUN).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn each_path_has_its_methods_and_all_files_exist() {
    let site = Arc::new(Site::new(filled(), "x", false, None, false));
    for path in ["/", "/page.css", "/page.js", "/icon.svg", "/offline.html"] {
        assert_eq!(ask(&site, Method::GET, path, "").await.0, StatusCode::OK);
        let (status, _) = ask(&site, Method::POST, path, "").await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
    }
    assert_eq!(
        ask(&site, Method::GET, "/explain", "").await.0,
        StatusCode::METHOD_NOT_ALLOWED
    );
    assert_eq!(
        ask(&site, Method::GET, "/nowhere", "").await.0,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn faults_are_switched_by_hand() {
    let rules = Rules::new(&Arc::new(Plan::parse("c2s drop").unwrap()));
    let plan = rules.plan();
    let site = Arc::new(Site::new(filled(), "x", true, None, false).with_rules(rules));
    let told = |answer: &serde_json::Value| {
        let rules = answer["rules"].as_array().unwrap().iter();
        rules
            .map(|rule| format!("{} {} {}", rule["id"], rule["text"], rule["on"]))
            .collect::<Vec<_>>()
    };
    let first = rows(&site, Method::GET, "/rows?after=0", "").await;
    assert_eq!(told(&first), [r#"0 "c2s drop" true"#]);
    let added = rows(&site, Method::POST, "/rules", r#"{"add":"s2c delay 1s"}"#).await;
    assert_eq!(
        told(&added),
        [r#"0 "c2s drop" true"#, r#"1 "s2c delay 1s" true"#]
    );
    let off = rows(&site, Method::POST, "/rules", r#"{"id":0,"on":false}"#).await;
    assert_eq!(told(&off)[0], r#"0 "c2s drop" false"#);
    let left = rows(&site, Method::POST, "/rules", r#"{"remove":1}"#).await;
    assert_eq!(told(&left), [r#"0 "c2s drop" false"#]);
    assert!(plan.borrow().is_empty());
    for wrong in [
        r#"{"add":"explode"}"#,
        r#"{"remove":1}"#,
        r#"{"id":7,"on":true}"#,
        "x",
    ] {
        let (status, why) = ask(&site, Method::POST, "/rules", wrong).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}: {why}");
    }
    let fixed = Arc::new(Site::new(filled(), "x", false, None, false));
    let (status, _) = ask(&fixed, Method::POST, "/rules", r#"{"remove":0}"#).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}

#[test]
fn the_page_as_a_file_has_the_frames_and_no_markup_of_theirs() {
    let mut file = Vec::new();
    offline(&lock(&filled()), "run", &mut file).unwrap();
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
    offline(&view, "run", &mut file).unwrap();
    let file = String::from_utf8(file).unwrap();
    assert_eq!(file.matches(BEGIN).count(), 3);
    // Nothing that ends the script, or that a policy would refuse.
    assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--") && !STYLE.contains("</style"));
}
