//! Peers, names and origins that pass, and those that do not.

use http::Request;
use proptest::prelude::*;

use super::*;

fn parts(headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().uri("/rpc.ws");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn status(result: Result<(), Rejection>) -> u16 {
    result.err().map_or(200, |rejection| rejection.0.as_u16())
}

#[test]
fn a_request_without_an_origin_passes() {
    assert_eq!(status(Guards::default().check_origin(&parts(&[]))), 200);
}

#[test]
fn every_origin_is_refused_by_default() {
    for origin in [
        "https://evil.example",
        "http://localhost:3000",
        "null",
        "",
        "file://",
    ] {
        let parts = parts(&[("origin", origin)]);
        assert_eq!(
            status(Guards::default().check_origin(&parts)),
            403,
            "{origin}"
        );
    }
}

#[test]
fn a_same_origin_page_passes_where_allowed() {
    let guards = Guards {
        same_origin: true,
        ..Guards::default()
    };
    for (origin, host, expected) in [
        ("http://192.168.1.5:7200", "192.168.1.5:7200", 200),
        ("https://chat.example", "CHAT.example.", 200),
        ("http://chat.example", "chat.example:80", 200),
        ("http://192.168.1.5:7201", "192.168.1.5:7200", 403),
        ("https://evil.example", "chat.example", 403),
        ("null", "null", 403),
        ("ws://chat.example", "chat.example", 403),
        ("http://", "", 403),
    ] {
        let parts = parts(&[("origin", origin), ("host", host)]);
        assert_eq!(
            status(guards.check_origin(&parts)),
            expected,
            "{origin} {host}"
        );
        assert_eq!(status(Guards::default().check_origin(&parts)), 403);
    }
    let two = parts(&[("origin", "http://a"), ("host", "a"), ("host", "b")]);
    assert_eq!(status(guards.check_origin(&two)), 403);
}

#[test]
fn a_listed_origin_must_match_scheme_host_and_port() {
    let guards = Guards::default()
        .with_allowed_origin("https://app.example.com")
        .and_then(|g| g.with_allowed_origin("http://localhost:5173"))
        .unwrap();
    for (origin, expected) in [
        ("https://app.example.com", 200),
        ("https://APP.example.COM", 200),
        ("https://app.example.com:443", 200),
        ("http://localhost:5173", 200),
        ("http://app.example.com", 403),
        ("https://app.example.com:8443", 403),
        ("https://app.example.com.evil.example", 403),
        ("https://evil.example/https://app.example.com", 403),
        ("https://x@app.example.com", 403),
        ("http://localhost", 403),
        ("null", 403),
    ] {
        assert_eq!(
            status(guards.check_origin(&parts(&[("origin", origin)]))),
            expected,
            "{origin}"
        );
    }
    let two = parts(&[
        ("origin", "https://app.example.com"),
        ("origin", "https://app.example.com"),
    ]);
    assert_eq!(status(guards.check_origin(&two)), 403);
}

#[test]
fn loopback_pages_can_be_allowed_beside_a_list() {
    let guards = Guards {
        origins: OriginPolicy::Loopback(Vec::new()),
        ..Guards::default()
    }
    .with_allowed_origin("https://app.example.com")
    .unwrap();
    let served = |origin: &'static str| {
        let request = parts(&[("host", "x"), ("origin", origin)]);
        guards.check_origin(&request).is_ok()
    };
    for origin in [
        "http://localhost",
        "http://LOCALHOST:5173",
        "https://127.0.0.2:1",
        "http://[::1]:7200",
        "https://app.example.com",
    ] {
        assert!(served(origin), "{origin}");
    }
    for origin in [
        "null",
        "",
        "http://localhost.evil.example",
        "http://evil.example",
        "http://127.0.0.1.evil.example",
        "http://10.0.0.1",
        "chrome-extension://localhost",
        "http://app.example.com",
    ] {
        assert!(!served(origin), "{origin}");
    }
}

#[test]
fn loopback_names_are_the_only_hosts_by_default() {
    for (host, expected) in [
        ("localhost", 200),
        ("LocalHost:9100", 200),
        ("localhost.", 200),
        ("127.0.0.1:9100", 200),
        ("127.8.9.1", 200),
        ("[::1]", 200),
        ("[::1]:9100", 200),
        ("[0:0:0:0:0:0:0:1]:9100", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("evil.localhost", 403),
        ("127.0.0.1.evil.example", 403),
        ("128.0.0.1", 403),
        ("0.0.0.0", 403),
        ("[::2]", 403),
        ("[::1]evil", 403),
        ("localhost@evil.example", 403),
        ("localhost:1:2", 403),
        ("localhost:99999", 403),
        ("localhost:+80", 403),
        ("", 403),
    ] {
        assert_eq!(
            status(Guards::default().check_host(&parts(&[("host", host)]))),
            expected,
            "{host}"
        );
    }
    assert_eq!(status(Guards::default().check_host(&parts(&[]))), 400);
    let two = parts(&[("host", "localhost"), ("host", "evil.example")]);
    assert_eq!(status(Guards::default().check_host(&two)), 400);
}

#[test]
fn a_request_of_http_1_0_needs_no_host() {
    let mut parts = parts(&[]);
    assert_eq!(status(Guards::default().check_host(&parts)), 400);
    parts.version = Version::HTTP_10;
    assert_eq!(status(Guards::default().check_host(&parts)), 200);
    parts
        .headers
        .insert(header::HOST, "evil.example".parse().unwrap());
    assert_eq!(status(Guards::default().check_host(&parts)), 403);
}

#[test]
fn the_host_of_an_absolute_target_is_checked_as_well() {
    let request = Request::builder()
        .uri("http://evil.example/rpc.ws")
        .header("host", "localhost")
        .body(())
        .unwrap();
    assert_eq!(
        status(Guards::default().check_host(&request.into_parts().0)),
        403
    );
}

#[test]
fn a_public_bind_serves_any_host_until_a_list_is_given() {
    let public: SocketAddr = "0.0.0.0:80".parse().unwrap();
    let open = Guards::default().for_bind(public);
    assert_eq!(
        status(open.check_host(&parts(&[("host", "x.example")]))),
        200
    );
    let listed = Guards::default()
        .with_allowed_host("a.example")
        .and_then(|g| g.with_allowed_host("b.example:8443"))
        .unwrap()
        .for_bind(public);
    for (host, expected) in [
        ("A.example:1234", 200),
        ("b.example:8443", 200),
        ("b.example", 403),
        ("localhost", 403),
    ] {
        assert_eq!(
            status(listed.check_host(&parts(&[("host", host)]))),
            expected,
            "{host}"
        );
    }
}

#[test]
fn peers_can_be_limited_to_localhost_itself() {
    let guards = Guards {
        peers: PeerPolicy::LocalhostOnly,
        ..Guards::default()
    };
    for (peer, expected) in [
        ("127.0.0.1:1", 200),
        ("[::1]:1", 200),
        ("[::ffff:127.0.0.1]:1", 200),
        ("127.0.0.2:1", 403),
        ("127.1.0.1:1", 403),
        ("[::ffff:127.0.0.2]:1", 403),
        ("[::127.0.0.1]:1", 403),
        ("[::2]:1", 403),
        ("10.0.0.1:1", 403),
    ] {
        assert_eq!(
            status(guards.check_peer(peer.parse().unwrap())),
            expected,
            "{peer}"
        );
    }
}

#[test]
fn entries_that_can_never_match_are_refused() {
    for origin in [
        "null",
        "*",
        "https://a.example/",
        "a.example",
        "://a",
        "https://",
    ] {
        assert!(
            Guards::default().with_allowed_origin(origin).is_err(),
            "{origin}"
        );
    }
    for host in ["", "*.example", "a b", "http://a", "a:b", "[::1"] {
        assert!(Guards::default().with_allowed_host(host).is_err(), "{host}");
    }
}

proptest! {
    #[test]
    fn no_header_value_panics(host in "[ -~]{0,40}", origin in "[ -~]{0,40}") {
        let guards = Guards::default().with_allowed_origin("https://a.example").unwrap();
        let parts = parts(&[("host", host.trim()), ("origin", origin.trim())]);
        let _ = guards.check(&parts, "127.0.0.1:1".parse().unwrap());
    }
}

#[test]
fn forwarded_addresses_are_trusted_from_named_proxies_only() {
    let mut headers = HeaderMap::new();
    headers.append("x-forwarded-for", "192.0.2.9, 192.0.2.1".parse().unwrap());
    let named = Guards::default()
        .with_trusted_proxy("192.0.2.0/29")
        .unwrap();
    let named = named.with_trusted_proxy("2001:db8::1").unwrap();
    for (guards, peer, expected) in [
        (Guards::default(), "127.0.0.1:1", "192.0.2.1"),
        (Guards::default(), "[::ffff:127.0.0.1]:1", "192.0.2.1"),
        (Guards::default(), "192.0.2.7:1", "192.0.2.7"),
        (
            Guards::default(),
            "[2001:db8:1:2:3:4:5:6]:1",
            "2001:db8:1:2::",
        ),
        (named.clone(), "127.0.0.1:1", "127.0.0.1"),
        (named.clone(), "192.0.2.7:1", "192.0.2.9"),
        (named.clone(), "[2001:db8::1]:1", "192.0.2.9"),
        (named, "[2001:db8::2]:1", "2001:db8::"),
    ] {
        let caller = guards.caller(peer.parse().unwrap(), &headers);
        assert_eq!(caller.to_string(), expected, "{peer}");
    }
    let caller = Guards::default().caller("127.0.0.1:1".parse().unwrap(), &HeaderMap::new());
    assert_eq!(caller.to_string(), "127.0.0.1");
    for bad in ["", "10.0.0.0/33", "proxy.example", "10.0.0"] {
        assert!(Guards::default().with_trusted_proxy(bad).is_err(), "{bad}");
    }
}
