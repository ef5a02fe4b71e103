//! [`layer`]: the spans of connections and calls, sent to an OpenTelemetry collector.

use std::error::Error;
use std::sync::OnceLock;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use rpc_core::net::tls::TlsConfig;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::cli::complain;

/// The standard variables with the URL of the collector. Others, such as `OTEL_SERVICE_NAME`, are
/// read by OpenTelemetry itself.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Returns a layer that sends the spans; `None` without a collector in the environment, or if its
/// URL cannot be used.
pub(super) fn layer<S>() -> Option<impl Layer<S>>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    ENDPOINTS.iter().find(|name| is_set(name))?;
    let exporter = exporter()
        .inspect_err(|error| complain(format_args!("warning: no traces are sent: {error}")))
        .ok()?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("switchboard");
    }
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build();
    let tracer = provider.tracer("switchboard");
    let _ = PROVIDER.set(provider);
    let spans = Targets::new().with_target("rpc", Level::DEBUG);
    let layer = tracing_opentelemetry::layer().with_tracer(tracer);
    Some(layer.with_filter(spans))
}

/// Creates the exporter. Its client blocks, and so is made on a thread without a runtime.
fn exporter() -> Result<SpanExporter, Box<dyn Error + Send + Sync>> {
    let client = std::thread::spawn(|| {
        let tls = TlsConfig::platform()?;
        let client = reqwest::blocking::Client::builder();
        let client = client.tls_backend_preconfigured((**tls.as_rustls()).clone());
        Ok::<_, Box<dyn Error + Send + Sync>>(client.build()?)
    });
    let client = client.join().map_err(|_| "its thread panicked")??;
    Ok(SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .build()?)
}

/// Sends what has not been sent yet, for at most a few seconds.
pub(crate) fn flush() {
    if let Some(provider) = PROVIDER.get()
        && let Err(error) = provider.shutdown()
    {
        complain(format_args!("warning: traces were lost: {error}"));
    }
}
