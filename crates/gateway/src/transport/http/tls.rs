//! TLS on a connection, and what the certificate of a client says about it.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;

use crate::config::tls::{CertificateName, TlsConfig};

/// How long a client has for its part of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The tag and identifier of the common name of a subject in DER.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// A certificate that was checked when a connection began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    dns: Vec<String>,
    uris: Vec<String>,
    /// Its only common name.
    common_name: Option<String>,
    /// Who signed it, and its number there.
    issuer: Vec<u8>,
    serial: Vec<u8>,
    /// The digest of the authorities that it was checked against.
    authorities: Option<[u8; 32]>,
}

impl Certificate {
    fn read(der: &CertificateDer<'_>, authorities: Option<[u8; 32]>) -> Option<Self> {
        let read = EndEntityCert::try_from(der).ok()?;
        Some(Self {
            dns: read.valid_dns_names().map(str::to_ascii_lowercase).collect(),
            uris: read.valid_uri_names().map(str::to_owned).collect(),
            common_name: common_name(read.subject()),
            issuer: read.issuer().to_vec(),
            serial: read.serial().to_vec(),
            authorities,
        })
    }

    /// Whether it says that.
    pub(super) fn says(&self, name: &CertificateName) -> bool {
        match name {
            CertificateName::Dns(name) => self.dns.contains(name),
            CertificateName::Uri(name) => self.uris.contains(name),
            CertificateName::CommonName(name) => self.common_name.as_ref() == Some(name),
        }
    }

    /// Whether the authorities of now are still those by which it was checked, and have not taken it back since.
    pub(super) fn is_current(&self, config: &TlsConfig) -> bool {
        let lists = config.revoked.iter().filter(|list| list.issuer() == self.issuer);
        let is_revoked = lists.map(|list| list.find_serial(&self.serial)).any(|found| !matches!(found, Ok(None)));
        self.authorities.is_some() && self.authorities == config.authorities && !is_revoked
    }
}

/// Speaks TLS from now on.
///
/// # Errors
/// The client does not, shows no certificate that is taken, or takes too long.
pub(super) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    config: &TlsConfig,
    stream: S,
) -> std::io::Result<(TlsStream<S>, Option<Arc<Certificate>>)> {
    let accepting = TlsAcceptor::from(Arc::clone(&config.server)).accept(stream);
    let stream = tokio::time::timeout(HANDSHAKE, accepting).await.map_err(|_| std::io::ErrorKind::TimedOut)??;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let certificate = shown.and_then(|der| Certificate::read(der, config.authorities)).map(Arc::new);
    Ok((stream, certificate))
}

/// The next element of a text in DER: its tag, its content, and what follows it.
fn element(text: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = text.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => (usize::from(*rest.first()?) << 8 | usize::from(*rest.get(1)?), &rest[2..]),
        // Names are not as long as that.
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The common name of a subject, if it has one alone: of two nobody knows which is meant.
fn common_name(mut subject: &[u8]) -> Option<String> {
    let mut names = Vec::new();
    while let Some((_set, mut attributes, rest)) = element(subject) {
        subject = rest;
        while let Some((_sequence, attribute, others)) = element(attributes) {
            attributes = others;
            let (_, kind, value) = element(attribute)?;
            if kind == COMMON_NAME {
                let (tag, text, _) = element(value)?;
                // UTF8String, PrintableString, IA5String; of others the bytes are not valid UTF-8.
                names.push(match tag {
                    0x0c | 0x13 | 0x16 => String::from_utf8(text.to_vec()).ok()?,
                    _ => return None,
                });
            }
        }
    }
    match names.len() {
        1 => names.pop(),
        _ => None,
    }
}
