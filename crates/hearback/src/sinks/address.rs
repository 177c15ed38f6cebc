//! The addresses to which events may be posted.

use std::net::IpAddr;

/// Refuses an address whose traffic other people could read. The message does not repeat the address: it may contain a
/// token.
pub(super) fn check(url: &str) -> Result<(), String> {
    if url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("`url` contains characters that are not allowed in an address".into());
    }
    let (scheme, rest) = url.split_once("://").ok_or("`url` has to begin with `https://`")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(
            "`url` contains a user; the secret in the variable of `secret_env` identifies the sender instead"
                .into(),
        );
    }
    let host = host(authority).filter(|host| !host.is_empty()).ok_or("`url` names no host")?;
    match scheme {
        "https" => Ok(()),
        "http" if is_this_machine(host) => Ok(()),
        "http" => Err(
            "`url` is not encrypted: it has to begin with `https://`, or with `http://` and an address of \
                       this machine (127.0.0.1, [::1], localhost)"
                .into(),
        ),
        _ => Err("`url` has to begin with `https://`".into()),
    }
}

/// The host of an authority that names no user, without its port.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let plain = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    plain.then_some(host)
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_or_local_addresses_are_accepted() {
        for good in [
            "https://example.org",
            "https://example.org:8443/hook?x=1#y",
            "https://[2001:db8::1]/",
            "http://127.0.0.1:80/",
            "http://localhost/@x",
            "http://[::1]:9000",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "example.org",
            "ftp://example.org",
            "file:///etc/passwd",
            "https://",
            "https:///path",
            "http://example.org/",
            "http://127.0.0.1.example.org/",
            "http://localhost@example.org/",
            "http://localhost:1@example.org/",
            "http://127.0.0.1:x/",
            "http://[::1].example.org/",
            "http://10.0.0.1/",
            "https://exam ple.org/",
            "http://localhost\\@example.org/",
            "https://example.org/\r\nhost: other",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
