//! What came of a prompt job: the last thing its agent had to say, or why there is nothing.
//!
//! A pure function of how the job ended and of what it left behind, so that whoever works it out comes to the same
//! answer, and it does not matter who was first to record it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clean::{clean, clean_line};
use crate::transcript::{self, Transcript};
use crate::variant::reads_newer_variants;
use crate::{Extra, FORMAT, Facts, JobState, Outcome};

/// The most of an answer that is kept.
pub const ANSWER_BYTES: usize = 64 * 1024;
/// The most that is looked at of what a job wrote to its answer's file, and of the end of what it printed.
pub const ANSWER_LOOK_BYTES: u64 = 512 * 1024;
/// The most that is repeated of what an agent says went wrong.
const REASON_BYTES: usize = 512;

/// What came of a prompt job. There always is one when the job is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub enum Answer {
    /// The job did its work, and this is what it has to say.
    Text(AnswerText),
    /// The job did its work, and has nothing to say.
    NoAnswer {
        /// What was looked for in vain.
        reason: String,
    },
    /// The job failed. What it had said until then is no answer, but may be worth reading.
    Failed {
        /// How it ended, and what the agent says about that.
        reason: String,
        /// What it had said until then.
        #[serde(flatten, skip_serializing_if = "Option::is_none")]
        partial: Option<AnswerText>,
    },
    /// An answer of a newer build.
    #[serde(other)]
    Unknown,
}

/// Words of an agent: text without anything that a terminal would obey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerText {
    /// The words.
    pub text: String,
    /// Where they were found.
    pub source: AnswerSource,
    /// There were more of them than are kept.
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
    /// It is the last message of the assistant in JSON that the job printed.
    Message,
    /// It is what the job printed.
    Output,
    /// A place of a newer build.
    #[serde(other)]
    Unknown,
}

reads_newer_variants!(AnswerSource);

impl Answer {
    /// The words, whether they are the answer or what was said before a failure.
    pub fn words(&self) -> Option<&AnswerText> {
        match self {
            Self::Text(words) => Some(words),
            Self::Failed { partial, .. } => partial.as_ref(),
            Self::NoAnswer { .. } | Self::Unknown => None,
        }
    }

    /// An answer whose record is there and cannot be used.
    pub(crate) fn unusable(why: &str) -> Self {
        Self::Failed { reason: format!("the record of its answer cannot be used: {why}"), partial: None }
    }
}

/// One line that begins with the kind, as people and models read it; the words are not in it.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(words) if words.truncated => write!(f, "answered, cut to {} bytes", words.text.len()),
            Self::Text(_) => f.write_str("answered"),
            Self::NoAnswer { reason } => write!(f, "no answer: {reason}"),
            Self::Failed { reason, .. } => write!(f, "no answer, it failed: {reason}"),
            Self::Unknown => f.write_str("answered in a way that a newer hearback knows"),
        }
    }
}

/// The answer of a job, as it is recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerRecord {
    /// The format of this fact.
    pub format: u32,
    /// The answer.
    pub answer: Answer,
    /// What a newer build wrote besides.
    #[serde(flatten)]
    pub extra: Extra,
}

impl AnswerRecord {
    /// A record of this build's format.
    pub fn new(answer: Answer) -> Self {
        Self { format: FORMAT, answer, extra: Extra::new() }
    }
}

/// Whether a job is over, has an answer, and nobody has worked it out yet.
pub fn answer_is_due(facts: &Facts, state: &JobState<'_>) -> bool {
    facts.answer.is_absent()
        && facts.spec.present().is_some_and(|spec| spec.answer)
        && matches!(state, JobState::Ended { .. })
}

/// What a prompt job left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remains {
    /// What it wrote to the file of its answer, from its beginning.
    pub file: Vec<u8>,
    /// What it printed, up to its end.
    pub output: Vec<u8>,
    /// There was more output before that.
    pub cut: bool,
}

/// Works out what came of a prompt job.
///
/// What it wrote to its file counts first, then the last message of the assistant in JSON that it printed, then all
/// that it printed. A job that did not end well has no answer, whatever it said; and neither has one whose agent says
/// itself that it failed, because some do so and exit with 0.
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
            None => "the agent says so, and not why".into(),
        };
        return Answer::Failed { reason, partial: words };
    }
    match (words, complaint) {
        (Some(words), _) => Answer::Text(words),
        (None, Some(complaint)) => {
            Answer::NoAnswer { reason: format!("the assistant said nothing; the agent says: {complaint}") }
        }
        (None, None) if said.is_some() => Answer::NoAnswer { reason: "the assistant said nothing".into() },
        (None, None) => Answer::NoAnswer { reason: "it printed nothing".into() },
    }
}

fn from_file(bytes: &[u8]) -> Option<AnswerText> {
    let cut = bytes.len() as u64 >= ANSWER_LOOK_BYTES;
    kept(&decoded(bytes), AnswerSource::File, cut, Keep::Beginning)
}

fn from_message(said: &Transcript) -> Option<AnswerText> {
    kept(said.words.as_deref()?, AnswerSource::Message, false, Keep::Beginning)
}

/// Of what somebody printed along the way the end says most.
fn from_output(printed: &str, cut: bool) -> Option<AnswerText> {
    kept(printed, AnswerSource::Output, cut, Keep::End)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Beginning,
    End,
}

/// Cleans text and cuts it to the budget, between two characters; nothing when only white space is left.
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

/// Text as programs write it: UTF-8 mostly, and on Windows sometimes UTF-16, which then says so.
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
        assert_eq!(reason(""), "it printed nothing");
        assert_eq!(reason(" \n\n"), "it printed nothing");
        assert_eq!(
            reason("{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\"}\n"),
            "the assistant said nothing"
        );
        assert_eq!(
            reason("{\"type\":\"turn.started\"}\n{\"type\":\"error\",\"message\":\"no\\nnet\"}\n"),
            "the assistant said nothing; the agent says: no⏎net"
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
