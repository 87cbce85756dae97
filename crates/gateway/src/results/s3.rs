//! Artifacts in a bucket of S3 or of what speaks like it, for replicas on several machines.
//!
//! ```text
//! PREFIX/artifacts/<SHA-256 of the handle>    one line of JSON, what is known of the artifact; then its bytes
//! PREFIX/key                                  what handles are made with
//! ```
//!
//! An artifact is one object, so that it is replaced as a whole. Equal bytes under two handles are kept twice: objects
//! cannot be counted safely, and whoever removes one must not harm another. What is removed here is not removed from
//! versions that the bucket keeps. Requests are made on threads of their own and end after a bounded time, so that the
//! store may be used from anywhere that may wait.

use serde::{Deserialize, Serialize};

use crate::common::settings::{ExpandError, FieldError};

/// A bucket, and how it is reached.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct S3Config {
    /// The name of the bucket.
    pub bucket: String,
    /// What the names of the objects begin with; nothing by default.
    #[serde(default)]
    pub prefix: String,
    /// The region; that of the environment when `None`.
    pub region: Option<String>,
    /// The address of a service that is not Amazon's.
    pub endpoint: Option<String>,
    /// The key that requests are signed with; with the environment's, or that of the machine, when `None`.
    pub access_key_id: Option<String>,
    /// The secret of the key.
    #[serde(skip_serializing)]
    pub secret_access_key: Option<String>,
}

impl std::fmt::Debug for S3Config {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("S3Config")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl S3Config {
    /// Puts the variables in place, and checks the fields.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub(super) fn check(&mut self, expand: &dyn Fn(&str) -> Result<String, ExpandError>) -> Result<(), FieldError> {
        for (field, text) in [
            ("endpoint", &mut self.endpoint),
            ("access_key_id", &mut self.access_key_id),
            ("secret_access_key", &mut self.secret_access_key),
        ] {
            if let Some(text) = text {
                *text = expand(text).map_err(|error| FieldError::new(field, error))?;
            }
        }
        let wrong = |field: &str, reason: &str| Err(FieldError::new(field, reason));
        if !cfg!(feature = "s3") {
            return wrong(
                "bucket",
                "this build has no S3 support; build it with the feature `s3` of \
                                    contextweaver-gateway",
            );
        }
        if self.bucket.is_empty() {
            return wrong("bucket", "must not be empty");
        }
        let is_url = |url: &String| url.starts_with("https://") || url.starts_with("http://");
        if self.endpoint.as_ref().is_some_and(|endpoint| !is_url(endpoint)) {
            return wrong("endpoint", "must begin with `https://` or `http://`");
        }
        if self.access_key_id.is_some() != self.secret_access_key.is_some() {
            return wrong("secret_access_key", "goes with `access_key_id`; give both, or neither");
        }
        Ok(())
    }
}

#[cfg(feature = "s3")]
pub(crate) use store::S3Artifacts;
#[cfg(all(test, feature = "s3"))]
pub(crate) use store::tests::stored_objects;

#[cfg(feature = "s3")]
mod store {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::StreamExt;
    use object_store::aws::AmazonS3Builder;
    use object_store::path::Path;
    use object_store::{
        ClientOptions, Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutPayload,
        RetryConfig,
    };
    use tokio::runtime::{Builder, Runtime};

    use super::S3Config;
    use crate::common::work::while_waiting;
    use contextweaver_context::event::{ArtifactRef, ContentHash, Handle};
    use contextweaver_context::store::{ArtifactStore, StoreError};
    use contextweaver_core::text::sha256_hex;

    /// How long one request may take, and how long it is tried again.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// How long an operation may take, which may be many requests.
    const LONGEST: Duration = Duration::from_secs(60);

    /// Tries after the first.
    const RETRIES: usize = 2;

    /// Requests of one list at a time.
    const AT_ONCE: usize = 32;

    /// Bytes in which the line of JSON most often ends.
    const HEAD: u64 = 4_096;

    /// Bytes in which it must end: what is longer is not ours.
    const LONGEST_HEAD: u64 = 1024 * 1024;

    /// An artifact store in a bucket.
    pub(crate) struct S3Artifacts {
        /// `None` only while it is dropped.
        runtime: Option<Runtime>,
        bucket: Arc<dyn ObjectStore>,
        place: String,
        prefix: String,
    }

    impl std::fmt::Debug for S3Artifacts {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.debug_struct("S3Artifacts").field("place", &self.place).finish_non_exhaustive()
        }
    }

    impl Drop for S3Artifacts {
        fn drop(&mut self) {
            // Waiting for its threads is not permitted everywhere.
            if let Some(runtime) = self.runtime.take() {
                runtime.shutdown_background();
            }
        }
    }

    /// What is known of an artifact, and where its bytes begin.
    fn head(object: &[u8]) -> Option<(ArtifactRef, usize)> {
        let end = object.iter().position(|byte| *byte == b'\n')?;
        Some((serde_json::from_slice(object.get(..end)?).ok()?, end + 1))
    }

    impl S3Artifacts {
        /// The store in this bucket. Nothing is asked of it yet.
        ///
        /// # Errors
        /// The configuration cannot be used.
        pub(crate) fn new(config: &S3Config) -> Result<Self, StoreError> {
            let place = format!("s3://{}/{}", config.bucket, config.prefix);
            let failed = |reason: String| StoreError::Backend { place: place.clone(), reason };
            // Whoever was first has chosen the same.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let retry = RetryConfig { max_retries: RETRIES, retry_timeout: PATIENCE, ..RetryConfig::default() };
            let options = ClientOptions::new().with_timeout(PATIENCE).with_connect_timeout(PATIENCE / 2);
            let keys = config.access_key_id.as_ref().zip(config.secret_access_key.as_ref());
            // A token of the environment belongs to the keys of the environment.
            let builder = if keys.is_some() { AmazonS3Builder::new() } else { AmazonS3Builder::from_env() };
            let mut builder = builder.with_bucket_name(&config.bucket).with_retry(retry).with_client_options(options);
            if let Some(region) = &config.region {
                builder = builder.with_region(region);
            }
            if let Some(endpoint) = &config.endpoint {
                builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
            }
            if let Some((id, secret)) = keys {
                builder = builder.with_access_key_id(id).with_secret_access_key(secret);
            }
            let bucket = builder.build().map_err(|error| failed(error.to_string()))?;
            Self::of(Arc::new(bucket), place.clone(), &config.prefix)
        }

        /// The store in this bucket, whatever it is.
        pub(super) fn of(bucket: Arc<dyn ObjectStore>, place: String, prefix: &str) -> Result<Self, StoreError> {
            let runtime = Builder::new_multi_thread().worker_threads(2).thread_name("artifacts").enable_all().build();
            let runtime =
                runtime.map_err(|error| StoreError::Backend { place: place.clone(), reason: error.to_string() })?;
            Ok(Self { runtime: Some(runtime), bucket, place, prefix: prefix.trim_matches('/').to_owned() })
        }

        fn failed(&self, reason: impl std::fmt::Display) -> StoreError {
            StoreError::Backend { place: self.place.clone(), reason: reason.to_string() }
        }

        fn path(&self, name: &str) -> Path {
            Path::from_iter(self.prefix.split('/').chain(name.split('/')).filter(|part| !part.is_empty()))
        }

        fn path_of(&self, handle: &Handle) -> Path {
            self.path(&format!("artifacts/{}", sha256_hex(handle.as_str().as_bytes())))
        }

        /// Waits for requests, which are made on threads of the store.
        fn wait<T: Send + 'static>(
            &self,
            requests: impl Future<Output = Result<T, Error>> + Send + 'static,
        ) -> Result<Result<T, Error>, StoreError> {
            let runtime = self.runtime.as_ref().ok_or_else(|| self.failed("it is being closed"))?;
            let (sender, answer) = sync_channel(1);
            runtime.spawn(async move {
                let _ = sender.send(requests.await);
            });
            let answered = while_waiting(|| answer.recv_timeout(LONGEST));
            answered.map_err(|_| self.failed(format!("no answer within {} s", LONGEST.as_secs())))
        }

        /// The same; `None` where there is no such object.
        fn wait_if_there<T: Send + 'static>(
            &self,
            requests: impl Future<Output = Result<T, Error>> + Send + 'static,
        ) -> Result<Option<T>, StoreError> {
            match self.wait(requests)? {
                Ok(value) => Ok(Some(value)),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(self.failed(error)),
            }
        }

        /// The secret of this bucket, the same for all who open it: `fresh`, where it had none.
        ///
        /// # Errors
        /// The bucket cannot be read or written, or what it holds is not a key.
        pub(crate) fn key(&self, fresh: &[u8; 32]) -> Result<[u8; 32], StoreError> {
            let (path, bucket) = (self.path("key"), Arc::clone(&self.bucket));
            let fresh = PutPayload::from(fresh.to_vec());
            let kept = self.wait(async move {
                match bucket.put_opts(&path, fresh, PutMode::Create.into()).await {
                    Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
                    Err(error) => return Err(error),
                }
                bucket.get(&path).await?.bytes().await
            })?;
            let kept = kept.map_err(|error| self.failed(error))?;
            <[u8; 32]>::try_from(&kept[..])
                .map_err(|_| self.failed(format!("`key` has {} bytes; a key has 32", kept.len())))
        }

        /// Asks whether the bucket can be read; nothing is written.
        ///
        /// # Errors
        /// The bucket cannot be read.
        pub(crate) fn look(config: &S3Config) -> Result<(), StoreError> {
            let store = Self::new(config)?;
            let (path, bucket) = (store.path("key"), Arc::clone(&store.bucket));
            store.wait_if_there(async move { bucket.head(&path).await }).map(drop)
        }

        /// What is known of all artifacts, by handle, each with the time at which it was stored. What is not an artifact of
        /// ours is left out.
        fn all(&self) -> Result<Vec<(ArtifactRef, Duration)>, StoreError> {
            let (folder, bucket) = (self.path("artifacts"), Arc::clone(&self.bucket));
            let found = self.wait(async move {
                let listed: Vec<Result<ObjectMeta, Error>> = bucket.list(Some(&folder)).collect().await;
                let listed = listed.into_iter().collect::<Result<Vec<_>, _>>()?;
                // Of what is empty no part can be asked for.
                let heads = listed.into_iter().filter(|meta| meta.size > 0).map(|meta| {
                    let bucket = Arc::clone(&bucket);
                    async move {
                        let stored =
                            Duration::from_millis(u64::try_from(meta.last_modified.timestamp_millis()).unwrap_or(0));
                        Ok(head_of(&*bucket, &meta.location).await?.map(|found| (found, stored)))
                    }
                });
                let heads: Vec<Result<_, Error>> =
                    futures_util::stream::iter(heads).buffer_unordered(AT_ONCE).collect().await;
                heads.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()
            })?;
            let mut all = found.map_err(|error| self.failed(error))?;
            all.sort_by(|(one, _), (other, _)| one.handle.cmp(&other.handle));
            Ok(all)
        }
    }

    /// What is known of the artifact there; `None` where there is none any more, or it is not ours.
    async fn head_of(bucket: &dyn ObjectStore, path: &Path) -> Result<Option<ArtifactRef>, Error> {
        let range = |end| GetOptions { range: Some(GetRange::Bounded(0..end)), ..GetOptions::default() };
        let mut end = HEAD;
        loop {
            let got = match bucket.get_opts(path, range(end)).await {
                Ok(got) => got,
                Err(Error::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            let size = got.meta.size;
            if let Some((found, _)) = head(&got.bytes().await?) {
                return Ok(Some(found));
            }
            // The label is long.
            if end >= size.min(LONGEST_HEAD) {
                return Ok(None);
            }
            end = end.saturating_mul(16).min(LONGEST_HEAD);
        }
    }

    impl ArtifactStore for S3Artifacts {
        fn put(&self, handle: &Handle, bytes: &[u8], media_type: &str, label: &str) -> Result<ArtifactRef, StoreError> {
            let reference = ArtifactRef {
                handle: handle.clone(),
                media_type: media_type.to_owned(),
                size_bytes: bytes.len() as u64,
                label: label.to_owned(),
                content_hash: ContentHash::of(bytes),
            };
            let mut object = serde_json::to_vec(&reference).map_err(|error| self.failed(error))?;
            object.push(b'\n');
            if object.len() as u64 > LONGEST_HEAD {
                let reason =
                    format!("its label and media type have more than {LONGEST_HEAD} bytes; give it shorter ones");
                return Err(self.failed(reason));
            }
            object.extend_from_slice(bytes);
            let (path, bucket) = (self.path_of(handle), Arc::clone(&self.bucket));
            let put = self.wait(async move { bucket.put(&path, PutPayload::from(object)).await })?;
            put.map(|_| reference).map_err(|error| self.failed(error))
        }

        fn get(&self, handle: &Handle) -> Result<Arc<[u8]>, StoreError> {
            let (path, bucket) = (self.path_of(handle), Arc::clone(&self.bucket));
            let object: Option<Bytes> = self.wait_if_there(async move { bucket.get(&path).await?.bytes().await })?;
            let object = object.ok_or_else(|| StoreError::NoArtifact(handle.clone()))?;
            let (reference, start) =
                head(&object).ok_or_else(|| self.failed(format!("`{handle}` is not an artifact")))?;
            let bytes = object.get(start..).unwrap_or_default();
            let found = ContentHash::of(bytes);
            if found != reference.content_hash {
                return Err(StoreError::Altered { handle: handle.clone(), expected: reference.content_hash, found });
            }
            Ok(Arc::from(bytes))
        }

        fn reference(&self, handle: &Handle) -> Result<ArtifactRef, StoreError> {
            let (path, bucket) = (self.path_of(handle), Arc::clone(&self.bucket));
            let found = self.wait(async move { head_of(&*bucket, &path).await })?;
            found.map_err(|error| self.failed(error))?.ok_or_else(|| StoreError::NoArtifact(handle.clone()))
        }

        fn list(&self) -> Result<Vec<ArtifactRef>, StoreError> {
            Ok(self.all()?.into_iter().map(|(reference, _)| reference).collect())
        }

        fn delete(&self, handle: &Handle) -> Result<bool, StoreError> {
            let (path, bucket) = (self.path_of(handle), Arc::clone(&self.bucket));
            let removed = self.wait_if_there(async move {
                bucket.head(&path).await?;
                bucket.delete(&path).await
            })?;
            Ok(removed.is_some())
        }

        fn stored(&self) -> Result<Vec<(Handle, Duration)>, StoreError> {
            Ok(self.all()?.into_iter().map(|(reference, stored)| (reference.handle, stored)).collect())
        }
    }

    #[cfg(test)]
    pub(super) mod tests {
        use object_store::memory::InMemory;

        use super::*;
        use contextweaver_context::store::conformance;

        fn of(bucket: &Arc<InMemory>, prefix: &str) -> S3Artifacts {
            let bucket: Arc<dyn ObjectStore> = Arc::<InMemory>::clone(bucket);
            S3Artifacts::of(bucket, "s3://test".to_owned(), prefix).unwrap()
        }

        /// Objects as they are stored; and what reads what one says of itself.
        pub(crate) fn stored_objects() -> (Vec<String>, impl Fn(&[u8])) {
            let store = of(&Arc::default(), "");
            let objects = [("text/plain", "the answer", "two\nlines"), ("application/json", "é \"q\"\n", "{\"a\":1}")];
            let stored = objects.map(|(media_type, label, bytes)| {
                let handle = Handle::new("artifact:result:0");
                store.put(&handle, bytes.as_bytes(), media_type, label).unwrap();
                let (path, bucket) = (store.path_of(&handle), Arc::clone(&store.bucket));
                let stored = store.wait(async move { bucket.get(&path).await?.bytes().await }).unwrap().unwrap();
                String::from_utf8(stored.to_vec()).unwrap()
            });
            let read = |input: &[u8]| {
                if let Some((reference, start)) = head(input) {
                    assert!(start <= input.len());
                    let mut again = serde_json::to_vec(&reference).unwrap();
                    again.push(b'\n');
                    assert_eq!(head(&again), Some((reference, again.len())), "what is written is read again");
                }
            };
            assert!(stored.iter().all(|object| head(object.as_bytes()).is_some()));
            (stored.to_vec(), read)
        }

        #[test]
        fn a_bucket_keeps_the_rules_of_artifacts() {
            conformance::artifacts(|| of(&Arc::default(), "some/prefix")).unwrap();
        }

        /// Runs where `CONTEXTWEAVER_TEST_S3` has the endpoint of a service with a bucket `contextweaver`, as in
        /// `scripts/replicas-test`.
        #[test]
        fn a_bucket_of_a_service_keeps_them_too() {
            let Ok(endpoint) = std::env::var("CONTEXTWEAVER_TEST_S3") else { return };
            let open = |prefix: String| {
                let text = |text: &str| Some(text.to_owned());
                let (region, access_key_id, secret_access_key) = (text("us-east-1"), text("test"), text("test"));
                let (bucket, endpoint) = ("contextweaver".to_owned(), Some(endpoint.clone()));
                S3Artifacts::new(&S3Config { bucket, prefix, region, endpoint, access_key_id, secret_access_key })
                    .unwrap()
            };
            let number = std::sync::atomic::AtomicU32::new(0);
            let next = || number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            conformance::artifacts(|| open(format!("rule-{}", next()))).unwrap();
            let one = open("keys".to_owned()).key(&[1; 32]).unwrap();
            assert_eq!(open("keys".to_owned()).key(&[2; 32]).unwrap(), one, "the first key stays");
        }

        #[test]
        fn what_is_there_outlives_who_stored_it_and_what_is_not_ours_is_left_alone() {
            let bucket = Arc::new(InMemory::new());
            let (one, other) = (of(&bucket, "a"), of(&bucket, "b"));
            assert_eq!((one.key(&[1; 32]).unwrap(), one.key(&[2; 32]).unwrap()), ([1; 32], [1; 32]));
            assert_eq!(other.key(&[3; 32]).unwrap(), [3; 32], "another prefix is another store");
            let (handle, label) = (Handle::new("h"), "l".repeat(100_000));
            one.put(&handle, b"bytes\nof two lines", "text/plain", &label).unwrap();
            drop(one);
            let again = of(&bucket, "a");
            assert_eq!(&*again.get(&handle).unwrap(), b"bytes\nof two lines");
            assert_eq!(again.reference(&handle).unwrap().label, label);
            assert_eq!(again.stored().unwrap().len(), 1);
            assert!(other.get(&handle).is_err() && other.list().unwrap().is_empty());
            // Somebody else's object, and one that was altered.
            let put = |path: Path, text: &'static str| {
                let bucket = Arc::clone(&again.bucket);
                again
                    .wait(async move { bucket.put(&path, PutPayload::from_static(text.as_bytes())).await })
                    .unwrap()
                    .unwrap();
            };
            put(again.path("artifacts/theirs"), "no line");
            // One of which a line would end too late.
            let late = serde_json::to_string(&again.reference(&handle).unwrap()).unwrap();
            put(again.path("artifacts/late"), format!("{}{late}\n", " ".repeat(2 * 1024 * 1024)).leak());
            assert_eq!(again.list().unwrap().len(), 1);
            let long = "l".repeat(2 * 1024 * 1024);
            assert!(again.put(&Handle::new("long"), b"x", "text/plain", &long).is_err(), "it would not be found again");
            let altered = format!("{}\nother", serde_json::to_string(&again.reference(&handle).unwrap()).unwrap());
            put(again.path_of(&handle), altered.leak());
            assert!(matches!(again.get(&handle), Err(StoreError::Altered { .. })));
        }
    }
}
