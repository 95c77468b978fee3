//! Faults of text that should be a rule book.

use super::{MOST_BOOK_BYTES, MOST_DEPTH, MOST_NUMBER_BYTES, MOST_RULES};

/// A fault and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at byte {at}: {fault}")]
pub struct Problem {
    /// Bytes of the text before it.
    pub at: usize,
    /// The fault.
    pub fault: Fault,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// The text is too long.
    #[error("a rule book of more than {MOST_BOOK_BYTES} B")]
    TooLong,
    /// There are too many.
    #[error("more than {MOST_RULES} rules")]
    TooManyRules,
    /// Parentheses within parentheses, too many, or a condition that would need them.
    #[error("a condition with more than {MOST_DEPTH} parts within parts")]
    TooDeep,
    /// A condition needs one here.
    #[error("a number, a variable or '(' is missing")]
    Operand,
    /// One too few.
    #[error("a ')' is missing")]
    Parenthesis,
    /// None of the characters that may follow a condition.
    #[error("a condition that ends neither with ',' nor with ';'")]
    Condition,
    /// No number, or one that is too long or above 10^18.
    #[error("no decimal number of at most {MOST_NUMBER_BYTES} B up to 10^18")]
    Number,
    /// Names have letters, digits, `_`, `-` and `.`, and begin with no digit, `-` or `.`.
    #[error("no name")]
    Name,
    /// A property has no value.
    #[error("a '=' is missing")]
    Equals,
    /// A value in quotes has no end, or something behind it.
    #[error("quotes that do not end where the value ends")]
    Quotes,
    /// A value that would not be read back: quotes, or without them a `,`, `;` or blanks around it.
    #[error("a value that cannot be written")]
    Value,
}

impl Fault {
    /// Returns the problem of this fault at this byte.
    pub(super) fn at(self, at: usize) -> Problem {
        Problem { at, fault: self }
    }
}
