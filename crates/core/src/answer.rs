//! The answer of a prompt job: the last message of its agent, or why there is none.
//!
//! A pure function of the outcome and of the files that the job left. Every process that computes it gets the same
//! answer, so it does not matter which one records it first.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clean::{clean, clean_line};
use crate::credentials::mask_credentials;
use crate::transcript::{self, Transcript};
use crate::variant::reads_newer_variants;
use crate::{Extra, FORMAT, Facts, JobState, Outcome};

/// The longest answer that is kept.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// How much is read of the answer file, and of the end of the output.
pub const ANSWER_LOOK_BYTES: u64 = 512 * 1024;
/// The longest error message of an agent that is kept.
const REASON_BYTES: usize = 512;

/// The answer of a prompt job. Every job that `ask` started has one when it has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Answer {
    /// The job succeeded, and this is its answer.
    Text(AnswerText),
    /// The job succeeded without an answer.
    NoAnswer {
        /// Why there is no answer.
        reason: String,
    },
    /// The job failed. Its text until then is not an answer, but may be useful.
    Failed {
        /// How the job ended, and the error message of the agent.
        reason: String,
        /// The text until then.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        partial: Option<AnswerText>,
    },
    /// An answer that only a newer hearback knows.
    #[serde(other)]
    Unknown,
}

/// Text of an agent, without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerText {
    /// The text.
    pub text: String,
    /// Where the text was found.
    pub source: AnswerSource,
    /// Whether the text was cut.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Where an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum AnswerSource {
    /// The job wrote it to the file that `HEARBACK_ANSWER` names.
    File,
    /// It is the last message of the assistant in JSON output of the job.
    Message,
    /// It is the output of the job.
    Output,
    /// A source that only a newer hearback knows.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(AnswerSource);

impl Answer {
    /// The text: the answer, or the text before a failure.
    pub fn words(&self) -> Option<&AnswerText> {
        match self {
            Self::Text(words) => Some(words),
            Self::Failed { partial, .. } => partial.as_ref(),
            Self::NoAnswer { .. } | Self::Unknown => None,
        }
    }

    /// Masks text in it that looks like a credential.
    pub fn mask_credentials(&mut self) {
        let (reason, words) = match self {
            Self::Text(words) => (None, Some(words)),
            Self::NoAnswer { reason } => (Some(reason), None),
            Self::Failed { reason, partial } => (Some(reason), partial.as_mut()),
            Self::Unknown => (None, None),
        };
        for text in reason.into_iter().chain(words.map(|words| &mut words.text)) {
            *text = mask_credentials(text).into_owned();
        }
    }

    /// An answer whose record exists and cannot be used.
    pub(crate) fn unusable(why: &str) -> Self {
        Self::Failed { reason: format!("the record of its answer cannot be used: {why}"), partial: None }
    }
}

/// One line that begins with the kind of the answer, for people and models; without its text.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(words) if words.truncated => write!(f, "answered, cut to {} bytes", words.text.len()),
            Self::Text(_) => f.write_str("answered"),
            Self::NoAnswer { reason } => write!(f, "no answer: {reason}"),
            Self::Failed { reason, .. } => write!(f, "no answer, it failed: {reason}"),
            Self::Unknown => f.write_str("answered, in a form that only a newer hearback knows"),
        }
    }
}

/// The record of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The format of this fact.
    pub format: u32,
    /// The answer.
    pub answer: Answer,
    /// Fields that a newer hearback wrote.
    #[serde(flatten)]
    pub extra: Extra,
}

impl AnswerRecord {
    /// A record in the format of this build.
    pub fn new(answer: Answer) -> Self {
        Self { format: FORMAT, answer, extra: Extra::new() }
    }
}

/// Whether a job has ended and its answer is not recorded yet.
pub fn answer_is_due(facts: &Facts, state: &JobState<'_>) -> bool {
    facts.answer.is_absent()
        && facts.spec.present().is_some_and(|spec| spec.answer)
        && matches!(state, JobState::Ended { .. })
}

/// The files that a prompt job left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remains {
    /// The beginning of its answer file.
    pub file: Vec<u8>,
    /// The end of its output.
    pub output: Vec<u8>,
    /// Whether there was more output before that.
    pub cut: bool,
}

/// Computes the answer of a prompt job.
///
/// The answer file counts first, then the last message of the assistant in JSON output, then all output. A job that
/// failed has no answer. The same holds if the agent reports a failure, because some agents do so and exit with 0.
pub fn resolve_answer(outcome: &Outcome, remains: &Remains) -> Answer {
    let printed = decoded(&remains.output);
    let said = transcript::read(&printed);
    let words = from_file(&remains.file).or_else(|| match &said {
        Some(said) => from_message(said),
        None => from_output(&printed, remains.cut),
    });
    let complaint = said.as_ref().and_then(|said| said.complaint.as_deref()).and_then(one_line);
    if !outcome.is_success() {
        let mut reason = outcome.to_string();
        if let Some(complaint) = complaint {
            reason = format!("{reason}; the agent says: {complaint}");
        }
        return Answer::Failed { reason, partial: words };
    }
    if said.as_ref().is_some_and(|said| said.failed) {
        let reason = match complaint {
            Some(complaint) => format!("the agent says: {complaint}"),
            None => "the agent reports a failure without a reason".into(),
        };
        return Answer::Failed { reason, partial: words };
    }
    match (words, complaint) {
        (Some(words), _) => Answer::Text(words),
        (None, Some(complaint)) => {
            Answer::NoAnswer { reason: format!("no message of the assistant; the agent says: {complaint}") }
        }
        (None, None) if said.is_some() => Answer::NoAnswer { reason: "no message of the assistant".into() },
        (None, None) => Answer::NoAnswer { reason: "the job has no output".into() },
    }
}

fn from_file(bytes: &[u8]) -> Option<AnswerText> {
    let cut = bytes.len() as u64 >= ANSWER_LOOK_BYTES;
    kept(&decoded(bytes), AnswerSource::File, cut, Keep::Beginning)
}

fn from_message(said: &Transcript) -> Option<AnswerText> {
    kept(said.words.as_deref()?, AnswerSource::Message, false, Keep::Beginning)
}

/// The end of the output is kept: there the agent sums up.
fn from_output(printed: &str, cut: bool) -> Option<AnswerText> {
    kept(printed, AnswerSource::Output, cut, Keep::End)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Beginning,
    End,
}

/// Cleans text and cuts it to the budget, between two characters; `None` if only white space is left.
fn kept(text: &str, source: AnswerSource, cut: bool, keep: Keep) -> Option<AnswerText> {
    let text = clean(text);
    // The first line may be indented on purpose.
    let text = text.trim_end().trim_start_matches('\n');
    if text.trim_start().is_empty() {
        return None;
    }
    let part = match keep {
        Keep::Beginning => &text[..text.floor_char_boundary(ANSWER_BYTES)],
        Keep::End => &text[text.ceil_char_boundary(text.len().saturating_sub(ANSWER_BYTES))..],
    };
    let truncated = cut || part.len() < text.len();
    Some(AnswerText { text: part.to_owned(), source, truncated })
}

fn one_line(text: &str) -> Option<String> {
    let mut line = clean_line(text.trim());
    crate::fact::truncate(&mut line, REASON_BYTES);
    (!line.is_empty()).then_some(line)
}

/// Decodes UTF-8, or UTF-16 with a byte order mark, which some programs write on Windows.
fn decoded(bytes: &[u8]) -> String {
    let wide = |order: fn([u8; 2]) -> u16, rest: &[u8]| {
        let units: Vec<_> = rest.chunks_exact(2).map(|pair| order([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => wide(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LostReason;
    use proptest::prelude::*;

    const DONE: Outcome = Outcome::Exited { code: 0 };

    fn printed(output: &str) -> Remains {
        Remains { output: output.into(), ..Remains::default() }
    }

    fn text(text: &str, source: AnswerSource) -> Answer {
        Answer::Text(AnswerText { text: text.into(), source, truncated: false })
    }

    #[test]
    fn what_was_written_to_the_file_counts_before_what_was_printed() {
        let mut remains = printed("{\"type\":\"result\",\"result\":\"printed\"}\n");
        assert_eq!(resolve_answer(&DONE, &remains), text("printed", AnswerSource::Message));
        remains.file = b"written\n".to_vec();
        assert_eq!(resolve_answer(&DONE, &remains), text("written", AnswerSource::File));
        remains.file = b" \n\t\r\n".to_vec();
        assert_eq!(
            resolve_answer(&DONE, &remains),
            text("printed", AnswerSource::Message),
            "blank is nothing"
        );
    }

    #[test]
    fn output_that_is_no_transcript_is_the_answer_itself() {
        for (output, answer) in [
            ("\n\n  fn main() {}\n}\n\n", "  fn main() {}\n}"),
            ("\u{1b}[1mbold\u{1b}[0m\r\nmove\u{202e}\n", "bold\nmove"),
            ("{\"city\": \"Paris\"}\n", "{\"city\": \"Paris\"}"),
            (
                "{\"type\":\"error\",\"message\":\"x\"} is what such a row looks like\n",
                "{\"type\":\"error\",\"message\":\"x\"} is what such a row looks like",
            ),
        ] {
            assert_eq!(resolve_answer(&DONE, &printed(output)), text(answer, AnswerSource::Output));
        }
    }

    #[test]
    fn who_says_nothing_has_no_answer_and_it_says_why() {
        let reason = |output: &str| match resolve_answer(&DONE, &printed(output)) {
            Answer::NoAnswer { reason } => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(reason(""), "the job has no output");
        assert_eq!(reason(" \n\n"), "the job has no output");
        assert_eq!(
            reason("{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\"}\n"),
            "no message of the assistant"
        );
        assert_eq!(
            reason("{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"no\\nnet\"}\n"),
            "no message of the assistant; the agent says: no⏎net"
        );
    }

    #[test]
    fn a_job_that_failed_has_no_answer_whatever_it_said() {
        let partial = AnswerText { text: "so far".into(), source: AnswerSource::Output, truncated: false };
        for outcome in [
            Outcome::Exited { code: 3 },
            Outcome::Signaled { signal: 9, core: false },
            Outcome::TimedOut { limit_ms: 1000, exit: None },
            Outcome::Lost { reason: LostReason::SupervisorDied },
            Outcome::Unknown,
        ] {
            let answer = resolve_answer(&outcome, &printed("so far\n"));
            let reason = outcome.to_string();
            assert_eq!(answer, Answer::Failed { reason, partial: Some(partial.clone()) });
            let reason = outcome.to_string();
            assert_eq!(resolve_answer(&outcome, &printed("")), Answer::Failed { reason, partial: None });
        }
    }

    #[test]
    fn an_agent_that_says_that_it_failed_is_believed_although_it_exits_with_0() {
        let output = "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"halfway\"}]}}\n\
            {\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"result\":\"API Error: 403\"}\n";
        let Answer::Failed { reason, partial } = resolve_answer(&DONE, &printed(output)) else {
            panic!("it is no answer")
        };
        assert_eq!(reason, "the agent says: API Error: 403");
        assert_eq!(partial.unwrap().text, "halfway");
        let Answer::Failed { reason, .. } = resolve_answer(&Outcome::Exited { code: 1 }, &printed(output))
        else {
            panic!("it is no answer")
        };
        assert_eq!(reason, "failed: exit code 1; the agent says: API Error: 403");
    }

    #[test]
    fn a_long_answer_is_cut_between_two_characters_and_says_so() {
        let long = "ä".repeat(ANSWER_BYTES);
        let remains = Remains { file: format!("a{long}").into_bytes(), ..Remains::default() };
        let Answer::Text(words) = resolve_answer(&DONE, &remains) else { panic!("no text") };
        assert!(words.truncated && words.text.starts_with('a'));
        assert_eq!(words.text.len(), ANSWER_BYTES - 1);
        // Of what was printed along the way the end is kept.
        let Answer::Text(words) = resolve_answer(&DONE, &printed(&format!("{long}z"))) else {
            panic!("no text")
        };
        assert!(words.truncated && words.text.ends_with('z'));
        assert_eq!(words.text.len(), ANSWER_BYTES - 1);
        let cut = Remains { cut: true, ..printed("the end of much more\n") };
        assert!(matches!(resolve_answer(&DONE, &cut), Answer::Text(AnswerText { truncated: true, .. })));
    }

    #[test]
    fn text_from_windows_is_read_as_what_it_is() {
        let wide = |order: fn(u16) -> [u8; 2], mark: [u8; 2]| {
            let units = "größer\r\n".encode_utf16().flat_map(order);
            mark.into_iter().chain(units).collect::<Vec<_>>()
        };
        for file in [
            wide(u16::to_le_bytes, [0xff, 0xfe]),
            wide(u16::to_be_bytes, [0xfe, 0xff]),
            "\u{feff}größer\r\n".into(),
        ] {
            let remains = Remains { file, ..Remains::default() };
            assert_eq!(resolve_answer(&DONE, &remains), text("größer", AnswerSource::File));
        }
    }

    #[test]
    fn an_answer_reads_back_as_what_was_written() {
        let words = AnswerText { text: "42".into(), source: AnswerSource::Message, truncated: true };
        for (answer, json) in [
            (
                Answer::Text(words.clone()),
                r#"{"kind":"text","text":"42","source":"message","truncated":true}"#,
            ),
            (Answer::NoAnswer { reason: "r".into() }, r#"{"kind":"no_answer","reason":"r"}"#),
            (Answer::Failed { reason: "r".into(), partial: None }, r#"{"kind":"failed","reason":"r"}"#),
            (
                Answer::Failed { reason: "r".into(), partial: Some(words) },
                r#"{"kind":"failed","reason":"r","text":"42","source":"message","truncated":true}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&answer).unwrap(), json);
            assert_eq!(serde_json::from_str::<Answer>(json).unwrap(), answer);
        }
        let newer = r#"{"kind":"song","melody":"la"}"#;
        assert_eq!(serde_json::from_str::<Answer>(newer).unwrap(), Answer::Unknown);
    }

    /// Pieces of what agents print, whole and broken.
    fn any_output() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(
                b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n"
                    .to_vec()
            ),
            Just(b"{\"type\":\"result\",\"result\":\"fin\"}".to_vec()),
            Just(
                b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"d\",\"delta\":true}\n".to_vec()
            ),
            Just(b"{\"messages\":[{\"role\":\"assistant\",\"content\":".to_vec()),
            Just("\u{feff}{\"response\":\"ü\"".into()),
            Just(b"[[[[[[".to_vec()),
            Just(b"```\n".to_vec()),
            Just(b"\\u{1b}[\"\n".to_vec()),
            prop::collection::vec(any::<u8>(), 0..40),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn there_always_is_an_answer_whatever_a_job_left_behind(
            file in prop_oneof![Just(Vec::new()), any_output()],
            output in any_output(),
            cut in any::<bool>(),
            code in 0_u32..2,
        ) {
            let remains = Remains { file, output, cut };
            let answer = resolve_answer(&Outcome::Exited { code }, &remains);
            if let Some(words) = answer.words() {
                prop_assert!(!words.text.trim().is_empty() && words.text.len() <= ANSWER_BYTES);
                prop_assert!(words.text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
            }
            prop_assert_eq!(matches!(answer, Answer::Failed { .. }) || code == 0, true);
            let json = serde_json::to_string(&answer).unwrap();
            prop_assert_eq!(serde_json::from_str::<Answer>(&json).unwrap(), answer);
        }
    }
}
