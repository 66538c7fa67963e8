//! The report for a person.
