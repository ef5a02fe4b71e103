//! Fetching images from a stub server on loopback.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpc_core::net::tls::{TlsAcceptor, TlsConfig};
use snek_proto::llm::image::ImageFormat;
use snek_proto::llm::image::fetch::{FetchConfig, FetchError, ImageFetcher, Resolver};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\npixels";
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What the stub does with a request.
#[derive(Clone)]
enum Reply {
    /// This status and these bytes, with their length.
    Body(u16, Vec<u8>),
    /// Only a head with this length; for HEAD requests.
    Length(usize),
    To(String),
    /// A body without an announced length and without an end.
    Endless,
    /// A head and a little, and then nothing more.
    Stuck,
    Silent,
}

#[derive(Clone, Default)]
struct Stub {
    /// By method and path, as in `GET /a.png`.
    replies: HashMap<String, Reply>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Stub {
    fn on(mut self, request: &str, reply: Reply) -> Self {
        self.replies.insert(request.to_owned(), reply);
        self
    }

    fn image(self, path: &str) -> Self {
        self.on(&format!("HEAD {path}"), Reply::Length(PNG.len()))
            .on(&format!("GET {path}"), Reply::Body(200, PNG.to_vec()))
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Serves on loopback; the port.
    async fn start(&self, tls: Option<TlsAcceptor>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stub = self.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let (stub, tls) = (stub.clone(), tls.clone());
                tokio::spawn(async move {
                    let _ = match tls {
                        Some(tls) => stub.serve(tls.accept(tcp).await.unwrap()).await,
                        None => stub.serve(tcp).await,
                    };
                });
            }
        });
        port
    }

    /// One request per connection, so that each needs a lookup.
    async fn serve(self, mut io: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(io.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let request = head.split(" HTTP/").next().unwrap().to_owned();
        for word in ["cookie:", "referer:", "authorization:"] {
            assert!(!head.to_lowercase().contains(word), "{head}");
        }
        self.seen.lock().unwrap().push(request.clone());
        let reply = self.replies.get(&request).cloned();
        let reply = reply.unwrap_or(Reply::Body(404, b"no such image".to_vec()));
        let close = "connection: close\r\n\r\n";
        match reply {
            Reply::Body(status, body) => {
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                io.write_all(head.as_bytes()).await?;
                io.write_all(close.as_bytes()).await?;
                if request.starts_with("GET") {
                    io.write_all(&body).await?;
                }
            }
            Reply::Length(length) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{close}");
                io.write_all(head.as_bytes()).await?;
            }
            Reply::To(url) => {
                let head = format!(
                    "HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n{close}"
                );
                io.write_all(head.as_bytes()).await?;
            }
            Reply::Endless => {
                io.write_all(format!("HTTP/1.1 200 OK\r\n{close}").as_bytes())
                    .await?;
                loop {
                    io.write_all(&[0; 4096]).await?;
                }
            }
            Reply::Stuck => {
                io.write_all(format!("HTTP/1.1 200 OK\r\n{close}beg").as_bytes())
                    .await?;
                std::future::pending::<()>().await;
            }
            Reply::Silent => std::future::pending().await,
        }
        io.shutdown().await
    }
}

fn config() -> FetchConfig {
    FetchConfig {
        allow_private: true,
        ..FetchConfig::default()
    }
}

/// Public addresses, and this machine.
fn with_loopback() -> FetchConfig {
    FetchConfig {
        allowed: vec![LOOPBACK],
        ..FetchConfig::default()
    }
}

fn fetcher(config: FetchConfig) -> ImageFetcher {
    ImageFetcher::new(config).unwrap()
}

fn resolving(config: FetchConfig, resolver: impl Resolver) -> ImageFetcher {
    ImageFetcher::with_resolver(config, resolver).unwrap()
}

/// Answers each lookup with the next of these, and the last one for ever.
struct Answers(Mutex<Vec<Vec<IpAddr>>>);

impl Answers {
    fn new<const N: usize>(answers: [&[IpAddr]; N]) -> Self {
        Self(Mutex::new(answers.map(<[_]>::to_vec).to_vec()))
    }
}

impl Resolver for Answers {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        let mut answers = self.0.lock().unwrap();
        Ok(if answers.len() > 1 {
            answers.remove(0)
        } else {
            answers[0].clone()
        })
    }
}

#[tokio::test]
async fn an_image_is_fetched_after_a_size_check() {
    let stub = Stub::default().image("/a.png?b=c");
    let port = stub.start(None).await;
    let url = format!("http://127.0.0.1:{port}/a.png?b=c");
    let image = fetcher(config()).fetch(&url).await.unwrap();
    assert_eq!((&*image.url, image.mime), (&*url, "image/png"));
    assert_eq!(&image.bytes[..], PNG);
    assert_eq!(stub.seen(), ["HEAD /a.png?b=c", "GET /a.png?b=c"]);
}

#[tokio::test]
async fn a_server_without_head_support_is_still_asked() {
    let get = Reply::Body(200, PNG.to_vec());
    for head in [
        Reply::Body(405, Vec::new()),
        Reply::Body(404, vec![0; 101]),
        Reply::Silent,
        Reply::To("ftp://h/".into()),
    ] {
        let stub = Stub::default()
            .on("HEAD /a.png", head)
            .on("GET /a.png", get.clone());
        let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
        let config = FetchConfig {
            head_timeout: Duration::from_millis(50),
            max_bytes: 100,
            ..config()
        };
        assert_eq!(&fetcher(config).fetch(&url).await.unwrap().bytes[..], PNG);
    }
}

#[tokio::test]
async fn any_status_but_200_is_an_error() {
    for code in [204, 206, 304, 404, 500] {
        let stub = Stub::default().on("GET /a.png", Reply::Body(code, Vec::new()));
        let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
        let error = fetcher(config()).fetch(&url).await.unwrap_err();
        assert_eq!(error, FetchError::Status { code });
        assert_eq!(error.is_retryable(), code == 500);
    }
}

#[tokio::test]
async fn an_image_declared_too_large_is_not_fetched() {
    let too_large = Err(FetchError::TooLarge { max: 10 });
    let stub = Stub::default().on("HEAD /a.png", Reply::Length(11));
    let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
    let small = FetchConfig {
        max_bytes: 10,
        ..config()
    };
    assert_eq!(fetcher(small.clone()).fetch(&url).await, too_large);
    assert_eq!(stub.seen(), ["HEAD /a.png"]);
    let stub = Stub::default().on("GET /a.png", Reply::Body(200, vec![0; 11]));
    let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
    assert_eq!(
        fetcher(FetchConfig {
            head: false,
            ..small
        })
        .fetch(&url)
        .await,
        too_large
    );
}

#[tokio::test]
async fn the_default_image_limit_is_ten_mebibytes() {
    let max = 10 * 1024 * 1024;
    let stub = Stub::default()
        .on("HEAD /a.png", Reply::Length(max))
        .on("HEAD /b.png", Reply::Length(max + 1));
    let base = format!("http://127.0.0.1:{}", stub.start(None).await);
    let fetcher = fetcher(config());
    let begun = fetcher.fetch(&format!("{base}/a.png")).await;
    assert_eq!(begun, Err(FetchError::Status { code: 404 }));
    let refused = fetcher.fetch(&format!("{base}/b.png")).await;
    assert_eq!(refused, Err(FetchError::TooLarge { max }));
}

#[tokio::test]
async fn an_endless_body_fails_at_the_limit() {
    let stub = Stub::default().on("GET /a.png", Reply::Endless);
    let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
    let error = fetcher(FetchConfig {
        max_bytes: 100_000,
        ..config()
    })
    .fetch(&url)
    .await;
    assert_eq!(error, Err(FetchError::TooLarge { max: 100_000 }));
}

#[tokio::test]
async fn an_image_of_exactly_the_limit_is_accepted() {
    let stub = Stub::default().image("/a.png");
    let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
    let fetcher = fetcher(FetchConfig {
        max_bytes: PNG.len(),
        ..config()
    });
    assert_eq!(&fetcher.fetch(&url).await.unwrap().bytes[..], PNG);
}

#[tokio::test]
async fn a_slow_server_times_out() {
    let after = Duration::from_millis(100);
    for reply in [Reply::Silent, Reply::Stuck] {
        let stub = Stub::default().on("GET /a.png", reply);
        let url = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
        let error = fetcher(FetchConfig {
            timeout: after,
            ..config()
        })
        .fetch(&url)
        .await;
        assert_eq!(error, Err(FetchError::TimedOut { after }));
    }
}

#[tokio::test]
async fn redirects_are_followed_up_to_the_limit() {
    let mut stub = Stub::default().image("/6.png");
    for hop in 0..6 {
        for method in ["HEAD", "GET"] {
            let next = Reply::To(format!("/{}.png", hop + 1));
            stub = stub.on(&format!("{method} /{hop}.png"), next);
        }
    }
    let base = format!("http://127.0.0.1:{}", stub.start(None).await);
    let url = format!("{base}/1.png");
    let image = fetcher(config()).fetch(&url).await.unwrap();
    assert_eq!(&*image.url, url, "the address that stands in the text");
    let error = fetcher(config()).fetch(&format!("{base}/0.png")).await;
    assert_eq!(error, Err(FetchError::TooManyRedirects { max: 5 }));
}

#[tokio::test]
async fn only_http_is_fetched() {
    let stub = Stub::default().on("GET /a.png", Reply::To("file:///etc/passwd".into()));
    let elsewhere = format!("http://127.0.0.1:{}/a.png", stub.start(None).await);
    let fetcher = fetcher(config());
    for url in [
        "",
        "a.png",
        "http://",
        "http://h:99999/",
        "ftp://h/a.png",
        "file:///etc/passwd",
        "data:,x",
        &elsewhere,
    ] {
        let error = fetcher.fetch(url).await.unwrap_err();
        assert!(matches!(error, FetchError::BadUrl { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn non_public_addresses_are_refused_in_every_spelling() {
    let fetcher = fetcher(FetchConfig::default());
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "0x7f.1",
        "2130706433",
        "0177.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[fd00::1]",
        "user:secret@127.0.0.1",
    ] {
        let error = fetcher.fetch(&format!("http://{host}/a.png")).await;
        let error = error.unwrap_err();
        assert!(
            matches!(error, FetchError::PrivateAddress { .. }),
            "{host}: {error:?}"
        );
        assert!(!error.to_string().contains("secret"));
    }
}

#[tokio::test]
async fn a_redirect_to_a_non_public_address_is_refused() {
    let inner = Stub::default().image("/a.png");
    let port = inner.start(None).await;
    // Only the outer server's address is allowed.
    let outer = Stub::default().on(
        "GET /a.png",
        Reply::To(format!("http://127.0.0.2:{port}/a.png")),
    );
    let url = format!("http://127.0.0.1:{}/a.png", outer.start(None).await);
    let error = fetcher(with_loopback()).fetch(&url).await.unwrap_err();
    let address = "127.0.0.2".parse().unwrap();
    assert_eq!(error, FetchError::PrivateAddress { address });
    assert!(inner.seen().is_empty());
}

#[tokio::test]
async fn a_name_resolving_to_a_non_public_address_is_refused() {
    let stub = Stub::default().image("/a.png");
    let port = stub.start(None).await;
    let answers = Answers::new([&[LOOPBACK]]);
    let fetchers = [
        resolving(FetchConfig::default(), answers),
        fetcher(FetchConfig::default()),
    ];
    for fetcher in fetchers {
        let url = format!("http://localhost:{port}/a.png");
        let error = fetcher.fetch(&url).await.unwrap_err();
        assert!(
            matches!(error, FetchError::PrivateAddress { address } if address.is_loopback()),
            "{error:?}"
        );
    }
    assert!(stub.seen().is_empty(), "it was contacted");
}

#[tokio::test]
async fn dns_rebinding_is_refused() {
    let inner: IpAddr = "127.0.0.2".parse().unwrap();
    let stub = Stub::default().image("/a.png");
    let url = format!("http://images.test:{}/a.png", stub.start(None).await);
    // The first lookup is for the HEAD request, the second one for the GET request.
    let answers = Answers::new([&[LOOPBACK], &[inner]]);
    let error = resolving(with_loopback(), answers).fetch(&url).await;
    assert_eq!(error, Err(FetchError::PrivateAddress { address: inner }));
    assert_eq!(stub.seen(), ["HEAD /a.png"]);
}

#[tokio::test]
async fn only_allowed_addresses_of_a_name_are_tried() {
    let inner: IpAddr = "127.0.0.2".parse().unwrap();
    let stub = Stub::default().image("/a.png");
    let url = format!("http://images.test:{}/a.png", stub.start(None).await);
    let answers = Answers::new([&[inner, LOOPBACK]]);
    let fetcher = resolving(with_loopback(), answers);
    assert!(fetcher.fetch(&url).await.is_ok());
}

#[tokio::test]
async fn an_unresolvable_name_and_a_closed_port_are_distinct() {
    let url = "http://images.test:1/a.png";
    let nowhere = resolving(config(), Answers::new([&[]]));
    let error = nowhere.fetch(url).await.unwrap_err().to_string();
    assert!(error.contains("the name has no address"), "{error}");
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/secret.png", free.local_addr().unwrap());
    drop(free);
    let error = fetcher(config()).fetch(&url).await.unwrap_err();
    assert!(matches!(error, FetchError::Transport { .. }), "{error:?}");
    assert!(!format!("{error:?} {error}").contains("secret"));
}

#[tokio::test]
async fn https_trusts_only_the_configured_authority() {
    let key = rcgen::generate_simple_self_signed(["images.test".to_owned()]).unwrap();
    let (chain, signing) = (key.cert.pem(), key.signing_key.serialize_pem());
    let acceptor = TlsAcceptor::from_pem(chain.as_bytes(), signing.as_bytes()).unwrap();
    let stub = Stub::default().image("/a.png");
    let url = format!(
        "https://images.test:{}/a.png",
        stub.start(Some(acceptor)).await
    );
    let here = |config| resolving(config, Answers::new([&[LOOPBACK]]));
    let trusting = FetchConfig {
        tls: Some(TlsConfig::with_root_certificates(chain.as_bytes()).unwrap()),
        ..config()
    };
    assert!(here(trusting).fetch(&url).await.is_ok());
    let error = here(config()).fetch(&url).await.unwrap_err();
    assert!(matches!(error, FetchError::Transport { .. }), "{error:?}");
}

#[tokio::test]
async fn images_of_a_text_keep_their_order() {
    let stub = Stub::default().image("/a.png").image("/c.png");
    let base = format!("http://127.0.0.1:{}", stub.start(None).await);
    let text = format!("{base}/c.png {base}/b.png {base}/a.png and {base}/c.png");
    let fetcher = fetcher(config());
    let work = text.clone();
    // On a task of its own, as a handler may do it.
    let images = tokio::spawn(async move { fetcher.prepare(&work).await });
    let images = images.await.unwrap();
    let urls: Vec<_> = images
        .iter()
        .map(|image| &image.url[base.len()..])
        .collect();
    assert_eq!(urls, ["/c.png", "/a.png", "/c.png"]);
    let gets = stub
        .seen()
        .iter()
        .filter(|line| line.starts_with("GET"))
        .count();
    assert_eq!(gets, 3, "each address once");
    let message = ImageFormat::OpenAi.message(&text, &images);
    assert!(message.content.text().contains("/b.png"));
    assert!(!message.content.text().contains("/a.png"));
}

/// Tells how many lookups wait, and lets them go with no address.
#[derive(Clone)]
struct Held {
    waiting: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Held {
    fn new() -> Self {
        Self {
            waiting: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }

    /// The lookups that wait once everything has happened that happens without time.
    async fn waiting(&self) -> usize {
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.waiting.load(Ordering::SeqCst)
    }
}

impl Resolver for Held {
    async fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.gate.acquire().await.unwrap().forget();
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(Vec::new())
    }
}

/// The addresses of so many images, each on a host of its own.
fn elsewhere(count: usize) -> String {
    (0..count)
        .map(|n| format!("http://h{n}.test/a.png "))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn concurrent_fetches_are_bounded_across_clones() {
    let config = FetchConfig {
        head: false,
        ..FetchConfig::default()
    };
    let held = Held::new();
    let one = resolving(config, held.clone());
    let other = one.clone();
    let one = tokio::spawn(async move { one.prepare(&elsewhere(9)).await });
    assert_eq!(held.waiting().await, 9);
    let other = tokio::spawn(async move { other.prepare(&elsewhere(9)).await });
    assert_eq!(held.waiting().await, 10);
    // Who has ended makes room for the next.
    held.gate.add_permits(2);
    assert_eq!(held.waiting().await, 10);
    held.gate.add_permits(16);
    assert!(one.await.unwrap().is_empty() && other.await.unwrap().is_empty());
    assert_eq!(
        (held.waiting().await, held.gate.available_permits()),
        (0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn head_times_out_after_5_and_get_after_30_seconds() {
    for (head, seconds) in [(true, 35), (false, 30)] {
        let config = FetchConfig {
            head,
            ..FetchConfig::default()
        };
        let fetcher = resolving(config, Held::new());
        let before = tokio::time::Instant::now();
        let error = fetcher.fetch("http://h.test/a.png").await;
        let after = Duration::from_secs(30);
        assert_eq!(error, Err(FetchError::TimedOut { after }));
        assert_eq!(before.elapsed().as_secs(), seconds);
    }
}

#[tokio::test]
async fn the_number_of_images_per_text_is_bounded() {
    let stub = Stub::default().image("/a.png");
    let base = format!("http://127.0.0.1:{}", stub.start(None).await);
    let text: String = (0..50).map(|n| format!("{base}/{n}.png ")).collect();
    let config = FetchConfig {
        head: false,
        ..config()
    };
    assert!(fetcher(config).prepare(&text).await.is_empty());
    let mut seen = stub.seen();
    seen.sort();
    let asked: Vec<_> = (0..10).map(|n| format!("GET /{n}.png")).collect();
    assert_eq!(seen, asked);
}
