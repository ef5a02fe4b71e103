//! [`fetch`]: one request over HTTP by the page's own client, and its answer piece by piece.

use std::future::poll_fn;
use std::pin::Pin;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, Response};
use js_sys::futures::JsFuture;
use js_sys::{Array, Promise, Reflect, Uint8Array};
use send_wrapper::SendWrapper;
use wasm_bindgen::{JsCast as _, JsValue};
use web_sys::{
    AbortController, Headers, ReadableStreamDefaultReader, RequestCache, RequestInit,
    RequestRedirect,
};

use super::page::call;
use crate::error::CloseReason;

/// The body of an answer. Dropping it aborts the request.
pub struct FetchBody(SendWrapper<Exchange>);

crate::debug::debug_fields!([] FetchBody, this => { is_empty: this.0.reader.is_none() });

struct Exchange {
    abort: AbortController,
    reader: Option<ReadableStreamDefaultReader>,
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Sends a request, whose target is a whole URL, and waits for the head of the answer: its status and its
/// type, which is all that a page sees of an answer from elsewhere. Redirects are not followed.
///
/// # Errors
/// [`CloseReason::Transport`] with the page's words, which do not say whether anything was sent.
///
/// # Cancel safety
/// Dropping the future aborts the request.
pub async fn fetch(request: Request<Bytes>) -> Result<Response<FetchBody>, CloseReason> {
    let (body, answer) = FetchBody::start(&request).map_err(|error| failed(&error))?;
    body.head(answer.await?)
}

impl FetchBody {
    fn start(request: &Request<Bytes>) -> Result<(Self, impl Settled + use<>), JsValue> {
        let headers = Headers::new()?;
        for (name, value) in request.headers() {
            let value: String = value.as_bytes().iter().copied().map(char::from).collect();
            headers.append(name.as_str(), &value)?;
        }
        let abort = AbortController::new()?;
        let init = RequestInit::new();
        init.set_method(request.method().as_str());
        init.set_headers(&headers);
        init.set_signal(Some(&abort.signal()));
        init.set_redirect(RequestRedirect::Error);
        init.set_cache(RequestCache::NoStore);
        if !request.body().is_empty() {
            init.set_body(&Uint8Array::from(&request.body()[..]));
        }
        let url = request.uri().to_string();
        let answer = call("fetch", &Array::of2(&url.into(), &init))?;
        let exchange = Exchange {
            abort,
            reader: None,
        };
        let body = Self(SendWrapper::new(exchange));
        Ok((body, settled(answer.unchecked_into())))
    }

    fn head(mut self, answer: SendWrapper<JsValue>) -> Result<Response<Self>, CloseReason> {
        let answer = answer.take().unchecked_into::<web_sys::Response>();
        let reader = answer.body().map(|body| body.get_reader());
        self.0.reader = reader.map(wasm_bindgen::JsCast::unchecked_into);
        let mut head = Response::builder().status(answer.status());
        if let Ok(Some(kind)) = answer.headers().get(CONTENT_TYPE.as_str()) {
            head = head.header(CONTENT_TYPE, kind);
        }
        head.body(self).map_err(|error| CloseReason::Transport {
            message: error.to_string(),
        })
    }

    /// Returns the next piece; `None` at the end.
    ///
    /// # Cancel safety
    /// Dropping the future loses the piece.
    pub async fn next(&mut self) -> Option<Result<Bytes, CloseReason>> {
        let piece = settled(self.0.reader.as_ref()?.read());
        match piece.await {
            Ok(piece) => {
                let value = Reflect::get(&piece, &"value".into()).ok()?;
                let bytes = value.dyn_ref::<Uint8Array>()?;
                Some(Ok(bytes.to_vec().into()))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

/// What a promise becomes, in a future that is `Send` as everything here.
trait Settled: Future<Output = Result<SendWrapper<JsValue>, CloseReason>> + Send {}

impl<F: Future<Output = Result<SendWrapper<JsValue>, CloseReason>> + Send> Settled for F {}

fn settled(promise: Promise) -> impl Settled {
    let mut waiting = SendWrapper::new(JsFuture::from(promise));
    poll_fn(move |cx| {
        let settled = Pin::new(&mut *waiting).poll(cx);
        settled.map(|it| it.map(SendWrapper::new).map_err(|error| failed(&error)))
    })
}

fn failed(error: &JsValue) -> CloseReason {
    let error = error.dyn_ref::<js_sys::Error>();
    let message = error.map_or_else(
        || "the request has failed".to_owned(),
        |it| it.message().into(),
    );
    CloseReason::Transport { message }
}
