//! What stands for a call's output in the prompt, and where the rest is.
//!
//! A result with more characters than the threshold is stored whole, byte for byte, and the prompt gets a text within
//! a token cap instead. Small results pass untouched.

use std::str;

use serde_json::{Map, Value};

use super::config::FirewallConfig;
use super::summary::Summarizer;
use crate::event::{
    ContextItem, FirewallStats, Handle, ItemKind, Part, PartBody, ResultEnvelope, Status, Strategy, ToolOutput,
};
use crate::store::{ArtifactStore, StoreError};
use crate::text::Estimator;

/// Keeps large results out of prompts and reachable.
#[derive(Clone, Copy)]
pub struct Firewall<'a> {
    config: &'a FirewallConfig,
    estimator: Estimator,
    summarizer: &'a dyn Summarizer,
    artifacts: &'a dyn ArtifactStore,
}

/// What the conversation has shown so far.
#[derive(Debug, Clone, Default)]
pub struct Seen {}

/// A result as the prompt gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Screened {
    /// The result; its text is what the prompt shows.
    pub item: ContextItem,
    /// What was done to it.
    pub stats: FirewallStats,
}

/// A result could not be screened. The log is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum FirewallError {
    /// The content could not be stored or read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl<'a> Firewall<'a> {
    /// A firewall that summarises with `summarizer`, counts with `estimator` and stores into `artifacts`.
    #[must_use]
    pub fn new(
        config: &'a FirewallConfig,
        estimator: Estimator,
        summarizer: &'a dyn Summarizer,
        artifacts: &'a dyn ArtifactStore,
    ) -> Self {
        Self { config, estimator, summarizer, artifacts }
    }

    /// Its parameters.
    #[must_use]
    pub fn config(&self) -> &FirewallConfig {
        self.config
    }

    /// A result that stands in the log as text: what the prompt gets instead. Untouched when it is small or was
    /// screened already (an artifact is present).
    ///
    /// # Errors
    /// The content could not be stored.
    pub fn screen(
        &self,
        _call: Option<&ContextItem>,
        result: &ContextItem,
        _seen: &mut Seen,
    ) -> Result<Screened, FirewallError> {
        let mut item = result.clone();
        let mut strategy = Strategy::Passthrough;
        let mut bytes = result.text.len() as u64;
        if let Some(artifact) = &result.artifact {
            strategy = Strategy::Summary;
            bytes = artifact.size_bytes;
        } else if result.text.chars().nth(self.config.threshold_chars).is_some() {
            let handle = Handle::new(format!("artifact:{}", result.id));
            item.artifact = Some(self.artifacts.put(&handle, result.text.as_bytes(), "text/plain", "tool result")?);
            item.text = self.summarize(&result.text, "text/plain", self.config.summary_tokens);
            strategy = Strategy::Summary;
        }
        let stats = FirewallStats {
            strategy,
            threshold_chars: self.config.threshold_chars,
            original_bytes: bytes,
            original_tokens: None,
            summary_tokens: self.estimator.count(&item.text),
            estimator: self.estimator,
        };
        Ok(Screened { item, stats })
    }

    /// A call's output as it comes from a server: the event for the log and the envelope for the caller.
    ///
    /// # Errors
    /// The content could not be stored.
    pub fn ingest(
        &self,
        call: &ContextItem,
        output: &ToolOutput,
        seen: &mut Seen,
    ) -> Result<(ContextItem, ResultEnvelope), FirewallError> {
        let texts: Vec<&str> = output.parts.iter().filter_map(text_of).collect();
        let item = ContextItem::new(format!("result:{}", call.id), ItemKind::ToolResult, texts.join("\n"))
            .under(call.id.clone())
            .with_sensitivity(call.sensitivity);
        let Screened { item, stats } = self.screen(Some(call), &item, seen)?;
        let envelope = ResultEnvelope {
            status: if output.is_error { Status::Error } else { Status::Ok },
            summary: item.text.clone(),
            facts: Vec::new(),
            artifacts: item.artifact.iter().cloned().collect(),
            views: Vec::new(),
            provenance: Map::from_iter([("source_item_id".to_owned(), Value::from(item.id.as_str()))]),
            firewall: Some(stats),
        };
        Ok((item, envelope))
    }

    /// The content of a result (from its artifact, or its text) in at most `cap` tokens: for the packer when a result
    /// does not fit as it is.
    ///
    /// # Errors
    /// The content could not be read.
    pub fn condense(&self, result: &ContextItem, cap: usize) -> Result<String, FirewallError> {
        if self.estimator.count(&result.text) <= cap {
            return Ok(result.text.clone());
        }
        let Some(artifact) = &result.artifact else { return Ok(self.summarize(&result.text, "text/plain", cap)) };
        let bytes = self.artifacts.get(&artifact.handle)?;
        let content = str::from_utf8(&bytes).unwrap_or(&result.text);
        Ok(self.summarize(content, &artifact.media_type, cap))
    }

    fn summarize(&self, content: &str, media_type: &str, cap: usize) -> String {
        self.summarizer.summarize(content, media_type, cap, self.estimator)
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match &part.body {
        PartBody::Text(text) | PartBody::ResourceText { text, .. } => Some(text),
        _ => None,
    }
}
