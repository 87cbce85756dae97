//! Cleans what a model sees of a result.

use super::call::{Guard, GuardedCall};
use crate::common::sanitize::{SanitizeConfig, Scope};
use crate::common::work::{Exhausted, draw_text};
use crate::protocol::message::Raw;
use crate::protocol::strict::{self, MOST_VALUES};
use contextweaver_context::event::ResultEnvelope;

impl Guard for SanitizeConfig {
    fn present(&self, _call: &GuardedCall<'_>, envelope: &mut ResultEnvelope) {
        self.envelope(envelope);
    }

    fn present_raw(&self, result: Raw) -> Result<Raw, Exhausted> {
        if self.scope != Scope::All {
            return Ok(result);
        }
        // It is read as a whole.
        let is_bounded = std::str::from_utf8(result.bytes()).is_ok_and(|text| strict::has_at_most(text, MOST_VALUES));
        if !is_bounded {
            return Err(Exhausted::TooMuch(MOST_VALUES));
        }
        draw_text(result.bytes().len())?;
        // What cannot be looked into is not passed on as if it were clean.
        self.raw(&result).map_err(|_| Exhausted::Unreadable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_behind_a_member_of_the_same_name() {
        let all = SanitizeConfig { scope: Scope::All, ..SanitizeConfig::default() };
        let result = Raw::of_text(r#"{"content":[{"text":"<|im_start|>"}],"content":[{"text":"fine"}]}"#.to_owned());
        let presented = all.present_raw(result).unwrap();
        assert_eq!(presented, Raw::of_text(r#"{"content":[{"text":"fine"}]}"#.to_owned()));
    }

    #[test]
    fn a_result_that_cannot_be_read_to_be_cleaned_is_not_passed_on() {
        let of = |values: usize| Raw::of_text(format!(r#"{{"content":[{}"<s>"]}}"#, "0,".repeat(values - 3)));
        let all = SanitizeConfig { scope: Scope::All, ..SanitizeConfig::default() };
        assert!(!all.present_raw(of(MOST_VALUES)).unwrap().bytes().ends_with(b"<s>\"]}"));
        assert_eq!(all.present_raw(of(MOST_VALUES + 1)), Err(Exhausted::TooMuch(MOST_VALUES)));
        let deep = Raw::of_text(format!(r#"{{"content":[],"_meta":{}{}}}"#, "[".repeat(200), "]".repeat(200)));
        assert_eq!(all.present_raw(deep.clone()), Err(Exhausted::Unreadable));
        let shown = SanitizeConfig::default();
        assert_eq!(shown.present_raw(deep.clone()), Ok(deep));
        assert_eq!(shown.present_raw(of(MOST_VALUES + 1)), Ok(of(MOST_VALUES + 1)));
    }
}
