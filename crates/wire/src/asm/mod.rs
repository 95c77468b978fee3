//! ASM rule books (RealNetworks' Adaptive Stream Management): which parts of a stream a player takes at which bandwidth.
//! Text to rules and back, no I/O.
//!
//! A book is a list of rules that each end with `;`. A rule is an optional condition and properties,
//! separated by commas:
//!
//! ```text
//! #($Bandwidth >= 34000) && ($Bandwidth < 45000),AverageBandwidth=34000,Priority=9;
//! #($Bandwidth >= 34000) && ($Bandwidth < 45000),AverageBandwidth=0,Priority=5,OnDepend="0";
//! ```
//!
//! Rules are numbered from 0 in their order, and packets and subscriptions name them by that. A condition has
//! `&&`, `||`, `<`, `<=`, `>`, `>=`, `==`, `!=`, parentheses, decimal numbers and variables. `$Bandwidth`
//! (bit/s) is the one that matters; an unset variable is 0, which is false. The form is that of the books
//! that RealNetworks' encoders write and that FFmpeg and GStreamer read; case matters in none of its words.
//!
//! Bounds: [`MOST_BOOK_BYTES`] for a book, [`MOST_RULES`] in it, [`MOST_DEPTH`] for parentheses, and [`MOST_NUMBER_BYTES`]
//! for a number.

mod condition;
mod fault;
mod reader;
mod rules;

pub use condition::{AsmCondition, AsmOperator};
pub use fault::{Fault, Problem};
pub use rules::{AsmProperty, AsmRule, AsmRuleBook};

/// Bytes of a book that is read.
pub const MOST_BOOK_BYTES: usize = 64 << 10;
/// Rules that a book may have.
pub const MOST_RULES: usize = 1024;
/// Parentheses that may be open at the same time, and parts within parts of a condition.
pub const MOST_DEPTH: usize = 32;
/// Bytes of a number.
pub const MOST_NUMBER_BYTES: usize = 20;

#[cfg(test)]
mod tests;
