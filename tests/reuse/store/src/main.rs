//! A hotel that keeps its bookings as write-once records: `hearback-store` without jobs, sessions or a monitor.
//!
//! Every step asserts what it did, so that running this is a test.

use std::error::Error;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use hearback_core::port::disk::{Disk, Flush, LockMode, Publish, Wait};
use hearback_core::port::record::StoreError;
use hearback_core::{LockState, Read};
use hearback_platform::Native;
use hearback_store::{Format, Records, Rules};
use serde::{Deserialize, Serialize};

/// The records of this hotel. The store does not know the type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Booking {
    version: u32,
    guest: String,
    nights: u32,
}

/// Our own names, our own limit, our own field for the format.
const RULES: Rules = Rules { max_bytes: 1024, format: Some(Format { field: "version", newest: 2 }) };
const CLEANING: &str = "room-7/cleaning.lock";
const CLOSING: &str = "room-7/closing.json";

fn hotel(home: &Path) -> Result<Records<Native>, StoreError> {
    Records::open(Native::default(), home, RULES)
}

fn booking(guest: &str) -> Booking {
    Booking { version: 2, guest: guest.to_owned(), nights: 3 }
}

fn main() -> Result<(), Box<dyn Error>> {
    if let [_, role, home] = &std::env::args().collect::<Vec<_>>()[..] {
        assert_eq!(role, "clean");
        return clean(Path::new(home));
    }
    let home = std::env::temp_dir().join(format!("reuse-store-{}", std::process::id()));
    let hotel = hotel(&home)?;
    assert_eq!(hotel.make_folder("room-7")?, Publish::New);
    assert_eq!(hotel.make_folder("room-7")?, Publish::Exists);
    one_of_many_wins(&hotel)?;
    damage_is_told_from_absence(&hotel)?;
    room_is_kept_for_the_last_record(&hotel)?;
    a_lock_ends_with_its_holder(&hotel)?;
    hotel.disk().remove(hotel.home())?;
    println!("reuse-store: all as promised");
    Ok(())
}

fn one_of_many_wins(hotel: &Records<Native>) -> Result<(), Box<dyn Error>> {
    let (guests, start) = (["Ada", "Bob", "Eve", "Joe"], Barrier::new(4));
    let publish = |guest| {
        start.wait();
        hotel.publish_new("room-7/booking.json", &booking(guest), Flush::Power)
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads = guests.map(|guest| scope.spawn(move || publish(guest)));
        threads.into_iter().map(|thread| thread.join().expect("no guest panics")).collect()
    });
    let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    let winners: Vec<_> =
        guests.iter().zip(&answers).filter(|(_, answer)| **answer == Publish::New).collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    assert_eq!(hotel.read("room-7/booking.json")?, Read::Present(booking(winners[0].0)));
    Ok(())
}

fn damage_is_told_from_absence(hotel: &Records<Native>) -> Result<(), Box<dyn Error>> {
    assert_eq!(hotel.read::<Booking>("room-8.json")?, Read::Absent);
    let long = "x".repeat(2000);
    for (name, text) in
        [("torn", r#"{"version":2,"gue"#), ("unmarked", r#"{"guest":"Ada"}"#), ("long", &long)]
    {
        let _ = hotel.publish_bytes(name, text.as_bytes(), Flush::No)?;
        assert!(matches!(hotel.read::<Booking>(name)?, Read::Unreadable(_)), "{name}");
    }
    let _ = hotel.publish_bytes("newer", br#"{"version":3,"guests":["Ada","Bob"]}"#, Flush::No)?;
    assert_eq!(hotel.read::<Booking>("newer")?, Read::Newer(3));
    Ok(())
}

fn room_is_kept_for_the_last_record(hotel: &Records<Native>) -> Result<(), Box<dyn Error>> {
    hotel.reserve("room-7/reserve", 512)?;
    let last = br#"{"version":2,"guest":"closed","nights":0}"#;
    assert_eq!(hotel.publish_reserved("room-7/reserve", CLOSING, last, Flush::Power)?, Publish::New);
    assert!(matches!(hotel.read::<Booking>(CLOSING)?, Read::Present(found) if found.nights == 0));
    Ok(())
}

/// Another process holds the lock and is killed. No process cleans up after it, and the lock is free.
fn a_lock_ends_with_its_holder(hotel: &Records<Native>) -> Result<(), Box<dyn Error>> {
    assert_eq!(hotel.probe(CLEANING)?, LockState::Free);
    let mut cleaner = start_cleaner(hotel.home())?;
    assert_eq!(hotel.probe(CLEANING)?, LockState::Held);
    assert!(hotel.lock(CLEANING, LockMode::Exclusive, Wait::Try)?.is_none(), "one at a time");
    cleaner.kill()?;
    cleaner.wait()?;
    // Sleeps in the kernel until the lock is free, and needs no timer.
    assert!(hotel.lock(CLEANING, LockMode::Exclusive, Wait::Block)?.is_some());
    assert_eq!(hotel.probe(CLEANING)?, LockState::Free);
    Ok(())
}

/// Starts the other process, and returns when it has the lock.
fn start_cleaner(home: &Path) -> Result<Child, Box<dyn Error>> {
    let mut me = Command::new(std::env::current_exe()?);
    let mut cleaner = me.arg("clean").arg(home).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut word = String::new();
    let words = cleaner.stdout.take().expect("it is a pipe");
    std::io::BufReader::new(words).read_line(&mut word)?;
    assert_eq!(word.trim(), "cleaning");
    Ok(cleaner)
}

/// The other process: holds the lock until it is killed, or until the first process is gone.
fn clean(home: &Path) -> Result<(), Box<dyn Error>> {
    let hotel = hotel(home)?;
    let _cleaning = hotel.lock(CLEANING, LockMode::Exclusive, Wait::Block)?;
    println!("cleaning");
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    Ok(())
}
