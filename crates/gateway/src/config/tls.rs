//! What a configuration says about TLS: the certificate that clients are shown, and which certificates of clients are
//! whose.
//!
//! The files are read when the configuration is, so that a file that cannot be used is found before anything begins, and
//! so that reading the configuration again takes renewed files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use webpki::{CertRevocationList, OwnedCertRevocationList};

use super::caller::{EntryError, check_name};
use crate::common::settings::FieldError;
use crate::session::identity::Identity;
use contextweaver_core::files::read_file;

/// The largest file of certificates or keys, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// TLS, as it is configured and with what was in its files.
#[derive(Clone)]
pub struct TlsConfig {
    /// What the connections are made with.
    pub(crate) server: Arc<ServerConfig>,
    /// The digest of the certificates that clients' certificates are checked against; `None` when none are asked for.
    pub(crate) authorities: Option<[u8; 32]>,
    /// The certificates of clients that their authorities have taken back.
    pub(crate) revoked: Vec<Arc<CertRevocationList<'static>>>,
    /// Whether a client must show a certificate.
    pub(crate) is_required: bool,
    /// Whose certificate is whose; every certificate is the same caller's when there are none.
    pub(crate) clients: Vec<CertificateHolder>,
    /// The digest of all files.
    digest: [u8; 32],
}

impl PartialEq for TlsConfig {
    fn eq(&self, other: &Self) -> bool {
        let parts = |of: &Self| (of.digest, of.authorities, of.is_required);
        parts(self) == parts(other) && self.clients == other.clients
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsConfig").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// What a certificate says about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateName {
    /// A DNS name among its alternative names.
    Dns(String),
    /// A URI among its alternative names, such as a SPIFFE id.
    Uri(String),
    /// The common name of its subject.
    CommonName(String),
}

/// A certificate of a client, by what it says, and who its holder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateHolder {
    /// What the certificate says.
    pub certificate: CertificateName,
    /// The client that shows it.
    pub identity: Arc<Identity>,
}

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClientCertificates {
    /// Nothing is served without.
    #[default]
    Required,
    /// Who shows none needs a token.
    Optional,
}

/// The section `http.tls` of a configuration file, before it is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TlsSection {
    cert: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_crl: Option<PathBuf>,
    #[serde(default)]
    client_certificates: ClientCertificates,
    #[serde(default)]
    clients: Vec<CertificateEntry>,
}

/// An entry of `http.tls.clients`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateEntry {
    name: String,
    dns: Option<String>,
    uri: Option<String>,
    common_name: Option<String>,
    profile: Option<String>,
}

impl CertificateEntry {
    fn checked(self) -> Result<CertificateHolder, EntryError> {
        check_name(&self.name)?;
        let names = [
            self.dns.map(|name| CertificateName::Dns(name.to_ascii_lowercase())),
            self.uri.map(CertificateName::Uri),
            self.common_name.map(CertificateName::CommonName),
        ];
        let mut names = names.into_iter().flatten();
        match (names.next(), names.next()) {
            (Some(certificate), None) => {
                let identity = Arc::new(Identity { name: self.name, profile: self.profile });
                Ok(CertificateHolder { certificate, identity })
            }
            _ => Err(EntryError::NoCertificate(self.name)),
        }
    }
}

impl TlsSection {
    /// The checked configuration; paths are relative to `folder`.
    ///
    /// # Errors
    /// [`FieldError`] for the first field that cannot be used.
    pub(super) fn checked(self, folder: &Path) -> Result<TlsConfig, FieldError> {
        let mut all = Sha256::new();
        let mut read = |field: &str, path: &Path| {
            let path = folder.join(path);
            let bytes = read_file(&path, LARGEST_FILE).map_err(|error| FieldError::new(field, error.to_string()))?;
            all.update((bytes.len() as u64).to_le_bytes());
            all.update(&bytes);
            Ok::<_, FieldError>((path, bytes))
        };
        let (cert_path, cert) = read("cert", &self.cert)?;
        let (key_path, key) = read("key", &self.key)?;
        let chain = certificates(&cert_path, &cert).map_err(|reason| FieldError::new("cert", reason))?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| {
            let reason = format!("{}: not a private key in PEM form: {error}", key_path.display());
            FieldError::new("key", reason)
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let building = |error: rustls::Error| FieldError::new("cert", error);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(building)?;
        let is_required = self.client_certificates == ClientCertificates::Required;
        let mut revoked = Vec::new();
        let (builder, authorities) = match &self.client_ca {
            None if self.client_crl.is_some() => {
                let reason =
                    "says which certificates are revoked, but `client_ca`, which says which are checked, is missing";
                return Err(FieldError::new("client_crl", reason));
            }
            None if !self.clients.is_empty() => {
                let reason =
                    "says whose certificates are whose, but `client_ca`, which says which are checked, is missing";
                return Err(FieldError::new("clients", reason));
            }
            None => (builder.with_no_client_auth(), None),
            Some(path) => {
                let (path, bytes) = read("client_ca", path)?;
                let bad = |reason: String| FieldError::new("client_ca", reason);
                let mut roots = RootCertStore::empty();
                for certificate in certificates(&path, &bytes).map_err(bad)? {
                    let added = roots.add(certificate);
                    added.map_err(|error| bad(format!("{}: {error}", path.display())))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = if is_required { verifier } else { verifier.allow_unauthenticated() };
                let verifier = match &self.client_crl {
                    None => verifier,
                    Some(path) => {
                        let (path, bytes) = read("client_crl", path)?;
                        let lists =
                            revocations(&path, &bytes).map_err(|reason| FieldError::new("client_crl", reason))?;
                        revoked = lists.iter().map(|(_, list)| Arc::clone(list)).collect();
                        verifier.with_crls(lists.into_iter().map(|(der, _)| der))
                    }
                };
                let verifier = verifier.build().map_err(|error| bad(format!("{}: {error}", path.display())))?;
                (builder.with_client_cert_verifier(verifier), Some(Sha256::digest(&bytes).into()))
            }
        };
        let mut server = builder.with_single_cert(chain, key).map_err(|error| {
            let reason = format!("{} does not match {}: {error}", key_path.display(), cert_path.display());
            FieldError::new("key", reason)
        })?;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut clients: Vec<CertificateHolder> = Vec::with_capacity(self.clients.len());
        for (number, entry) in self.clients.into_iter().enumerate() {
            let bad = |error: EntryError| FieldError::new(format!("clients[{number}]"), error);
            let holder = entry.checked().map_err(bad)?;
            if let Some(other) = clients.iter().find(|other| other.certificate == holder.certificate) {
                let names = (holder.identity.name.clone(), other.identity.name.clone());
                return Err(bad(EntryError::SameCertificate(names.0, names.1)));
            }
            clients.push(holder);
        }
        let digest = all.finalize().into();
        Ok(TlsConfig { server: Arc::new(server), authorities, revoked, is_required, clients, digest })
    }
}

/// The lists of revoked certificates in a file, one at least.
type Revocations = Vec<(CertificateRevocationListDer<'static>, Arc<CertRevocationList<'static>>)>;

fn revocations(path: &Path, pem: &[u8]) -> Result<Revocations, String> {
    let bad = |reason: String| format!("{}: {reason}", path.display());
    let read: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(pem).collect();
    let read = read.map_err(|error| bad(format!("not in PEM form: {error}")))?;
    if read.is_empty() {
        return Err(bad("no certificate revocation list in PEM form".to_owned()));
    }
    let parsed = read.into_iter().map(|der| {
        let list = OwnedCertRevocationList::from_der(&der).map_err(|error| bad(error.to_string()))?;
        Ok((der, Arc::new(list.into())))
    });
    parsed.collect()
}

/// The certificates in a file, one at least.
fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(read) if read.is_empty() => Err(format!("{}: no certificate in PEM form", path.display())),
        Ok(read) => Ok(read),
        Err(error) => Err(format!("{}: not in PEM form: {error}", path.display())),
    }
}
