//! TLS through rustls: [`TlsConfig`] for clients, [`TlsAcceptor`] for servers.
//!
//! Every configuration that is built here sets its crypto provider (ring) explicitly. The
//! process-wide default is never read, so the providers that other crates of a program enable do
//! not matter.

use std::io;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;

use super::ws::Socket;

/// Which servers a client trusts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TlsConfig(Arc<ClientConfig>);

impl TlsConfig {
    /// Trusts what the operating system trusts.
    ///
    /// # Errors
    /// [`TlsError`] if the platform's verifier cannot be set up.
    pub fn platform() -> Result<Self, TlsError> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)?
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Trusts the given certification authorities (PEM, one or several) and no others. A server may also
    /// show one of these certificates as its own, such as one of `openssl req -x509`; the name is then
    /// its common name too.
    ///
    /// # Errors
    /// [`TlsError`] if there is no certificate, or one that cannot be read.
    pub fn with_root_certificates(pem: &[u8]) -> Result<Self, TlsError> {
        let roots = certificates(pem)?;
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone())?;
        }
        let webpki = WebPkiServerVerifier::builder_with_provider(store.into(), provider());
        let webpki = webpki
            .build()
            .map_err(|error| TlsError(format!("TLS cannot be set up: {error}")))?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { webpki, roots }))
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Uses a rustls configuration of your own (client certificates, other providers, pinning).
    #[must_use]
    pub const fn from_rustls(config: Arc<ClientConfig>) -> Self {
        Self(config)
    }

    /// Returns the rustls configuration, for HTTP clients that should trust the same servers.
    #[must_use]
    pub const fn as_rustls(&self) -> &Arc<ClientConfig> {
        &self.0
    }

    /// Opens TLS as the client of `host`.
    ///
    /// # Errors
    /// The error of the connection or of rustls; the latter as the inner error. Retrying helps only
    /// for an error of the connection.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn connect(&self, host: &str, tcp: TcpStream) -> io::Result<Socket> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::other(rustls::Error::General(
                "the host is not a valid TLS name".to_owned(),
            ))
        })?;
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.0));
        let stream = connector.connect(name, tcp).await?;
        Ok(Socket::from_tls(stream.into()))
    }
}

/// A server's certificate and key, or a rustls configuration of your own (client certificates, several names). Cheap to
/// clone.
#[derive(Clone, Debug)]
pub struct TlsAcceptor(pub Arc<ServerConfig>);

impl TlsAcceptor {
    /// Shows this certificate chain (PEM), the server's own first, with its private key (PEM).
    ///
    /// # Errors
    /// [`TlsError`] if one of them cannot be read, or they do not fit.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError(format!("the private key cannot be read: {error}")))?;
        let chain = certificates(chain)?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Self(Arc::new(config)))
    }

    /// Opens TLS as the server. Has no deadline of its own.
    ///
    /// # Errors
    /// The error of the connection or of rustls. The connection is closed then.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn accept(&self, tcp: TcpStream) -> io::Result<Socket> {
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&self.0));
        let stream = acceptor.accept(tcp).await?;
        Ok(Socket::from_tls(stream.into()))
    }
}

/// Why certificates or a key were not accepted. Says no part of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self(format!("TLS cannot be set up: {error}"))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let read = read.map_err(|error| TlsError(format!("the PEM text cannot be read: {error}")))?;
    match read.is_empty() {
        true => Err(TlsError("there is no certificate".to_owned())),
        false => Ok(read),
    }
}

/// Says why a certificate is refused, and what helps.
pub(super) fn refusal(why: &CertificateError) -> String {
    use CertificateError::{BadSignature, Other, UnknownIssuer};
    match why {
        // Its issuer may have the name of one that is trusted, or it is an authority itself.
        UnknownIssuer | BadSignature | Other(_) => {
            "its issuer is unknown; name it, or the certificate itself, as trusted".to_owned()
        }
        why => why.to_string(),
    }
}

/// Verifies as webpki does, and accepts trusted certificates that servers show as their own.
#[derive(Debug)]
struct Verifier {
    webpki: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext, Other};

        let webpki = &self.webpki;
        let verified = webpki.verify_server_cert(shown, intermediates, name, ocsp, now);
        // Whether it is valid now is checked before these.
        let is_of_form = matches!(
            &verified,
            Err(rustls::Error::InvalidCertificate(
                Other(_) | NotValidForName | NotValidForNameContext { .. }
            ))
        );
        if !is_of_form || !self.roots.contains(shown) {
            return verified;
        }
        let host = name.to_str();
        let is_common = |common: &[u8]| common.eq_ignore_ascii_case(host.as_bytes());
        if !common_names(shown).any(is_common) {
            verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// Returns the common names in a certificate that is trusted as a whole.
fn common_names(der: &[u8]) -> impl Iterator<Item = &[u8]> {
    /// The object identifier 2.5.4.3, encoded.
    const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
    (0..der.len()).filter_map(|at| {
        let [_, len, value @ ..] = der.get(at..)?.strip_prefix(COMMON_NAME)? else {
            return None;
        };
        value.get(..usize::from(*len))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_a_valid_certificate_are_refused() {
        let junk = b"-----BEGIN CERTIFICATE-----\nanVuaw==\n-----END CERTIFICATE-----\n";
        for (pem, why) in [
            (&b""[..], "there is no certificate"),
            (b"not PEM", "there is no certificate"),
            (junk, "TLS cannot be set up"),
        ] {
            let error = TlsConfig::with_root_certificates(pem).unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
        }
    }

    #[test]
    fn a_bad_key_is_refused_and_not_printed() {
        let error = TlsAcceptor::from_pem(b"junk", b"hunter2").unwrap_err();
        let words = "the private key cannot be read";
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(!format!("{error:?} {error}").contains("hunter2"));
    }

    #[test]
    fn the_platform_roots_need_no_process_default() {
        assert!(TlsConfig::platform().is_ok());
        assert!(CryptoProvider::get_default().is_none());
    }
}
