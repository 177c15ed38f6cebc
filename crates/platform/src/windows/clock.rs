//! The clocks of Windows.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use hearback_core::BootId;
use windows_sys::Win32::Foundation::ERROR_SUCCESS;
use windows_sys::Win32::System::Registry::{
    HKEY, HKEY_CURRENT_USER, KEY_QUERY_VALUE, KEY_SET_VALUE, REG_CREATED_NEW_KEY, REG_OPTION_VOLATILE,
    REG_SZ, RRF_RT_REG_SZ, RegCloseKey, RegCreateKeyExW, RegGetValueW, RegSetValueExW,
};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;
use windows_sys::core::PCWSTR;
use windows_sys::w;

/// The key of a user that is in memory alone, and the value in it.
const KEY: PCWSTR = w!("Software\\hearback-boot");
const VALUE: PCWSTR = w!("Name");

/// Interrupt time without the time asleep, which the system counts in units of 100 ns.
pub(crate) fn awake() -> Duration {
    let mut units = 0;
    // SAFETY: the pointer is to a number of ours that outlives the call.
    let told = unsafe { QueryUnbiasedInterruptTime(&raw mut units) };
    assert!(told != 0, "every system that we support has this clock");
    from_units(units)
}

/// Time since boot, sleep included. Exact to 16 ms or so, which is enough for ages.
pub(crate) fn since_boot() -> Duration {
    // SAFETY: reads a counter and takes nothing.
    Duration::from_millis(unsafe { GetTickCount64() })
}

/// A name that no other boot has, so that two moments with the same name can be told apart by the time since boot.
///
/// Windows has none. But it has keys of the registry that are never written to a disk: they go when their user has
/// logged off everywhere, and so with the boot at the latest. The process that makes that key gives it a name.
pub(crate) fn boot() -> Option<BootId> {
    static NAME: OnceLock<String> = OnceLock::new();
    let found = || Key::open()?.name().map(|name| NAME.get_or_init(|| name));
    NAME.get().or_else(found).map(BootId::new)
}

struct Key(HKEY);

impl Key {
    /// Opens it, and makes it with a new name if there is none. Nothing for a user who has no place for keys.
    fn open() -> Option<Self> {
        let (mut key, mut made) = (std::ptr::null_mut(), 0);
        // SAFETY: the name ends with a zero, what may be missing is, and the pointers are to what the call fills.
        let opened = unsafe {
            RegCreateKeyExW(
                HKEY_CURRENT_USER,
                KEY,
                0,
                std::ptr::null(),
                REG_OPTION_VOLATILE,
                KEY_QUERY_VALUE | KEY_SET_VALUE,
                std::ptr::null(),
                &raw mut key,
                &raw mut made,
            )
        };
        let key = (opened == ERROR_SUCCESS).then_some(Self(key))?;
        // Only the process that made it gives it one, so that it never has another.
        if made == REG_CREATED_NEW_KEY {
            key.give_name();
        }
        Some(key)
    }

    fn give_name(&self) {
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        let name = format!("{since_1970:x}-{:x}-{:x}\0", awake().as_nanos(), std::process::id());
        let units: Vec<u16> = name.encode_utf16().collect();
        let bytes = size_of_val(&*units) as u32;
        // SAFETY: the key is open, the name of the value ends with a zero, and the pointer is to as many bytes as are
        // said. If it is refused, a reader finds no name.
        unsafe { RegSetValueExW(self.0, VALUE, 0, REG_SZ, units.as_ptr().cast(), bytes) };
    }

    /// Nothing while the process that made the key is about to give it one: this moment has none then.
    fn name(&self) -> Option<String> {
        let mut text = [0_u16; 128];
        let mut bytes = u32::try_from(size_of_val(&text)).ok()?;
        // SAFETY: the key is open, the name ends with a zero, and `bytes` is the size of the buffer.
        let asked = unsafe {
            RegGetValueW(
                self.0,
                std::ptr::null(),
                VALUE,
                RRF_RT_REG_SZ,
                std::ptr::null_mut(),
                text.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let length = text.iter().position(|unit| *unit == 0).filter(|_| asked == ERROR_SUCCESS)?;
        String::from_utf16(&text[..length]).ok().filter(|name| !name.is_empty())
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: it is open and ours, and closed once.
        unsafe { RegCloseKey(self.0) };
    }
}

/// What Windows counts in units of 100 ns.
pub(crate) fn from_units(units: u64) -> Duration {
    const PER_SECOND: u64 = 10_000_000;
    let nanos = u32::try_from(units % PER_SECOND * 100).expect("less than a second of nanoseconds");
    Duration::new(units / PER_SECOND, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_has_a_name_and_keeps_it() {
        let name = boot().expect("a user has a place for keys");
        assert_eq!(Key::open().and_then(|key| key.name()).map(BootId::new), Some(name));
    }
}
