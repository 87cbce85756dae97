//! Diffs and commit logs: the output of `git diff`, `git show`, `git log` and `diff -u`.
//!
//! Hunks are read by the line counts in their headers, so a removed line that begins with `--` is not taken for a file
//! header. Where the counts are wrong or missing, the next header ends the hunk.

use crate::brief::Piece;

use super::code::declared;
use super::excerpt::{Tally, cut, samples, shorter_first};
use super::paths::{by_directory, in_one_line};
use super::rank;
use contextweaver_core::text::counted;

/// The number of files up to which the list comes before all other statements about them.
const FEW_FILES: usize = 4;
/// The number of digits of a shortened hash.
const HASH_LENGTH: usize = 12;
/// The number of commits whose subject is kept.
const COMMITS_KEPT: usize = 2000;

/// How many lines of a hunk are shown, where not all are.
const LINES_OF_HUNK: [usize; 7] = [usize::MAX, 24, 12, 8, 4, 2, 1];
/// The number of names declared in changed lines that are kept.
const TOUCHED_KEPT: usize = 2000;
/// The number of characters of a subject.
const SUBJECT_LENGTH: usize = 100;

/// What happened to a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Change {
    #[default]
    Modified,
    New,
    Deleted,
    Renamed,
}

#[derive(Debug, Default)]
struct File {
    path: String,
    change: Change,
    binary: bool,
    added: usize,
    removed: usize,
    hunks: usize,
}

impl File {
    /// The counts as `+3 -1`, without a side that is zero.
    fn counts(&self) -> String {
        match (self.added, self.removed) {
            (0, 0) if self.binary => "binary".to_owned(),
            (0, 0) => "±0".to_owned(),
            (added, 0) => format!("+{added}"),
            (0, removed) => format!("-{removed}"),
            (added, removed) => format!("+{added} -{removed}"),
        }
    }
}

#[derive(Debug, Default)]
struct Commit {
    hash: String,
    author: String,
    date: String,
    subject: String,
}

/// The last lines of statistics of changes, of each commit one: `2 files changed, 3 insertions(+)`.
#[derive(Debug, Default)]
struct Totals {
    count: usize,
    /// The first of them.
    line: String,
    files: usize,
    added: usize,
    removed: usize,
}

impl Totals {
    fn add(&mut self, line: &str) {
        self.count += 1;
        if self.count == 1 {
            line.trim().clone_into(&mut self.line);
        }
        for part in line.split(',') {
            let number = part.trim().split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0);
            match part {
                _ if part.contains(" file") => self.files += number,
                _ if part.contains(" insertion") => self.added += number,
                _ if part.contains(" deletion") => self.removed += number,
                _ => {}
            }
        }
    }

    /// The only line, or the sums of several. A file counts once for each commit that changes it.
    fn said(&self) -> Option<String> {
        match self.count {
            0 => None,
            1 => Some(self.line.clone()),
            _ => {
                let sums = [(self.files, "file change"), (self.added, "insertion"), (self.removed, "deletion")];
                Some(sums.map(|(sum, noun)| counted(sum, noun)).join(", "))
            }
        }
    }
}

/// What remains of the hunk being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between files, or in the header of a commit or a file.
    Header,
    /// In a hunk with this many lines of the old and of the new file to come.
    Hunk { old: usize, new: usize },
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Of the header of a commit or a file.
    Header,
    /// The header of a hunk.
    Hunk,
    /// In both files.
    Context,
    Added,
    Removed,
}

impl Place {
    /// What `line` is, which stands here.
    fn pass(&mut self, line: &str) -> Role {
        if let Self::Hunk { old, new } = *self {
            let (role, next) = match line.as_bytes().first() {
                Some(b'+') if new > 0 => (Role::Added, Self::Hunk { old, new: new - 1 }),
                Some(b'-') if old > 0 => (Role::Removed, Self::Hunk { old: old - 1, new }),
                Some(b'\\') => (Role::Context, *self),
                Some(b' ') | None if old > 0 && new > 0 => (Role::Context, Self::Hunk { old: old - 1, new: new - 1 }),
                _ => (Role::Header, Self::Header),
            };
            *self = next;
            if role != Role::Header {
                return role;
            }
        }
        let Some((old, new)) = hunk_sizes(line) else { return Role::Header };
        *self = Self::Hunk { old, new };
        Role::Hunk
    }
}

#[derive(Debug, Default)]
struct Diff {
    files: Vec<File>,
    commits: Vec<Commit>,
    commit_count: usize,
    /// Lines of `git diff --stat`: the path and the number of changed lines or bytes.
    stat: Vec<(String, String)>,
    totals: Totals,
    /// The names that hunks and changed lines declare or are in, each once.
    touched: Vec<String>,
    known: rustc_hash::FxHashSet<String>,
}

/// Whether `line` begins a file or a commit in a diff.
pub(super) fn is_mark(line: &str) -> bool {
    line.starts_with("diff --git ") || line.starts_with("diff --cc ") || is_commit(line) || hunk_sizes(line).is_some()
}

fn is_commit(line: &str) -> bool {
    line.strip_prefix("commit ").or_else(|| line.strip_prefix("Commit: ")).is_some_and(|rest| {
        let hash = rest.split(' ').next().unwrap_or_default();
        hash.len() >= 7 && hash.len() <= 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Parses a line of `git log --oneline`: an abbreviated hash and a subject.
pub(super) fn one_line_commit(line: &str) -> Option<(&str, &str)> {
    let (hash, subject) = line.split_once(' ')?;
    let plain = (7..=40).contains(&hash.len())
        && hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (plain && !subject.trim().is_empty()).then_some((hash, subject))
}

/// Whether a line is one of `git diff --stat`.
pub(super) fn is_stat(line: &str) -> bool {
    let counts = line.strip_prefix(' ').and_then(|rest| rest.rsplit_once(" | ")).map(|(_, counts)| counts.trim());
    counts.is_some_and(|counts| counts.starts_with(|c: char| c.is_ascii_digit()) || counts.starts_with("Bin"))
        || (line.starts_with(' ') && line.contains(" changed, "))
}

/// The line counts of the old and of the new side in `@@ -1,2 +3,4 @@`.
fn hunk_sizes(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("@@ -")?;
    let (ranges, _) = rest.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let size = |range: &str| match range.split_once(',') {
        Some((_, size)) => size.parse().ok(),
        None => range.parse::<usize>().ok().map(|_| 1),
    };
    Some((size(old)?, size(new)?))
}

/// The path in a `---` or `+++` line or a half of a `diff --git` line, without its prefix and time stamp.
fn path_of(text: &str) -> &str {
    let text = text.split('\t').next().unwrap_or_default().trim().trim_matches('"');
    text.strip_prefix("a/").or_else(|| text.strip_prefix("b/")).unwrap_or(text)
}

impl Diff {
    fn read(text: &str) -> Self {
        let mut diff = Self::default();
        let mut place = Place::Header;
        // The old path of a `---` line, until its `+++` line.
        let mut old_path: Option<&str> = None;
        let mut git_header = false;
        for line in text.lines() {
            match place.pass(line) {
                Role::Context => continue,
                Role::Added => {
                    diff.file().added += 1;
                    diff.touch(line.get(1..).unwrap_or_default());
                    continue;
                }
                Role::Removed => {
                    diff.file().removed += 1;
                    diff.touch(line.get(1..).unwrap_or_default());
                    continue;
                }
                Role::Hunk => {
                    diff.file().hunks += 1;
                    diff.touch(line.splitn(3, "@@").nth(2).unwrap_or_default());
                    continue;
                }
                Role::Header => {}
            }
            if let Some(rest) = line.strip_prefix("diff --git ") {
                let path = rest.rsplit_once(" b/").map_or(rest, |(_, path)| path);
                diff.begin(path_of(path));
                git_header = true;
            } else if let Some(path) = line.strip_prefix("diff --cc ") {
                diff.begin(path_of(path));
                git_header = true;
            } else if let Some(path) = line.strip_prefix("--- ") {
                old_path = Some(path_of(path));
            } else if let Some(path) = line.strip_prefix("+++ ").map(path_of) {
                diff.two_paths(old_path.take().unwrap_or(path), path, git_header);
                git_header = false;
            } else {
                diff.header_line(line);
            }
        }
        diff
    }

    /// The file being read; one without a name if the text begins with a hunk.
    fn file(&mut self) -> &mut File {
        if self.files.is_empty() {
            self.begin("(unnamed)");
        }
        let last = self.files.len() - 1;
        &mut self.files[last]
    }

    fn touch(&mut self, line: &str) {
        if let Some(name) = declared(line).filter(|_| self.touched.len() < TOUCHED_KEPT)
            && !self.known.contains(name)
        {
            self.known.insert(name.to_owned());
            self.touched.push(name.to_owned());
        }
    }

    fn begin(&mut self, path: &str) {
        self.files.push(File { path: path.to_owned(), ..File::default() });
    }

    /// Takes a `---` and a `+++` line: they begin a file unless a `diff --git` line has done so.
    fn two_paths(&mut self, old: &str, new: &str, git_header: bool) {
        let path = if new == "/dev/null" { old } else { new };
        if !git_header {
            self.begin(path);
        }
        let file = self.file();
        if old == "/dev/null" {
            file.change = Change::New;
        } else if new == "/dev/null" {
            file.change = Change::Deleted;
        }
        path.clone_into(&mut file.path);
    }

    fn header_line(&mut self, line: &str) {
        if is_commit(line) {
            self.commit_count += 1;
            if self.commits.len() < COMMITS_KEPT {
                let name = line.trim_start_matches("commit ").trim_start_matches("Commit: ");
                let hash = name.split(' ').next().unwrap_or_default().to_owned();
                self.commits.push(Commit { hash, ..Commit::default() });
            }
            return;
        }
        if let Some((hash, subject)) = one_line_commit(line).filter(|_| self.files.is_empty()) {
            self.commit_count += 1;
            if self.commits.len() < COMMITS_KEPT {
                let (hash, subject) = (hash.to_owned(), cut(subject, SUBJECT_LENGTH));
                self.commits.push(Commit { hash, subject, ..Commit::default() });
            }
            return;
        }
        if let Some(commit) = self.commits.last_mut().filter(|_| self.commit_count <= COMMITS_KEPT) {
            if let Some(author) = line.strip_prefix("Author:") {
                author.trim().clone_into(&mut commit.author);
                return;
            }
            if let Some(date) = line.strip_prefix("Date:").or_else(|| line.strip_prefix("AuthorDate:")) {
                date.trim().clone_into(&mut commit.date);
                return;
            }
            let subject = line.strip_prefix("Message: ").or_else(|| line.strip_prefix("    "));
            if let Some(subject) = subject.filter(|_| commit.subject.is_empty()) {
                commit.subject = cut(subject.trim(), SUBJECT_LENGTH);
                return;
            }
        }
        if let Some((path, counts)) = line.strip_prefix(' ').and_then(|rest| rest.rsplit_once(" | ")) {
            let changed = counts.trim().trim_end_matches(['+', '-']).trim_end();
            self.stat.push((path.trim().to_owned(), changed.to_owned()));
        } else if line.starts_with(' ') && line.contains(" changed, ") {
            self.totals.add(line);
        } else if let Some(file) = self.files.last_mut() {
            if line.starts_with("new file mode") {
                file.change = Change::New;
            } else if line.starts_with("deleted file mode") {
                file.change = Change::Deleted;
            } else if line.starts_with("rename to ") {
                file.change = Change::Renamed;
            } else if line.starts_with("Binary files ") || line == "GIT binary patch" {
                file.binary = true;
            }
        }
    }
}

/// The diff without the lines that both files have and without what headers repeat; then also without what was removed
/// where something was added in its place; then with fewer and fewer of the first lines of each hunk. Of these the
/// ones of at most `limit` bytes, and the last.
pub(super) fn shorter(text: &str, limit: usize) -> Vec<String> {
    let mut place = Place::Header;
    let lines: Vec<(Role, &str)> = text.lines().map(|line| (place.pass(line), line)).collect();
    if !lines.iter().any(|(role, _)| *role == Role::Hunk) {
        return Vec::new();
    }
    let levels = [(true, usize::MAX)].into_iter().chain(LINES_OF_HUNK.map(|most| (false, most)));
    let form = |(removed, most)| Some(changes(&lines, removed, most)).filter(|form| form.len() <= limit || most == 1);
    levels.filter_map(form).collect()
}

/// The line that begins a commit, with the beginning of its hash.
fn short_hash(line: &str) -> String {
    let end = line.find(' ').map_or(0, |blank| blank + 1 + HASH_LENGTH);
    match line.get(..end) {
        Some(kept) if kept.len() < line.len() => format!("{kept}…\n"),
        _ => format!("{line}\n"),
    }
}

/// The headers, and of each hunk up to `most` lines of a side: those added, and those removed where nothing was added or
/// where both are wanted.
fn changes(lines: &[(Role, &str)], removed: bool, most: usize) -> String {
    let mut said = String::new();
    let mut is_named = false;
    for part in lines.chunk_by(|(_, _), (role, _)| !matches!(role, Role::Header | Role::Hunk)) {
        let Some(((role, head), changed)) = part.split_first() else { continue };
        if *role == Role::Header {
            is_named |= head.starts_with("diff --");
            let repeated = ["index ", "--- ", "similarity index "].iter().any(|start| head.starts_with(start))
                || head.trim().is_empty()
                || (is_named && head.starts_with("+++ "));
            if is_commit(head) {
                said.push_str(&short_hash(head));
            } else if !repeated {
                said.extend([*head, "\n"]);
            }
            continue;
        }
        is_named = false;
        let count = |wanted: Role| changed.iter().filter(|(role, _)| *role == wanted).count();
        let wanted = |role: Role| match role {
            Role::Added => true,
            Role::Removed => removed || count(Role::Added) == 0,
            Role::Header | Role::Hunk | Role::Context => false,
        };
        let shown = changed
            .iter()
            .filter(|(role, line)| wanted(*role) && !line.get(1..).is_some_and(|rest| rest.trim().is_empty()));
        let mut left = shown.clone().count().saturating_sub(most);
        // One line takes no more than to say that it is left out.
        left = if left == 1 { 0 } else { left };
        let kept = shown.clone().count() - left;
        shown.take(kept).for_each(|(_, line)| said.extend([*line, "\n"]));
        if left > 0 {
            said.push_str(&format!("… {left} more\n"));
        }
    }
    said
}

/// Describes a diff or a commit log.
pub(super) fn pieces(text: &str) -> Vec<Piece> {
    let diff = Diff::read(text);
    let tally = Tally::of(text);
    let mut pieces = vec![shape(&diff, &tally)];
    pieces.extend(ends(&diff, &tally));
    pieces.extend(kinds_of_change(&diff));
    pieces.extend(largest(&diff));
    pieces.extend(commits(&diff, &tally));
    pieces.extend(files(&diff.files));
    pieces.extend(touched(diff.touched));
    if diff.files.is_empty() && !diff.stat.is_empty() {
        let noted = diff.stat.iter().map(|(path, changed)| (path.as_str(), changed.clone()));
        let (least, later) = ((rank::OUTLINE, 4), rank::WHOLE_OUTLINE);
        let listed = by_directory(noted);
        let head = listed.head("files with changed lines");
        pieces.push(Piece::grouped(rank::OUTLINE_PLACE, &head, listed.list, least, later));
    }
    pieces.extend(samples(text, &tally));
    pieces
}

/// The first and the last line, as far as they say something that the list of files does not.
fn ends(diff: &Diff, tally: &Tally) -> Vec<Piece> {
    let mut pieces = tally.ends();
    if diff.files.is_empty() {
        return pieces;
    }
    let header = ["diff ", "--- ", "index "].iter().any(|start| tally.first.starts_with(start));
    let named = header || (is_commit(tally.first) && diff.commits.len() == 1);
    pieces.retain(|piece| !(named && piece.place == rank::FIRST_LINE_PLACE));
    for piece in pieces.iter_mut().filter(|piece| piece.place == rank::LAST_LINE_PLACE) {
        piece.wordings.truncate(1);
        piece.wordings.iter_mut().for_each(|wording| wording.rank = rank::LONGEST);
    }
    pieces
}

/// The definitions that hunks and changed lines name: a few after the files, then as many as fit.
fn touched(names: Vec<String>) -> Option<Piece> {
    let lengths: Vec<usize> = names.iter().map(String::len).collect();
    let order = shorter_first(&lengths);
    let (head, least) = ("definitions touched: ", (rank::WHOLE_OUTLINE + 2, 8));
    (!names.is_empty())
        .then(|| Piece::grown(rank::SECOND_OUTLINE_PLACE, head, names, order, " ", least, rank::RICH_OUTLINE + 1))
}

fn shape(diff: &Diff, tally: &Tally) -> Piece {
    let mut said = Vec::new();
    if diff.commit_count > 0 {
        said.push(counted(diff.commit_count, "commit"));
    }
    if !diff.files.is_empty() {
        let sum = |of: fn(&File) -> usize| diff.files.iter().map(of).sum::<usize>();
        said.push(format!("{} changed", counted(diff.files.len(), "file")));
        said.push(counted(sum(|file| file.hunks), "hunk"));
        said.push(format!("{} added", counted(sum(|file| file.added), "line")));
        said.push(format!("{} removed", counted(sum(|file| file.removed), "line")));
    }
    said.extend(diff.totals.said().filter(|_| diff.files.is_empty()));
    said.push(format!("{} in all", counted(tally.lines, "line")));
    let what = match (diff.files.len(), diff.commit_count) {
        (0, 0) => "diff statistics",
        (0, _) => "commit log",
        _ => "diff",
    };
    Piece::line(rank::SHAPE_PLACE, rank::SHAPE, format!("{what}: {}", said.join(", ")))
}

fn kinds_of_change(diff: &Diff) -> Option<Piece> {
    let kinds = [
        (Change::New, "new"),
        (Change::Deleted, "deleted"),
        (Change::Renamed, "renamed"),
        (Change::Modified, "modified"),
    ];
    let mut said: Vec<String> = kinds
        .into_iter()
        .map(|(change, name)| (diff.files.iter().filter(|file| file.change == change).count(), name))
        .filter(|&(count, _)| count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let binary = diff.files.iter().filter(|file| file.binary).count();
    if binary > 0 {
        said.push(format!("{binary} binary"));
    }
    (!said.is_empty()).then(|| Piece::line(rank::STAT_PLACE, rank::STAT, format!("files: {}", said.join(", "))))
}

/// The file with the most changed lines, or the five with the most, by directory.
fn largest(diff: &Diff) -> Option<Piece> {
    let mut files: Vec<&File> = diff.files.iter().collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.added + file.removed));
    if files.len() <= FEW_FILES {
        return None;
    }
    let listed = |most: usize| in_one_line(files.iter().take(most).map(|file| (file.path.as_str(), file.counts())));
    let piece = Piece::line(rank::STAT_PLACE, rank::STAT, format!("largest change: {}", listed(1)))
        .or(rank::STAT + 2, format!("largest changes: {}", listed(2)));
    Some(piece.or(rank::SECOND_OUTLINE, format!("largest changes: {}", listed(5))))
}

fn commits(diff: &Diff, tally: &Tally) -> Vec<Piece> {
    let [first, .., last] = diff.commits.as_slice() else {
        return diff.commits.first().map(one_commit).unwrap_or_default();
    };
    let mut pieces = Vec::new();
    let all = diff.commit_count == diff.commits.len();
    let by_age = by_age(&diff.commits).filter(|_| all);
    let [(one, first), (other, last)] = match by_age {
        Some([newest, oldest]) => [("newest commit", newest), ("oldest commit", oldest)],
        None => [("first commit listed", first), ("last commit listed", last)],
    };
    let ends = [(one, first, rank::STAT), (other, last, rank::LEAF)];
    for (label, commit, rank) in ends.into_iter().take(if all { 2 } else { 1 }) {
        // The name of one of them is in the first line.
        let hash = if tally.first.contains(&commit.hash) { "" } else { &commit.hash };
        let subject = cut(&commit.subject, SUBJECT_LENGTH / 2);
        let known: Vec<&str> = [hash, &commit.date, &subject].into_iter().filter(|value| !value.is_empty()).collect();
        pieces.push(Piece::line(rank::LEAF_PLACE, rank, format!("{label}: {}", known.join(", "))));
    }
    pieces.extend(authors(&diff.commits));
    let entries = diff
        .commits
        .iter()
        .map(|commit| format!("{} {}", commit.hash.get(..7).unwrap_or(&commit.hash), commit.subject));
    let (least, later) = ((rank::OUTLINE, 3), rank::WHOLE_OUTLINE);
    pieces.push(Piece::list(rank::OUTLINE_PLACE, "commits:\n", entries.collect(), "\n", least, later));
    pieces
}

/// The newest and the oldest commit, if the dates of all tell it. Of those made at the same time, as in a list that begins
/// with the newest.
fn by_age(commits: &[Commit]) -> Option<[&Commit; 2]> {
    let dated = commits.iter().rev().map(|commit| Some((moment(&commit.date)?, commit)));
    let dated: Vec<(i64, &Commit)> = dated.collect::<Option<_>>()?;
    let newest = dated.iter().max_by_key(|(moment, _)| *moment)?;
    let oldest = dated.iter().min_by_key(|(moment, _)| *moment)?;
    Some([newest.1, oldest.1])
}

/// The seconds from a fixed time to a date as git writes them: `Mon Nov 2 10:00:00 2026 +0100`, `2026-11-02 10:00:00 +0100`,
/// with or without a time of day and a zone.
fn moment(date: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (mut year, mut month, mut day, mut seconds) = (None, None, None, 0);
    for part in date.split([' ', ',']).filter(|part| !part.is_empty()) {
        if let Some((_, number)) = MONTHS.iter().zip(1..).find(|(name, _)| part == **name) {
            month = Some(number);
        } else if let Some(number) = number(part) {
            *(if part.len() == 4 { &mut year } else { &mut day }) = Some(number);
        } else if part.get(4..5) == Some("-") {
            let (whole, clock) = part.split_once('T').unwrap_or((part, ""));
            let mut numbers = whole.split('-').map(number);
            (year, month, day) = (numbers.next()?, numbers.next()?, numbers.next()?);
            seconds += seconds_of(clock)?;
        } else if part.starts_with(['+', '-']) || part.contains(':') {
            seconds += seconds_of(part)?;
        }
    }
    let (year, month, day) = (year?, month?, day?);
    // March is the first month, so that the day that comes every four years is the last of its year.
    let (year, month) = (year - i64::from(month < 3), (month + 9) % 12);
    let days = day + (153 * month + 2) / 5 + 365 * year + year / 4 - year / 100 + year / 400;
    Some(days * 86_400 + seconds)
}

/// The seconds of a time of day less those of the zone: `10:00:00`, `+0100`, `10:00:00+01:00`, `10:00:00Z`.
fn seconds_of(text: &str) -> Option<i64> {
    let (clock, zone) = text.split_at(text.find(['+', '-', 'Z']).unwrap_or(text.len()));
    let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
    let offset = match digits.split_at_checked(2) {
        Some((hours, minutes)) => number(hours)? * 3_600 + number(minutes)? * 60,
        None => 0,
    };
    let parts = clock.split(':').filter(|part| !part.is_empty()).zip([3_600, 60, 1]);
    let of_day: i64 = parts.map(|(part, seconds)| Some(number(part)? * seconds)).sum::<Option<_>>()?;
    Some(if zone.starts_with('-') { of_day + offset } else { of_day - offset })
}

/// A number of a date, of digits alone.
fn number(text: &str) -> Option<i64> {
    text.parse::<u16>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit())).map(i64::from)
}

/// The authors of the commits, each with the number of their commits.
fn authors(commits: &[Commit]) -> Option<Piece> {
    let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for commit in commits.iter().filter(|commit| !commit.author.is_empty()) {
        *counts.entry(&commit.author).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    match counts.as_slice() {
        [] => None,
        [(name, _)] => Some(Piece::line(rank::LEAF_PLACE, rank::LEAF, format!("author: {name}"))),
        _ => {
            let head = format!("{}: ", counted(counts.len(), "author"));
            let name = |author: &str| author.split(" <").next().unwrap_or_default().to_owned();
            let entries = counts.iter().map(|(author, count)| format!("{} {count}", name(author))).collect();
            let (least, later) = ((rank::LEAF, 3), rank::SECOND_OUTLINE);
            Some(Piece::list(rank::LEAF_PLACE, &head, entries, ", ", least, later))
        }
    }
}

/// Describes the only commit. Its hash is short unless there is room.
fn one_commit(commit: &Commit) -> Vec<Piece> {
    let labelled =
        [("commit", &commit.hash), ("author", &commit.author), ("date", &commit.date), ("subject", &commit.subject)];
    labelled
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(label, value)| {
            let shown = value.get(..HASH_LENGTH).filter(|_| label == "commit").unwrap_or(value);
            // The text itself begins with it.
            let piece = Piece::line(rank::FIRST_LINE_PLACE, rank::STAT, format!("{label}: {shown}"));
            if shown == value { piece } else { piece.or(rank::LONGEST, format!("{label}: {value}")) }
        })
        .collect()
}

/// The files by directory if all fit with their counts, and few of them with their full paths.
fn files(files: &[File]) -> Option<Piece> {
    if files.is_empty() {
        return None;
    }
    let list = |note: &dyn Fn(&File) -> String| by_directory(files.iter().map(|file| (file.path.as_str(), note(file))));
    let (names, counted) = (list(&|_| String::new()), list(&File::counts).whole("files"));
    let head = names.head("files");
    if files.len() > FEW_FILES {
        let piece = Piece::grouped(rank::OUTLINE_PLACE, &head, names.list, (rank::ENDS + 2, 2), rank::WHOLE_OUTLINE);
        return Some(piece.or(rank::RICH_OUTLINE, counted));
    }
    let full: Vec<String> = files.iter().map(|file| format!("{} {}", file.path, file.counts())).collect();
    let piece = Piece::grouped(rank::OUTLINE_PLACE, &head, names.list, (rank::STAT, 2), rank::STAT);
    Some(piece.or(rank::STAT + 1, counted).or(rank::RICH_OUTLINE, format!("files:\n{}", full.join("\n"))))
}

#[cfg(test)]
mod tests {
    use super::super::told;
    use super::*;

    const SHOW: &str = "commit 60a47afb4a1c817b399e04497df29c1e338a2d0e\nAuthor: Ada <ada@example.org>\nDate:   Mon Nov 2 10:00:00 2026 +0000\n\n    Rework the client\n\ndiff --git a/src/net/client.rs b/src/net/client.rs\nindex 1..2 100644\n--- a/src/net/client.rs\n+++ b/src/net/client.rs\n@@ -1,3 +1,3 @@ fn connect()\n one\n--- two\n+++ two\n three\ndiff --git a/src/net/new.rs b/src/net/new.rs\nnew file mode 100644\n--- /dev/null\n+++ b/src/net/new.rs\n@@ -0,0 +1 @@\n+text\n\\ No newline at end of file\ndiff --git a/logo.png b/logo.png\ndeleted file mode 100644\nBinary files a/logo.png and /dev/null differ\ndiff --git a/a.txt b/docs/b.txt\nsimilarity index 100%\nrename from a.txt\nrename to docs/b.txt\n";

    #[test]
    fn a_commit_with_its_patch() {
        insta::assert_snapshot!(told(SHOW, 300), @r"
        [Diff]
        diff: 1 commit, 4 files changed, 2 hunks, 2 lines added, 1 line removed, 29 lines in all
        commit: 60a47afb4a1c817b399e04497df29c1e338a2d0e
        author: Ada <ada@example.org>
        date: Mon Nov 2 10:00:00 2026 +0000
        subject: Rework the client
        files: 1 new, 1 deleted, 1 renamed, 1 modified, 1 binary
        files:
        src/net/client.rs +1 -1
        src/net/new.rs +1
        logo.png binary
        docs/b.txt ±0
        definitions touched: connect
        some lines:
        1: Author: Ada <ada@example.org>
        4: Rework the client
        6: diff --git a/src/net/client.rs b/src/net/client.rs
        8: --- a/src/net/client.rs
        9: +++ b/src/net/client.rs
        11: one
        13: +++ two
        15: diff --git a/src/net/new.rs b/src/net/new.rs
        16: new file mode 100644
        18: +++ b/src/net/new.rs
        19: @@ -0,0 +1 @@
        21: \ No newline at end of file
        24: Binary files a/logo.png and /dev/null differ
        … +14
        last line: rename to docs/b.txt
        ");
    }

    #[test]
    fn many_files_share_their_directories() {
        let file = |number: usize| {
            let path = format!("src/net/part{number}.rs");
            format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1,2 @@\n one\n+two\n")
        };
        let shown = told(&(0..14).map(file).collect::<String>(), 200);
        assert!(shown.contains("\nsrc/net/ (14): part0.rs +1, part1.rs +1, part2.rs +1"), "{shown}");
        assert!(shown.contains("largest changes: src/net/: part0.rs +1, part1.rs +1"), "{shown}");
    }

    #[test]
    fn a_tight_cap_keeps_the_shape() {
        insta::assert_snapshot!(told(SHOW, 120), @r"
        [Diff]
        diff: 1 commit, 4 files changed, 2 hunks, 2 lines added, 1 line removed, 29 lines in all
        commit: 60a47afb4a1c
        author: Ada <ada@example.org>
        date: Mon Nov 2 10:00:00 2026 +0000
        subject: Rework the client
        files: 1 new, 1 deleted, 1 renamed, 1 modified, 1 binary
        files:
        src/net/: client.rs new.rs
        logo.png
        docs/: b.txt
        ");
    }

    #[test]
    fn less_and_less_of_a_diff() {
        let text = "commit 60a47afb4a1c817b399e04497df29c1e338a2d0e\nAuthor: Ada <ada@example.org>\n\n    Rework\n\n    It was too slow.\n\ndiff --git a/x.rs b/x.rs\nindex 1..2 100644\n--- a/x.rs\n+++ b/x.rs\n@@ -1,4 +1,8 @@ fn f()\n one\n-two\n+a\n+b\n+c\n+d\n+e\n+f\n three\n@@ -20,2 +25,1 @@\n-gone\n four\n";
        let forms = shorter(text, 1_000);
        insta::assert_snapshot!(forms[0], @r"
        commit 60a47afb4a1c…
        Author: Ada <ada@example.org>
            Rework
            It was too slow.
        diff --git a/x.rs b/x.rs
        -two
        +a
        +b
        +c
        +d
        +e
        +f
        -gone
        ");
        insta::assert_snapshot!(forms[LINES_OF_HUNK.len()], @r"
        commit 60a47afb4a1c…
        Author: Ada <ada@example.org>
            Rework
            It was too slow.
        diff --git a/x.rs b/x.rs
        +a
        … 5 more
        -gone
        ");
        assert_eq!(shorter("--- a.c\n+++ b.c\n@@ -1 +1,2 @@\n-x\n+y\n+z\n", 100)[0], "+++ b.c\n-x\n+y\n+z\n");
        assert!(
            shorter("0000001 Change 1\n0000002 Change 2\n", 100).is_empty(),
            "a log has no lines that both files have"
        );
    }

    #[test]
    fn a_patch_without_git_headers() {
        let text = "--- a.c\t2026-01-01\n+++ b.c\t2026-01-02\n@@ -1 +1,2 @@\n-x\n+y\n+z\n";
        insta::assert_snapshot!(told(text, 200), @r"
        [Diff]
        diff: 1 file changed, 1 hunk, 2 lines added, 1 line removed, 6 lines in all
        files: 1 modified
        files:
        b.c +2 -1
        some lines:
        0: --- a.c	2026-01-01
        1: +++ b.c	2026-01-02
        2: @@ -1 +1,2 @@
        3: -x
        4: +y
        5: +z
        last line: +z
        ");
    }

    #[test]
    fn commits_without_patches() {
        let log: String = (1..=30)
            .map(|n| {
                format!(
                    "commit {n:040x}\nAuthor: {}\nDate:   2026-01-{n:02}\n\n    Change {n}\n\n",
                    if n % 3 == 0 { "Bob <b@x>" } else { "Ada <a@x>" }
                )
            })
            .collect();
        insta::assert_snapshot!(told(&log, 220), @r"
        [Diff]
        commit log: 30 commits, 180 lines in all
        first line: commit 0000000000000000000000000000000000000001
        newest commit: 000000000000000000000000000000000000001e, 2026-01-30, Change 30
        oldest commit: 2026-01-01, Change 1
        2 authors: Ada 20, Bob 10
        commits:
        0000000 Change 1
        0000000 Change 2
        0000000 Change 3
        0000000 Change 4
        0000000 Change 5
        0000000 Change 6
        0000000 Change 7
        0000000 Change 8
        0000000 Change 9
        0000000 Change 10
        0000000 Change 11
        0000000 Change 12
        0000000 Change 13
        0000000 Change 14
        0000000 Change 15
        0000000 Change 16
        … +14
        last line:     Change 30
        ");
        let short: String = (1..=30).map(|n| format!("{n:07x} Change {n}\n")).collect();
        insta::assert_snapshot!(told(&short, 90), @r"
        [Diff]
        commit log: 30 commits, 30 lines in all
        first line: 0000001 Change 1
        first commit listed: Change 1
        last commit listed: 000001e, Change 30
        commits:
        0000001 Change 1
        0000002 Change 2
        0000003 Change 3
        … +27
        last line: 000001e Change 30
        ");
    }

    #[test]
    fn statistics_of_several_commits_are_added_up() {
        let log: String = [(2, 5, 1), (1, 0, 3), (12, 40, 0)]
            .iter()
            .map(|(files, added, removed)| {
                let part =
                    |count: &usize, of: &str| if *count == 0 { String::new() } else { format!(", {count} {of}") };
                let (added, removed) = (part(added, "insertions(+)"), part(removed, "deletions(-)"));
                format!("{files:07x} Change {files}\n\n {files} files changed{added}{removed}\n")
            })
            .collect();
        insta::assert_snapshot!(told(&log, 90), @r"
        [Diff]
        commit log: 3 commits, 15 file changes, 45 insertions, 4 deletions, 9 lines in all
        first line: 0000002 Change 2
        first commit listed: Change 2
        last commit listed: 000000c, Change 12
        commits:
        0000002 Change 2
        … +2
        last line:  12 files changed, 40 insertions(+)
        ");
        let one = told(" a.rs | 3 ++-\n b.rs | 1 +\n 2 files changed, 3 insertions(+), 1 deletion(-)\n", 60);
        assert!(one.contains("statistics: 2 files changed, 3 insertions(+), 1 deletion(-), 3 lines in all"), "{one}");
    }

    #[test]
    fn the_dates_of_all_commits_say_which_is_the_newest() {
        let log = |dates: [&str; 3]| -> String {
            let commits = (1..)
                .zip(dates)
                .map(|(n, date)| format!("commit {n:07x}{:033}\nDate:   {date}\n\n    Change {n}\n\n", 0));
            commits.collect()
        };
        for (dates, newest, oldest) in [
            (
                ["Sun Nov 1 10:00:00 2026 +0000", "Tue Nov 3 10:00:00 2026 +0000", "Mon Nov 2 10:00:00 2026 +0000"],
                "newest commit: 0000002",
                "oldest commit: Sun Nov 1",
            ),
            (
                ["2026-11-02T01:00:00+02:00", "2026-11-01T23:30:00Z", "2026-11-01T18:00:00-05:30"],
                "newest commit: 0000002",
                "oldest commit: 2026-11-02T01",
            ),
            (
                ["2026-03-01 00:10:00 +0000", "2026-02-28 23:00:00 -0200", "2026-02-28"],
                "newest commit: 0000002",
                "oldest commit: 0000003",
            ),
            (["3 days ago", "2 days ago", "today"], "first commit listed: 3 days ago", "last commit listed: 0000003"),
        ] {
            let told = told(&log(dates), 200);
            assert!(told.contains(newest) && told.contains(oldest), "{dates:?}: {told}");
        }
        assert_eq!(moment("99999-99999-99999 99:99:99 +9999"), None);
        assert!(moment("2026-65535-65535T65535:65535:65535+99999").is_some(), "no number is too large to add up");
    }

    #[test]
    fn sizes_of_hunks() {
        assert_eq!(hunk_sizes("@@ -1,2 +3,4 @@ fn x"), Some((2, 4)));
        assert_eq!(hunk_sizes("@@ -1 +3 @@"), Some((1, 1)));
        assert_eq!(hunk_sizes("@@ -x +3 @@"), None);
    }
}
