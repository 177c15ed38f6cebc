//! hearback.
fn main() {}
