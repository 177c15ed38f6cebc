//! Posting a delivery to an address, signed by Standard Webhooks.
//!
//! It makes one request, follows no redirects, and takes at most half a minute. The id is that of the delivery, the
//! same in each attempt; the signed time is that of the attempt.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use hearback_core::message::clean_line;
use hearback_core::port::clock::Clock;
use hearback_platform::Native;
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;

use super::address;
use super::builtin::{BuiltIn, Undelivered, input};
use super::hand_over::GONE;
use super::webhook;

/// Shorter than the default timeout of a sink, so that the reason of the failure is known.
const WITHIN: Duration = Duration::from_secs(30);
const SECRET_PREFIX: &str = "whsec_";
/// As Standard Webhooks requires: a shorter secret can be guessed.
const SECRET_BYTES_MIN: usize = 24;

/// The part of the envelope that is needed.
#[derive(Deserialize)]
struct Envelope {
    id: String,
}

/// What hearback does as a webhook.
pub(super) const BUILT_IN: BuiltIn = BuiltIn { name: webhook::NAME, run };

fn run(words: &[OsString]) -> Result<(), Undelivered> {
    let [url, secret_env] = words else {
        return Err("a webhook needs an address and the name of a variable".to_owned().into());
    };
    post(url, secret_env)
}

/// Posts what is on standard input.
fn post(url: &OsStr, secret_env: &OsStr) -> Result<(), Undelivered> {
    let url = url.to_str().ok_or_else(|| "`url` is not Unicode".to_owned())?;
    address::check(url)?;
    let secret = Secret::from_env(secret_env)?;
    let body = input()?;
    let body = body.trim_ascii_end();
    let envelope: Envelope =
        serde_json::from_slice(body).map_err(|error| format!("the delivery cannot be read: {error}"))?;
    let seconds = Native::default().wall().as_millis() / 1000;

    let config = ureq::Agent::config_builder()
        .timeout_global(Some(WITHIN))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .user_agent(concat!("hearback/", env!("CARGO_PKG_VERSION")));
    // An address of this machine is not behind a proxy, and the proxy could read the request.
    let config = if url.starts_with("http://") { config.proxy(None) } else { config };
    let posted = config
        .build()
        .new_agent()
        .post(url)
        .content_type("application/cloudevents+json")
        .header("webhook-id", &envelope.id)
        .header("webhook-timestamp", seconds.to_string())
        .header("webhook-signature", secret.sign(&envelope.id, seconds, body))
        .send(body);
    match posted {
        Ok(answer) => {
            let retry_after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
            judge(answer.status().as_u16(), retry_after)
        }
        Err(error) => Err(clean_line(&format!("the post failed: {error}")).into()),
    }
}

/// What a status means for a delivery. A status that requests a later time counts as a failed attempt, so that retries
/// end; the time is obeyed if it is given in seconds.
fn judge(status: u16, retry_after: Option<&str>) -> Result<(), Undelivered> {
    let (code, said) = match status {
        200..=299 => return Ok(()),
        404 | 410 => (GONE, ": this address takes no events"),
        429 => (1, ": too many requests"),
        300..=399 => (1, ": redirects are not followed; set `url` to the final address"),
        _ => (1, ""),
    };
    let seconds =
        retry_after.filter(|_| matches!(status, 429 | 503)).and_then(|text| text.trim().parse().ok());
    Err(Undelivered {
        code,
        reason: format!("status {status}{said}"),
        retry_after: seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs),
    })
}

/// A key that the receiver knows, too.
struct Secret(Vec<u8>);

impl Secret {
    fn from_env(name: &OsStr) -> Result<Self, String> {
        let shown = clean_line(&name.to_string_lossy());
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| {
            format!("the variable `{shown}`, which `secret_env` names, is not set in the environment of the sender")
        })?;
        // The message never repeats any part of the value.
        value.to_str().and_then(Self::parse).ok_or_else(|| {
            format!(
                "the variable `{shown}` holds no valid secret: expected `{SECRET_PREFIX}` and the base64 of at least \
                 {SECRET_BYTES_MIN} bytes"
            )
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let encoded = text.trim().strip_prefix(SECRET_PREFIX)?.trim_end_matches('=');
        let key = STANDARD_NO_PAD.decode(encoded).ok()?;
        (key.len() >= SECRET_BYTES_MIN).then_some(Self(key))
    }

    /// The parts are joined with dots. The id is minted by hearback and contains no dot of another origin, so it is
    /// clear where it ends.
    fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed_the_same() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn an_invalid_secret_is_refused() {
        for bad in ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(Secret::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_status_is_an_answer() {
        let code = |status| judge(status, None).err().map(|undelivered| undelivered.code);
        assert_eq!([200, 204].map(code), [None, None]);
        assert_eq!([404, 410].map(code), [Some(GONE); 2]);
        assert_eq!([302, 400, 401, 429, 500, 503].map(code), [Some(1); 6]);
        let requested = |status, when| judge(status, Some(when)).unwrap_err().retry_after;
        assert_eq!([429, 503].map(|status| requested(status, " 30")), [Some(Duration::from_secs(30)); 2]);
        assert_eq!(
            [("0", 429), ("Sun, 06 Nov 1994 08:49:37 GMT", 429), ("-1", 503), ("30", 404)]
                .map(|(when, status)| requested(status, when)),
            [None; 4]
        );
    }
}
