//! Whether a program of Linux needs a dynamic linker.

use anyhow::{Result, ensure};

/// The kind of a program header that names a dynamic linker.
const INTERPRETER: u32 = 3;

/// Whether a 64-bit little-endian program names no dynamic linker, so that it needs no library of the system.
pub(super) fn is_static(program: &[u8]) -> Result<bool> {
    ensure!(program.starts_with(b"\x7fELF\x02\x01"), "this is no 64-bit ELF program");
    let number = |at: usize, bytes: usize| -> Result<usize> {
        let field = program.get(at..at.saturating_add(bytes));
        ensure!(field.is_some(), "the ELF program is cut short");
        Ok(field.unwrap_or_default().iter().rev().fold(0, |sum, byte| (sum << 8) | usize::from(*byte)))
    };
    let (headers, size, count) = (number(0x20, 8)?, number(0x36, 2)?, number(0x38, 2)?);
    for n in 0..count {
        if number(headers.saturating_add(n * size), 4)? == INTERPRETER as usize {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with these kinds of headers.
    fn program(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[0x20] = 64;
        bytes[0x36] = 56;
        bytes[0x38] = u8::try_from(kinds.len()).unwrap();
        for kind in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        bytes
    }

    #[test]
    fn a_program_is_static_unless_it_names_a_linker() {
        assert!(is_static(&program(&[6, 1, 2])).unwrap());
        assert!(!is_static(&program(&[6, 3, 1])).unwrap());
        assert!(is_static(b"MZ").is_err());
        assert!(is_static(&program(&[1, 1])[..70]).is_err());
    }
}
