//! What the commands that listen share: their flags, and how they are ended.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};

use contextweaver_gateway::{HostRule, HttpConfig, OriginRule, Token, TokenHolder};

/// The flags of what listens; each replaces a field of the configuration.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "HTTP")]
pub(super) struct HttpArgs {
    #[arg(long, value_name = "ADDRESS:PORT", help = listen_help(HttpConfig::default().listen), value_parser = address)]
    listen: Option<SocketAddr>,
    /// A file with the bearer token that clients must present
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// A host name that clients may reach it by, or `*`; may be repeated
    #[arg(long = "allowed-host", value_name = "HOST[:PORT]", value_parser = HostRule::parse)]
    allowed_hosts: Vec<HostRule>,
    /// An origin whose pages may use it, or `*`; may be repeated
    #[arg(long = "allowed-origin", value_name = "ORIGIN", value_parser = OriginRule::parse)]
    allowed_origins: Vec<OriginRule>,
}

/// An address to listen at; `localhost` is that of this machine alone.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let named = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let parsed = named.as_deref().unwrap_or(text).parse::<SocketAddr>();
    parsed.map_err(|_| "write an IP address and a port, such as 127.0.0.1:8100".to_owned())
}

/// The help of `--listen` of a command that listens at `default`.
pub(super) fn listen_help(default: SocketAddr) -> String {
    format!("The address to listen at [default: {default}]")
}

impl HttpArgs {
    /// The first flag that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--listen", self.listen.is_some()),
            ("--token-file", self.token_file.is_some()),
            ("--allowed-host", !self.allowed_hosts.is_empty()),
            ("--allowed-origin", !self.allowed_origins.is_empty()),
        ];
        flags.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    pub(super) fn apply(&self, config: &mut HttpConfig) -> Result<()> {
        if let Some(listen) = self.listen {
            config.listen = listen;
        }
        if let Some(path) = &self.token_file {
            if config.tokens.iter().any(|holder| *holder != TokenHolder::anyone(holder.token.clone())) {
                // Its holder would be shown what no profile of the file hides.
                bail!("--token-file: the configuration has `http.tokens`; add an entry there");
            }
            let token = Token::read(path).map_err(|reason| anyhow!("--token-file: {reason}"))?;
            config.tokens = vec![TokenHolder::anyone(token)];
        }
        if !self.allowed_hosts.is_empty() {
            config.allowed_hosts = self.allowed_hosts.clone();
        }
        if !self.allowed_origins.is_empty() {
            config.allowed_origins = self.allowed_origins.clone();
        }
        Ok(())
    }
}

/// What this process is told by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// To end. A terminal that closes ends it as well, and as orderly.
    End,
    /// To read its configuration again.
    #[cfg_attr(windows, allow(dead_code, reason = "Windows has no such signal"))]
    Reload,
}

/// Takes signals from now on; what is returned waits for the next.
///
/// # Errors
/// The signals cannot be waited for.
#[cfg(unix)]
pub(super) fn signals() -> Result<impl AsyncFnMut() -> Signal> {
    use std::io::IsTerminal;
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let on_terminal = std::io::stderr().is_terminal();
    Ok(async move || {
        tokio::select! {
            _ = terminate.recv() => Signal::End,
            _ = interrupt.recv() => Signal::End,
            // A terminal that has closed sends this signal too, and is none any more.
            _ = hangup.recv() => match on_terminal && !std::io::stderr().is_terminal() {
                true => Signal::End,
                false => Signal::Reload,
            },
        }
    })
}

/// Takes what a console says from now on; what is returned waits for the next.
///
/// # Errors
/// The console cannot be waited for.
#[cfg(windows)]
pub(super) fn signals() -> Result<impl AsyncFnMut() -> Signal> {
    use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};

    let (mut interrupt, mut stop, mut close, mut shutdown) =
        (ctrl_c()?, ctrl_break()?, ctrl_close()?, ctrl_shutdown()?);
    Ok(async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = stop.recv() => {}
            _ = close.recv() => {}
            _ = shutdown.recv() => {}
        }
        Signal::End
    })
}

/// The signals to this process since it began to start. One to read the configuration again waits until it can be heeded.
pub(super) struct Told<N> {
    next: N,
    /// Whether there is one to read the configuration again that nobody has heeded yet.
    is_to_reload: bool,
}

impl<N: AsyncFnMut() -> Signal> From<N> for Told<N> {
    fn from(next: N) -> Self {
        Self { next, is_to_reload: false }
    }
}

impl<N: AsyncFnMut() -> Signal> Told<N> {
    /// The next signal that nobody has heeded.
    pub(super) async fn next(&mut self) -> Signal {
        if std::mem::take(&mut self.is_to_reload) { Signal::Reload } else { (self.next)().await }
    }

    /// Ends at a signal to end.
    pub(super) async fn ended(&mut self) {
        while (self.next)().await == Signal::Reload {
            self.is_to_reload = true;
        }
    }

    /// What comes of `work`; `None` at a signal to end, with which it is dropped.
    pub(super) async fn unless_ended<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.ended() => None,
        }
    }
}

/// Ends when this process is told anything by a signal: it has no configuration to read again.
///
/// # Errors
/// The signals cannot be waited for.
pub(super) fn signalled() -> Result<impl Future<Output = ()>> {
    let mut next = signals()?;
    Ok(async move {
        next().await;
    })
}
