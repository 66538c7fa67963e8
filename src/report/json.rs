//! The report as JSON (`-o json`).
