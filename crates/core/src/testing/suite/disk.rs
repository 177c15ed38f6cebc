//! What every disk does.

use std::path::Path;
use std::time::Duration;

use crate::LockState;
use crate::port::disk::{Disk, Flush, FolderEvent, FolderWatch, LockMode, Publish, Wait};

/// Holds a disk to its promises inside `root`, which is created.
pub fn disk(disk: &dyn Disk, root: &Path) {
    let home = disk.secure_home(root).unwrap();
    assert_eq!(disk.secure_home(root).unwrap(), home, "a home that is there is fine");
    publishing(disk, &home);
    reading(disk, &home);
    locking(disk, &home);
    moving(disk, &home);
    watching(disk, &home);
    assert_ne!(disk.nonce(), disk.nonce());
}

fn publishing(disk: &dyn Disk, home: &Path) {
    let fact = home.join("fact");
    for flush in [Flush::No, Flush::Power] {
        assert_eq!(disk.publish_new(&fact, b"first", flush).unwrap(), Publish::New);
        assert_eq!(disk.publish_new(&fact, b"second", flush).unwrap(), Publish::Exists);
        assert_eq!(disk.read(&fact, 100).unwrap().unwrap(), b"first", "the first one stays");
        assert_eq!(disk.list(home).unwrap(), ["fact"], "no temporary file remains");
        disk.remove(&fact).unwrap();
    }

    let reserve = home.join("reserve");
    assert_eq!(disk.publish_new(&reserve, &[b' '; 64], Flush::No).unwrap(), Publish::New);
    assert_eq!(disk.publish_reserved(&reserve, &fact, b"{\"a\":1}", Flush::Power).unwrap(), Publish::New);
    let text = String::from_utf8(disk.read(&fact, 100).unwrap().unwrap()).unwrap();
    assert_eq!(text.trim_end(), "{\"a\":1}");
    assert_eq!(disk.list(home).unwrap(), ["fact"], "a reserve is used up");
    assert_eq!(disk.publish_new(&reserve, &[b' '; 64], Flush::No).unwrap(), Publish::New);
    assert_eq!(disk.publish_reserved(&reserve, &fact, b"{}", Flush::No).unwrap(), Publish::Exists);
    disk.remove(&reserve).unwrap();
    disk.remove(&fact).unwrap();

    let long = vec![b'x'; 100];
    assert_eq!(disk.publish_new(&reserve, &[b' '; 64], Flush::No).unwrap(), Publish::New);
    assert_eq!(disk.publish_reserved(&reserve, &fact, &long, Flush::No).unwrap(), Publish::New);
    assert_eq!(disk.read(&fact, 100).unwrap().unwrap(), long, "what does not fit is published all the same");
    disk.remove(&fact).unwrap();
    disk.remove(&reserve).unwrap();
    assert_eq!(
        disk.publish_reserved(&reserve, &fact, b"{}", Flush::No).unwrap(),
        Publish::New,
        "without a reserve too"
    );
    disk.remove(&fact).unwrap();
    disk.remove(&fact).unwrap();
}

fn reading(disk: &dyn Disk, home: &Path) {
    let file = home.join("file");
    assert!(disk.read(&file, 10).unwrap().is_none());
    assert!(disk.open(&file).unwrap().is_none());
    assert_eq!(disk.size(&file).unwrap(), 0);
    disk.append(&file, b"one ").unwrap();
    disk.append(&file, b"two").unwrap();
    assert_eq!(disk.read(&file, 7).unwrap().unwrap(), b"one two");
    assert!(disk.read(&file, 6).is_err(), "a file over the bound is refused");
    disk.flush(&file).unwrap();
    disk.flush(home).unwrap();
    let mut opened = disk.open(&file).unwrap().unwrap();
    let mut text = String::new();
    std::io::Seek::seek(&mut opened, std::io::SeekFrom::Start(4)).unwrap();
    std::io::Read::read_to_string(&mut opened, &mut text).unwrap();
    assert_eq!(text, "two");
    drop(opened);
    disk.remove(&file).unwrap();
}

fn locking(disk: &dyn Disk, home: &Path) {
    let path = home.join("a.lock");
    assert_eq!(disk.probe(&path).unwrap(), LockState::Free, "a lock that was never taken is free");
    assert!(disk.list(home).unwrap().is_empty(), "a probe creates nothing");
    assert!(disk.lock(&path, LockMode::Shared, Wait::Block).unwrap().is_some());

    let held = disk.lock(&path, LockMode::Exclusive, Wait::Try).unwrap().unwrap();
    assert_eq!(disk.probe(&path).unwrap(), LockState::Held);
    assert!(disk.lock(&path, LockMode::Shared, Wait::Try).unwrap().is_none());
    assert!(disk.lock(&path, LockMode::Exclusive, Wait::Try).unwrap().is_none());
    drop(held);

    assert_eq!(disk.probe(&path).unwrap(), LockState::Free);
    let one = disk.lock(&path, LockMode::Shared, Wait::Try).unwrap().unwrap();
    let two = disk.lock(&path, LockMode::Shared, Wait::Try).unwrap();
    assert!(two.is_some(), "shared holders do not mind each other");
    assert_eq!(disk.probe(&path).unwrap(), LockState::Free, "nor does a probe");
    assert!(disk.lock(&path, LockMode::Exclusive, Wait::Try).unwrap().is_none());
    drop((one, two));
    let gone = disk.lock(&home.join("no folder").join("a.lock"), LockMode::Exclusive, Wait::Try);
    assert_eq!(gone.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    disk.remove(&path).unwrap();
}

fn moving(disk: &dyn Disk, home: &Path) {
    let (from, to) = (home.join("from"), home.join("to"));
    assert!(!disk.is_dir(&from).unwrap());
    assert_eq!(disk.make_dir(&from).unwrap(), Publish::New);
    assert_eq!(disk.make_dir(&from).unwrap(), Publish::Exists);
    assert!(disk.is_dir(&from).unwrap());
    disk.append(&from.join("x"), b"1").unwrap();
    assert_eq!(disk.move_dir(&from, &to).unwrap(), Publish::New);
    assert_eq!(disk.read(&to.join("x"), 1).unwrap().unwrap(), b"1");
    let (file, moved) = (to.join("x"), to.join("moved"));
    assert_eq!(disk.move_dir(&file, &moved).unwrap(), Publish::New, "a file moves as well");
    assert_eq!(disk.read(&moved, 1).unwrap().unwrap(), b"1");
    assert_eq!(disk.move_dir(&file, &moved).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    assert_eq!(disk.move_dir(&moved, &file).unwrap(), Publish::New);
    assert_eq!(
        disk.move_dir(&from, &home.join("elsewhere")).unwrap_err().kind(),
        std::io::ErrorKind::NotFound
    );
    assert_eq!(disk.make_dir(&from).unwrap(), Publish::New);
    disk.append(&from.join("y"), b"2").unwrap();
    assert_eq!(
        disk.move_dir(&from, &to).unwrap(),
        Publish::Exists,
        "a directory that is there is not replaced"
    );
    disk.remove_if_empty(&to).unwrap();
    assert!(disk.is_dir(&to).unwrap(), "what is not empty stays");
    disk.remove(&to).unwrap();
    disk.remove(&from).unwrap();
    assert_eq!(disk.make_dir(&from).unwrap(), Publish::New);
    disk.remove_if_empty(&from).unwrap();
    assert!(disk.list(home).unwrap().is_empty());
    assert!(disk.list(&from).unwrap().is_empty(), "a directory that is not there is empty");
}

fn watching(disk: &dyn Disk, home: &Path) {
    let Ok(mut watch) = disk.watch_folders() else { return };
    let until = |watch: &mut dyn FolderWatch, folder: &Path, name: &str| {
        let event = FolderEvent::At { folder: folder.to_owned(), name: name.to_owned() };
        for _ in 0..100 {
            if watch.wait(Duration::from_secs(60)).contains(&event) {
                return;
            }
        }
        panic!("{event:?} is not reported");
    };
    let [a, b] = ["a", "b"].map(|name| home.join(name));
    assert!(watch.add(&a).is_err(), "it is not there");
    for folder in [&a, &b] {
        let _ = disk.make_dir(folder).unwrap();
        watch.add(folder).unwrap();
        watch.add(folder).unwrap();
    }
    let _ = disk.publish_new(&a.join("fact"), b"x", Flush::No).unwrap();
    until(&mut *watch, &a, "fact");
    drop(disk.lock(&b.join("lock"), LockMode::Exclusive, Wait::Try).unwrap());
    until(&mut *watch, &b, "lock");
    // One that is moved away is another folder, and one that is made in its place is heard of.
    let _ = disk.move_dir(&a, &home.join("c")).unwrap();
    let _ = disk.make_dir(&a).unwrap();
    watch.add(&a).unwrap();
    let _ = disk.publish_new(&a.join("again"), b"x", Flush::No).unwrap();
    until(&mut *watch, &a, "again");
    watch.remove(&a);
    let _ = disk.publish_new(&a.join("unheard"), b"x", Flush::No).unwrap();
    let _ = disk.publish_new(&b.join("heard"), b"x", Flush::No).unwrap();
    let heard = watch.wait(Duration::from_secs(60));
    assert!(!heard.iter().any(|event| matches!(event, FolderEvent::At { folder, .. } if *folder == a)));
    for name in ["a", "b", "c"] {
        disk.remove(&home.join(name)).unwrap();
    }
}
