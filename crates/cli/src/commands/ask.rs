//! `hearback ask`

use hearback::core::{Answer, CommandLine};
use hearback::documents::ErrorKind;
use hearback::{Hearback, Job};

use crate::args::AskArgs;
use crate::error::CliError;
use crate::output::{Output, unless_closed};
use crate::status::{Show, Status};

pub(crate) fn run(hearback: &Hearback, args: AskArgs, output: &Output) -> Result<u32, CliError> {
    let (wait, quiet) = (args.wait, args.quiet);
    let prompt = args.prompt.map(super::text_or_input).transpose()?;
    // A faulty prompt is reported before anything is launched.
    let argv = hearback::with_prompt(&args.argv, prompt.as_deref())?;
    let parent = super::parent(args.session.as_ref())?;
    if !args.new && hearback::current_session()?.as_ref() != Some(&parent) && !hearback.knows(&parent)? {
        return Err(CliError::UnknownParent(parent));
    }
    let argv = argv.iter().map(|word| hearback::from_os(word)).collect();
    let mut request = super::launch::with_options(CommandLine::Argv(argv), Some(parent), args.options)?;
    request.answer = true;
    request.prompt = prompt;
    let (launched, _reading) = match super::launch::start(hearback, &request, wait, quiet, output) {
        Ok(launched) => launched,
        Err(error) => return super::launch::not_launched(hearback, error, output),
    };
    if !wait {
        super::launch::report(hearback, &launched, request.session.as_ref(), quiet, output)?;
        return Ok(0);
    }
    let id = launched.id();
    if !quiet && !output.is_json() {
        output.say(&format!("asked in job {id}"));
    }
    let status = (!quiet).then(|| Status::of(std::slice::from_ref(id), Show::Line, output));
    let job = hearback.wait(id)?;
    drop(status);
    let answered = matches!(job.view.answer, Some(Answer::Text(_)));
    let own = job.view.outcome.as_ref().map_or(125, hearback::core::Outcome::exit_code);
    let unanswered = (own == 0 && !answered)
        .then(|| CliError::no(ErrorKind::NoAnswer, "the job succeeded without an answer"));
    let printed = match output.is_json() {
        true => output.reply(&job.view, unanswered.as_ref()).map(drop),
        false => print(&job, quiet, output),
    };
    let is_read = printed.is_ok();
    // The reader is gone, but the exit code still says how the job ended.
    unless_closed(printed).map_err(|error| error.about(id))?;
    if is_read {
        // The caller asked and waited, so a printed answer is read.
        hearback.mark_answer_read(id)?;
    }
    Ok(unanswered.map_or(own, |error| error.exit_code()))
}

/// Prints the answer and nothing else to standard output, for scripts.
fn print(job: &Job, quiet: bool, output: &Output) -> Result<(), CliError> {
    let Some(answer) = &job.view.answer else {
        output.warn("the answer cannot be read");
        return Ok(());
    };
    if let Answer::Text(words) = answer {
        output.line(&words.text)?;
    }
    if !quiet && !matches!(answer, Answer::Text(words) if !words.truncated) {
        output.say(&hearback::core::message::clean_line(&answer.to_string()));
        output.next(&[super::typed("show", &job.view)]);
    }
    Ok(())
}
