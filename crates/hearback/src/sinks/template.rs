//! The arguments of a command, filled in from a delivery.

use std::time::Duration;

use hearback_core::message::{clean_line, command_text, duration_text, shortened};
use hearback_core::{JobView, OsText, SinkPayload};

/// A longer argument may not fit: Windows allows some 32,000 characters in all, Linux 128 KiB in one.
pub(super) const ARGUMENT_BYTES: usize = 24 * 1024;

/// The command line for a delivery; otherwise why this delivery can never have one.
pub(super) fn arguments(words: &[String], payload: &SinkPayload) -> Result<Vec<OsText>, String> {
    // Without a session, an agent would resume another session.
    if payload.session().is_none() && needs_session(words) {
        return Err("it has no session to wake".into());
    }
    let mut options = true;
    let mut argv = Vec::with_capacity(words.len());
    for word in words {
        options &= word != "--";
        let mut filled = filled(word, payload);
        // The text may begin with any character.
        if word == "{text}" && filled.starts_with('-') {
            filled.insert(0, ' ');
        }
        // A session name must not be able to set options of the agent.
        if options && word.starts_with('{') && filled.starts_with('-') {
            return Err(format!("`{}` would be taken for an option", clean_line(&shortened(&filled, 100))));
        }
        argv.push(OsText::Text(filled));
    }
    Ok(argv)
}

/// Whether the command line names the session.
pub(super) fn needs_session(words: &[String]) -> bool {
    words.iter().any(|word| word.contains("{session}"))
}

/// Replaces placeholders by values of the payload.
fn filled(word: &str, payload: &SinkPayload) -> String {
    let jobs: Vec<_> = payload.deliveries().iter().map(|delivery| &delivery.job).collect();
    let of_each =
        |what: fn(&JobView) -> String| jobs.iter().map(|job| what(job)).collect::<Vec<_>>().join("; ");
    fill(word, |name| {
        Some(match name {
            "session" => payload.session().map_or("", |session| session.as_str()).to_owned(),
            "destination" => payload.destination().unwrap_or_default().to_owned(),
            "text" => payload.text_within(ARGUMENT_BYTES).to_string(),
            "delivery" => payload.id().to_owned(),
            "job" => of_each(|job| job.id.to_string()),
            "title" if jobs.is_empty() => payload.text().lines().next().unwrap_or_default().to_owned(),
            "title" => shortened(&of_each(outcome), ARGUMENT_BYTES / 8),
            "name" => shortened(&of_each(full_name), ARGUMENT_BYTES / 8),
            "ran" => of_each(ran),
            "command" => shortened(&of_each(command), ARGUMENT_BYTES / 8),
            _ => return None,
        })
    })
}

/// Replaces placeholders by their values; one without a value stays as it is. A value is never searched for
/// placeholders.
pub(super) fn fill(word: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        let Some(end) = rest.find('}') else { break };
        match value(&rest[1..end]) {
            Some(value) => text.push_str(&value),
            None => text.push_str(&rest[..=end]),
        }
        rest = &rest[end + 1..];
    }
    text.push_str(rest);
    text
}

fn outcome(job: &JobView) -> String {
    clean_line(&job.outcome.as_ref().map_or_else(|| job.state.as_str().to_owned(), ToString::to_string))
}

/// The label, if there is one, and the command.
fn full_name(job: &JobView) -> String {
    let label = job.label.as_ref().map(|label| format!("[{}] ", clean_line(label)));
    label.unwrap_or_default() + &command(job)
}

/// How long it ran; a dash if nothing ran.
fn ran(job: &JobView) -> String {
    job.ran_ms.map_or_else(|| "-".into(), |ran| duration_text(Duration::from_millis(ran)))
}

fn command(job: &JobView) -> String {
    clean_line(&job.command.as_ref().map(command_text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hearback_core::Delivery;
    use hearback_core::message::Excerpt;
    use hearback_core::testing::sample;

    #[test]
    fn what_a_job_says_cannot_be_filled_in_twice_or_become_an_argument() {
        let excerpt = Excerpt { head: b"{session} $(rm) `x`\n".to_vec(), tail: vec![], omitted: 0 };
        let job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        let payload = SinkPayload::from(Delivery::new(job, &excerpt, 1, false, 1));
        let word = |word| filled(word, &payload);
        assert!(word("{text}").contains("| {session} $(rm) `x`\n"), "{}", word("{text}"));
        assert_eq!(word("--id={session}"), "--id=s");
        assert_eq!(word("{unknown} {"), "{unknown} {");
        assert_eq!(word("{title}"), "done: exit code 0");
        let job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        let late = SinkPayload::from(Delivery::new(job, &excerpt, 1, true, 1));
        assert_eq!(filled("{title}", &late), "done: exit code 0", "late or not");
    }

    #[test]
    fn a_session_is_named_and_is_no_option() {
        let nothing = Excerpt { head: vec![], tail: vec![], omitted: 0 };
        let job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        let mut delivery = Delivery::new(job, &nothing, 1, false, 1);
        let words = |words: &[&str], delivery: &Delivery| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments(&words, &delivery.clone().into())
                .map(|argv| argv.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            words(&["agent", "--resume", "{session}"], &delivery).unwrap(),
            ["agent", "--resume", "s"]
        );
        delivery.session = hearback_core::Session::parse("--yolo").ok();
        assert!(words(&["agent", "--resume", "{session}"], &delivery).unwrap_err().contains("`--yolo`"));
        assert_eq!(words(&["agent", "--id={session}"], &delivery).unwrap()[1], "--id=--yolo");
        assert_eq!(words(&["note", "--", "{session}"], &delivery).unwrap()[2], "--yolo");
        delivery.session = None;
        assert!(words(&["agent", "--resume={session}"], &delivery).unwrap_err().contains("no session"));
        assert_eq!(words(&["page", "{job}"], &delivery).unwrap()[1], delivery.job.id.as_str());
    }

    #[test]
    fn no_argument_is_too_long_to_be_one() {
        let nothing = Excerpt { head: vec![b'x'; 1 << 20], tail: vec![], omitted: 0 };
        let mut job = sample::view(hearback_core::Outcome::Exited { code: 0 });
        job.command = Some(hearback_core::CommandLine::Shell { shell: "y".repeat(1 << 20), program: None });
        let delivery = SinkPayload::from(Delivery::new(job, &nothing, 1, false, 1));
        for word in ["{text}", "{command}"] {
            assert!(filled(word, &delivery).len() <= ARGUMENT_BYTES, "{word}");
        }
        let text = filled("{text}", &delivery);
        assert!(
            text.starts_with("A background job that you launched has ended.\n")
                && text.contains("bytes left out")
        );
    }
}
