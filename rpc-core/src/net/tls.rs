//! TLS through rustls: [`TlsConfig`] for clients, [`TlsAcceptor`] for servers.
//!
//! Every configuration that is built here sets its crypto provider (ring) explicitly. The
//! process-wide default is never read, so the providers that other crates of a program enable do
//! not matter.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;

use super::ws::Socket;

/// Which servers a client trusts. Cheap to clone.
#[derive(Clone)]
pub struct TlsConfig(Arc<ClientConfig>);

impl TlsConfig {
    /// Trusts what the operating system trusts.
    ///
    /// # Errors
    /// [`TlsError::Rejected`] if the platform's verifier cannot be set up.
    pub fn platform() -> Result<Self, TlsError> {
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .and_then(BuilderVerifierExt::with_platform_verifier)?
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Trusts the given certification authorities (DER) and no others.
    ///
    /// # Errors
    /// [`TlsError::NoCertificates`] for an empty list, [`TlsError::Rejected`] for a certificate
    /// that cannot be read.
    pub fn with_root_certificates<C: AsRef<[u8]>>(
        roots: impl IntoIterator<Item = C>,
    ) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(CertificateDer::from(root.as_ref().to_vec()))?;
        }
        if store.is_empty() {
            return Err(TlsError::NoCertificates);
        }
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(store)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Trusts the certification authorities of a PEM text and no others.
    ///
    /// # Errors
    /// As [`with_root_certificates`](Self::with_root_certificates), and [`TlsError::BadPem`].
    pub fn with_root_certificates_pem(pem: &[u8]) -> Result<Self, TlsError> {
        Self::with_root_certificates(certificates(pem)?)
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
                "the host is no valid TLS name".to_owned(),
            ))
        })?;
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&self.0));
        let stream = connector.connect(name, tcp).await?;
        Ok(Socket::from_tls(stream.into()))
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConfig(..)")
    }
}

/// A server's certificate and key. Cheap to clone.
#[derive(Clone)]
pub struct TlsAcceptor(Arc<ServerConfig>);

impl TlsAcceptor {
    /// Uses a certificate chain (the server's own certificate first) and its private key, both DER.
    /// The key may be PKCS#8, PKCS#1 or SEC1.
    ///
    /// # Errors
    /// [`TlsError`] if the chain is empty, or if key and certificate cannot be read or do not
    /// match.
    pub fn from_der<C: AsRef<[u8]>>(
        chain: impl IntoIterator<Item = C>,
        key: &[u8],
    ) -> Result<Self, TlsError> {
        let chain = chain
            .into_iter()
            .map(|der| CertificateDer::from(der.as_ref().to_vec()));
        let key = PrivateKeyDer::try_from(key.to_vec()).map_err(|why| TlsError::BadKey {
            message: why.to_owned(),
        })?;
        Self::build(chain.collect(), key)
    }

    /// Like [`from_der`](Self::from_der), from PEM text.
    ///
    /// # Errors
    /// As [`from_der`](Self::from_der), and [`TlsError::BadPem`].
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::BadKey {
            message: error.to_string(),
        })?;
        Self::build(certificates(chain)?, key)
    }

    /// Uses a rustls configuration of your own (client certificates, several names).
    #[must_use]
    pub const fn from_rustls(config: Arc<ServerConfig>) -> Self {
        Self(config)
    }

    fn build(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        if chain.is_empty() {
            return Err(TlsError::NoCertificates);
        }
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

impl fmt::Debug for TlsAcceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsAcceptor(..)")
    }
}

/// Why certificates or a key were not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The input has no certificate.
    #[error("there is no certificate")]
    NoCertificates,
    /// The PEM text cannot be read.
    #[error("the PEM text cannot be read: {message}")]
    BadPem {
        /// What is wrong with it.
        message: String,
    },
    /// The private key cannot be read.
    #[error("the private key cannot be read: {message}")]
    BadKey {
        /// What is wrong with it, without any part of the key.
        message: String,
    },
    /// The TLS library does not accept the configuration.
    #[error("TLS cannot be set up: {message}")]
    Rejected {
        /// The library's error text.
        message: String,
    },
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self::Rejected {
            message: error.to_string(),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError::BadPem {
            message: error.to_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_and_chains_without_a_certificate_are_refused() {
        let none: [&[u8]; 0] = [];
        assert_eq!(
            TlsConfig::with_root_certificates(none).err(),
            Some(TlsError::NoCertificates)
        );
        assert_eq!(
            TlsConfig::with_root_certificates_pem(b"not PEM").err(),
            Some(TlsError::NoCertificates)
        );
    }

    #[test]
    fn bytes_that_are_no_certificate_are_refused() {
        let error = TlsConfig::with_root_certificates([b"junk"]).err();
        assert!(
            matches!(error, Some(TlsError::Rejected { .. })),
            "{error:?}"
        );
    }

    #[test]
    fn a_bad_key_is_refused_and_not_printed() {
        let error = TlsAcceptor::from_der([b"junk"], b"hunter2").unwrap_err();
        assert!(matches!(error, TlsError::BadKey { .. }), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("hunter2"));
    }

    #[test]
    fn the_platform_roots_need_no_process_default() {
        assert!(TlsConfig::platform().is_ok());
        assert!(CryptoProvider::get_default().is_none());
    }
}
