//! Ids as people and models write them: without their hash, with other separators, or by the tool's own name alone.
//!
//! A name that leads to exactly one item is as good as its id. One that leads to several is refused with all of them, and
//! one that leads to none with those that look most like it: nothing is ever guessed. An id with a version or a hash is
//! meant exactly; when that is not served any more, what took its place is only suggested.

use std::collections::BTreeMap;

use contextweaver_core::catalog::SelectableItem;

/// Bytes of a written name, at most.
const LONGEST: usize = 300;

/// Items that are suggested, at most.
const MOST_SUGGESTED: usize = 3;

/// How much alike two names must be to suggest one for the other, from 0 to 1.
const ALIKE: f64 = 0.8;

/// Where a written name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    /// To this item.
    One(usize),
    /// To several, of which one has to be named.
    Several(Vec<usize>),
    /// To none. These look most like it, the likeliest first.
    None(Vec<usize>),
}

/// The names under which the items of a shelf are looked for.
#[derive(Debug, Default)]
pub(super) struct WrittenNames {
    /// By namespace and name.
    whole: BTreeMap<String, Vec<usize>>,
    /// By the name alone.
    short: BTreeMap<String, Vec<usize>>,
}

impl WrittenNames {
    /// The names of these items.
    pub(super) fn of(items: &[SelectableItem]) -> Self {
        let mut names = Self::default();
        for (at, item) in items.iter().enumerate() {
            names.whole.entry(form(bare(&item.id))).or_default().push(at);
            let own = bare(&item.id).split_once(':').map_or("", |(_, name)| name);
            for short in [form(own), form(&item.name)] {
                let items = names.short.entry(short).or_default();
                if items.last() != Some(&at) {
                    items.push(at);
                }
            }
        }
        names
    }

    /// Where `name` leads.
    pub(super) fn find(&self, name: &str) -> Written {
        if name.len() > LONGEST {
            return Written::None(Vec::new());
        }
        let wanted = form(bare(name));
        let is_exact = bare(name).len() < without_kind(name).len();
        let found = [&self.whole, &self.short].into_iter().find_map(|names| names.get(&wanted));
        match found.map(Vec::as_slice) {
            None | Some([]) => Written::None(self.alike(&wanted)),
            Some(found) if is_exact => Written::None(found.iter().copied().take(MOST_SUGGESTED).collect()),
            Some([one]) => Written::One(*one),
            Some(several) => Written::Several(several.iter().copied().take(MOST_SUGGESTED).collect()),
        }
    }

    fn alike(&self, wanted: &str) -> Vec<usize> {
        let mut likely: Vec<(f64, usize)> = Vec::new();
        for (name, items) in self.whole.iter().chain(&self.short) {
            let likeness = strsim::jaro_winkler(wanted, name);
            if likeness >= ALIKE {
                likely.extend(items.iter().map(|at| (likeness, *at)));
            }
        }
        likely.sort_by(|(left, one), (right, other)| right.total_cmp(left).then(one.cmp(other)));
        let mut suggested = Vec::new();
        for (_, at) in likely {
            if suggested.len() < MOST_SUGGESTED && !suggested.contains(&at) {
                suggested.push(at);
            }
        }
        suggested
    }
}

/// Whether both names are the same but for what writers change.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    form(bare(one)) == form(bare(other))
}

/// An id without the kind before `::`.
fn without_kind(id: &str) -> &str {
    id.split_once("::").map_or(id, |(_, rest)| rest)
}

/// An id without its kind, version and hash.
fn bare(id: &str) -> &str {
    let id = without_kind(id);
    id.split(['@', '#']).next().unwrap_or(id)
}

/// A name as it is compared: small letters and digits, with one `_` for all that stands between them.
fn form(name: &str) -> String {
    let mut form = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_alphanumeric() {
            form.extend(c.to_lowercase());
        } else if !form.is_empty() && !form.ends_with('_') {
            form.push('_');
        }
    }
    form.truncate(form.trim_end_matches('_').len());
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_leads_to_one_item_or_is_not_guessed() {
        let item = |id: &str, namespace: &str, name: &str| SelectableItem::tool(id, namespace, name, "");
        let items = [
            item("git:git_log#00000001", "git", "git_log"),
            item("git:git_diff#00000002", "git", "git_diff"),
            item("docs:search#00000003", "docs", "search"),
            item("web:search#00000004", "web", "search"),
            item("gh:create-issue@1.0", "gh", "gh.create-issue"),
        ];
        let names = WrittenNames::of(&items);
        let cases = [
            ("git:git_log", Written::One(0)),
            ("git_log", Written::One(0)),
            ("GIT_LOG", Written::One(0)),
            ("git__git_log", Written::One(0)),
            ("git/git_log", Written::One(0)),
            ("git.git-log", Written::One(0)),
            ("docs:search", Written::One(2)),
            ("search", Written::Several(vec![2, 3])),
            ("create_issue", Written::One(4)),
            ("gh.create-issue", Written::One(4)),
            // What is meant exactly is not replaced.
            ("git:git_log#deadbeef", Written::None(vec![0])),
            ("git_log#00000001", Written::None(vec![0])),
            ("gh:create-issue@2.0", Written::None(vec![4])),
            ("git_lgo", Written::None(vec![0, 1])),
            ("zebra", Written::None(vec![])),
            ("", Written::None(vec![])),
            ("::#", Written::None(vec![])),
        ];
        for (name, expected) in cases {
            assert_eq!(names.find(name), expected, "{name}");
        }
        assert_eq!(names.find(&"git_log".repeat(100)), Written::None(vec![]));
    }
}
