//! Enums whose values have names.

/// A text is not one of a fixed set of names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{name}`; use {choices}")]
pub struct ParseNameError {
    what: &'static str,
    name: String,
    choices: String,
}

impl ParseNameError {
    /// `name` is none of `choices`, which are the names of `what`.
    #[must_use]
    pub fn new(what: &'static str, name: &str, choices: &[&str]) -> Self {
        Self { what, name: name.to_owned(), choices: choices.join(", ") }
    }
}

/// Defines an enum without fields that is `Copy` and derives `Serialize` or `Deserialize`, with a name for each value: files,
/// commands and messages have the same names. With `as "what it is"` behind the name of the enum it is parsed, too.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $visible:vis enum $type:ident {
        $($(#[$of:meta])* $variant:ident = $name:literal),+ $(,)?
    }) => {
        $(#[$about])*
        $visible enum $type {
            $($(#[$of])* #[serde(rename = $name)] $variant),+
        }

        impl $type {
            /// All values, in their order.
            $visible const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in files, in tables and on the command line.
            #[must_use]
            $visible fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.name())
            }
        }
    };
    ($(#[$about:meta])* $visible:vis enum $type:ident as $what:literal {
        $($(#[$of:meta])* $variant:ident = $name:literal),+ $(,)?
    }) => {
        $crate::names::named! {
            $(#[$about])*
            $visible enum $type { $($(#[$of])* $variant = $name),+ }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::names::ParseNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let named = Self::ALL.into_iter().find(|one| one.name() == text);
                named.ok_or_else(|| $crate::names::ParseNameError::new($what, text, &[$($name),+]))
            }
        }
    };
}
pub use named;

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    named! {
        /// A size.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        enum Size as "size" {
            /// Small.
            #[default]
            Small = "small",
            /// Large.
            Large = "large, or larger",
        }
    }

    #[test]
    fn files_and_texts_have_the_same_names() {
        assert_eq!(Size::ALL.map(Size::name), ["small", "large, or larger"]);
        for size in Size::ALL {
            let written = serde_json::to_value(size).unwrap();
            assert_eq!(written, size.to_string());
            assert_eq!(serde_json::from_value::<Size>(written).unwrap(), size);
            assert_eq!(size.name().parse(), Ok(size));
        }
        let error = "medium".parse::<Size>().unwrap_err();
        assert_eq!(error.to_string(), "unknown size `medium`; use small, large, or larger");
        assert_eq!(Size::default(), Size::Small);
    }
}
