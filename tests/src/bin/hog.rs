//! `hog MEBIBYTES`: takes that much memory, touches all of it, and ends with code 0 if it still can.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

fn main() {
    let wanted =
        std::env::args().nth(1).and_then(|text| text.parse::<usize>().ok()).expect("usage: hog MEBIBYTES");
    // Filled with something else than zero, or the system would not have to find it.
    let taken: Vec<Vec<u8>> = (0..wanted).map(|_| vec![1; 1024 * 1024]).collect();
    assert_eq!(std::hint::black_box(taken).len(), wanted);
}
