//! Names by pattern: `*` stands for any characters, `?` for one; everything else for itself.

/// Whether the whole of `name` follows `pattern`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to go on when what follows the latest star does not fit: the star takes one character more.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&c) = name.get(n) {
        match (pattern.get(p), retry) {
            (Some('*'), _) => {
                retry = Some((p + 1, n));
                p += 1;
            }
            (Some(&expected), _) if expected == '?' || expected == c => {
                p += 1;
                n += 1;
            }
            (_, Some((after, taken))) => {
                retry = Some((after, taken + 1));
                p = after;
                n = taken + 1;
            }
            _ => return false,
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|c| *c == '*'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_and_question_marks() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "any.thing", true),
            ("get_*", "get_", true),
            ("get_*", "forget_x", false),
            ("*_file", "read_text_file", true),
            ("*_file", "read_files", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a?c", "aéc", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("**b", "aab", true),
            ("[a]", "a", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    /// The definition, letter for letter.
    fn plain(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=name.len()).any(|taken| plain(rest, &name[taken..])),
            ([p, rest @ ..], [n, others @ ..]) if *p == '?' || p == n => plain(rest, others),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_definition(pattern in "[ab*?]{0,8}", name in "[ab]{0,8}") {
            let (p, n): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
            prop_assert_eq!(matches(&pattern, &name), plain(&p, &n));
        }
    }
}
