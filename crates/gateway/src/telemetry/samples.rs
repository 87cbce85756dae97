//! What the text says that a gateway gives as its metrics: the way back from [`super::metrics`].

use std::collections::BTreeMap;

/// Series that are read, at most: more than a gateway has.
const MOST_SERIES: usize = 10_000;

/// A sample of a metric of this program.
pub(crate) struct Sample<'t> {
    /// The name of the metric, without that of the program.
    pub(crate) name: &'t str,
    pub(crate) labels: BTreeMap<&'t str, String>,
    /// A finite number of at least 0.
    pub(crate) value: f64,
}

/// The samples in the metrics of a gateway; a line that is not one is passed over.
pub(crate) fn samples(text: &str) -> Vec<Sample<'_>> {
    text.lines().filter_map(Sample::read).take(MOST_SERIES).collect()
}

impl<'t> Sample<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let rest = line.strip_prefix("contextweaver_")?;
        let (name, mut rest) = rest.split_at(rest.find(['{', ' '])?);
        let mut labels = BTreeMap::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                let (label, after) = rest.split_once("=\"")?;
                let (value, after) = unquoted(after)?;
                labels.insert(label, value);
                match after.strip_prefix(',') {
                    Some(more) => rest = more,
                    None => {
                        rest = after.strip_prefix('}')?;
                        break;
                    }
                }
            }
        }
        let value = rest.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
        Some(Self { name, labels, value })
    }
}

/// The value of a label up to its closing quote, and what follows.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}
