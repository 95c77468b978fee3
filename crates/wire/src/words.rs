//! Words that headers and descriptions list.

/// An enumeration of words, each as it is written; reading takes any case.
macro_rules! words {
    ($(#[$of:meta])* $name:ident { $($(#[$one:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$of])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($(#[$one])* $variant,)+
        }

        impl $name {
            /// All there are.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// Returns the word as it is written.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// Returns those that a list with commas has. Others are left out, as the specifications require.
            pub fn listed(text: &str) -> Vec<Self> {
                let one = |word: &str| Self::ALL.iter().find(|one| one.word().eq_ignore_ascii_case(word)).copied();
                text.split(',').filter_map(|word| one(word.trim())).collect()
            }

            /// Returns a list of them, with these between.
            pub fn list(all: &[Self], between: &str) -> String {
                all.iter().map(|one| one.word()).collect::<Vec<_>>().join(between)
            }
        }
    };
}
pub(crate) use words;
