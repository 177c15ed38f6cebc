//! `own-sink WITNESS PROG ARG…`: a program that embeds hearback with settings and a sink of its own, made in code.
//!
//! It launches a job for the session `s`, prints its id, and exits. For each delivery, the sink `own` appends one line
//! to WITNESS: the identity of the delivery and how its job ended. No settings file is read.
#![allow(clippy::disallowed_methods, reason = "fixtures are ordinary programs")]

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use hearback::core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback::core::{Durability, Session, SinkPayload};
use hearback::{Hearback, Options, Settings};

/// The supervisor inherits the environment and not the arguments of its launcher.
const WITNESS: &str = "OWN_SINK_WITNESS";

struct Witness(PathBuf);

impl FollowUpSink for Witness {
    fn deliver(&self, payload: &SinkPayload, _: &DeliveryContext) -> Result<SinkReply, SinkError> {
        let SinkPayload::FollowUp(delivery) = payload else { return Ok(SinkReply::Delivered) };
        let outcome = delivery.job.outcome.as_ref().map(ToString::to_string).unwrap_or_default();
        let failed = |error: std::io::Error| SinkError::Failed(error.to_string());
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).map_err(failed)?;
        writeln!(file, "{} {outcome}", delivery.id).map_err(failed)?;
        Ok(SinkReply::Delivered)
    }
}

fn embedded(options: Options, witness: PathBuf) -> Options {
    let mut settings = Settings::default();
    settings.default_sink = Some("own".into());
    settings.durability = Durability::Process;
    settings.max_depth = 0;
    options.settings(settings).sink("own", Witness(witness))
}

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::var_os(WITNESS).map(PathBuf::from).unwrap_or_default();
    hearback::supervise_if_asked_with(|options| embedded(options, given));

    let mut args = std::env::args_os().skip(1);
    let witness = PathBuf::from(args.next().ok_or("the witness is missing")?);
    let hearback = Hearback::open(embedded(Options::default(), witness.clone()))?;
    let request = hearback::argv(args)?.session(Session::parse("s")?).env(WITNESS, witness);
    println!("{}", hearback.launch(&request)?.id());
    Ok(())
}
