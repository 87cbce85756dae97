//! What requests take up while they are served: places and bytes, of each caller and of all.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::body::{Body, Incoming};

use super::reply::Refused;
use crate::config::http::HttpConfig;
use crate::transport::crowd::{Crowd, Place};

/// What all requests that are being served take up. Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Load {
    requests: Arc<Crowd<String>>,
    bytes: Arc<Crowd<String>>,
    all_bytes: Arc<Crowd<()>>,
}

/// What one request takes up, until this is dropped.
pub(super) struct Taken {
    _request: Place<String>,
    bytes: Place<String>,
    all_bytes: Place<()>,
}

impl Load {
    /// Nothing is served, and nobody may take up more than `config` says.
    pub(super) fn new(config: &HttpConfig) -> Self {
        Self {
            requests: Crowd::new(config.max_requests_per_caller),
            bytes: Crowd::new(config.bytes_of_one()),
            all_bytes: Crowd::new(config.max_bytes_in_flight),
        }
    }

    /// From now on the bounds are those of `config`; what is being served goes on.
    pub(super) fn limit(&self, config: &HttpConfig) {
        self.requests.set_most(config.max_requests_per_caller);
        self.bytes.set_most(config.bytes_of_one());
        self.all_bytes.set_most(config.max_bytes_in_flight);
    }

    /// Takes the place of a request with this body, before it is read: a length that is not said may be the longest.
    ///
    /// # Errors
    /// `whose` requests take up as much as those of one caller may, or those of all callers do.
    pub(super) fn take(&self, whose: &str, body: &Incoming, longest: usize) -> Result<Taken, Refused> {
        self.take_within(whose, self.requests.most(), body, longest)
    }

    /// The same for a caller of whose requests at most `most` are served at a time.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub(super) fn take_within(
        &self,
        whose: &str,
        most: usize,
        body: &Incoming,
        longest: usize,
    ) -> Result<Taken, Refused> {
        let request = self.requests.enter_within(whose.to_owned(), 1, most).ok_or_else(|| {
            let reason = format!("{most} of your requests are being served; wait for one to finish");
            Refused::text(StatusCode::TOO_MANY_REQUESTS, reason)
        })?;
        let said = body.size_hint().upper().and_then(|said| usize::try_from(said).ok());
        let count = said.unwrap_or(longest).min(longest);
        let bytes = self.bytes.enter_with(whose.to_owned(), count).ok_or_else(|| {
            let most = self.bytes.most();
            let reason = format!(
                "with this one, your requests that are being served have more than {most} bytes; wait for one to finish"
            );
            Refused::text(StatusCode::TOO_MANY_REQUESTS, reason)
        })?;
        let all_bytes = self.all_bytes.enter_with((), count).ok_or_else(|| {
            let reason = "the requests that are being served already have as many bytes as they may; try again later";
            Refused::text(StatusCode::SERVICE_UNAVAILABLE, reason)
        })?;
        Ok(Taken { _request: request, bytes, all_bytes })
    }
}

impl Taken {
    /// Gives back what is over the `count` bytes that the body turned out to have.
    pub(super) fn shrink(&mut self, count: usize) {
        self.bytes.shrink(count);
        self.all_bytes.shrink(count);
    }
}
