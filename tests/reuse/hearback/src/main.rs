//! A program that embeds hearback: settings and a sink in code, a launch, a wait with a limit, a closure that is told
//! of follow-ups, and events. It needs no configuration file, and is its own supervisor.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::Duration;

use hearback::core::event::Happened;
use hearback::core::port::sink::{DeliveryContext, FollowUpSink, SinkError, SinkReply};
use hearback::core::{KilledBy, NotifyPolicy, Outcome, Session, SinkPayload};
use hearback::{
    CancelWait, EventsSince, Hearback, KillRequest, LaunchError, Options, Request, Scope, Settings, argv,
};

/// The argument that makes this program the command of a job.
const JOB: &str = "job";
/// Tells the supervisor, which inherits the environment, where this program keeps its files.
const PLACE: &str = "REUSE_PLACE";
const LONG: Duration = Duration::from_secs(60);

/// A sink in code: it leaves each follow-up as a file.
struct Letters(PathBuf);

impl FollowUpSink for Letters {
    fn deliver(&self, payload: &SinkPayload, _: &DeliveryContext) -> Result<SinkReply, SinkError> {
        for delivery in payload.deliveries() {
            fs::write(self.0.join(&delivery.id), &delivery.text)
                .map_err(|error| SinkError::Failed(error.to_string()))?;
        }
        Ok(SinkReply::Delivered)
    }
}

/// The same for this process and for its supervisors.
fn options(options: Options, place: &Path) -> Options {
    let mut settings = Settings::default();
    settings.retry.first = Duration::from_millis(10);
    settings.max_depth = 2;
    options.settings(settings).sink("letters", Letters(place.to_owned()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let inherited = std::env::var_os(PLACE).map(PathBuf::from);
    hearback::supervise_if_asked_with(|given| options(given, &inherited.clone().unwrap_or_default()));
    if std::env::args().nth(1).as_deref() == Some(JOB) {
        work();
    }
    let place = std::env::temp_dir().join(format!("hearback-reuse-{}", std::process::id()));
    fs::create_dir(&place)?;
    let told = tell(&place);
    fs::remove_dir_all(&place)?;
    told
}

/// What the jobs of this program do: print, and exit with a code or stay.
fn work() -> ! {
    println!("hello from the background");
    match std::env::args().nth(2).and_then(|code| code.parse().ok()) {
        Some(code) => exit(code),
        None => loop {
            std::thread::park();
        },
    }
}

fn job(place: &Path, what: &str) -> Result<Request, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    Ok(argv([program.as_os_str(), JOB.as_ref(), what.as_ref()])?.env(PLACE, place))
}

fn tell(place: &Path) -> Result<(), Box<dyn Error>> {
    let hearback = Hearback::open(options(Options::default().home(place.join("store")), place))?;
    let mut events = hearback.events(&Scope::All, EventsSince::Beginning)?;

    // A request says everything that `hearback launch` can, and what cannot be is an error that a program can match.
    let request = job(place, "3")?
        .label("build")
        .timeout(Some(LONG))
        .idle_timeout(None)
        .grace(Duration::from_secs(1))
        .notify(NotifyPolicy::Always)
        .cwd(hearback::directory(place)?)
        .sink("letters");
    let error = hearback.launch(&request.clone().sink("nowhere")).unwrap_err();
    assert!(matches!(error, LaunchError::NoSink(sink) if sink.name == "nowhere"));

    // The sink in code is told by the supervisor, which is this program, executed again.
    let first = hearback.launch(&request)?.id().clone();
    let ended = hearback.wait_timeout(&first, LONG)?.ok_or("the job did not end in time")?;
    assert_eq!(ended.view.outcome, Some(Outcome::Exited { code: 3 }));

    // Events say what happened, in order, without polling.
    let mut happened = Vec::new();
    while happened.last().is_none_or(|last| *last != "told") {
        let event = events.next(LONG)?.ok_or("an event is missing")?;
        happened.extend(match event.what {
            Happened::Launched => Some("launched"),
            Happened::Ended => Some("ended"),
            Happened::Told { .. } => Some("told"),
            _ => None,
        });
    }
    assert_eq!(happened, ["launched", "ended", "told"]);
    let letter = fs::read_to_string(place.join(format!("{first}.end")))?;
    assert!(letter.contains("hello from the background"), "{letter}");

    // A closure is told of a session's follow-ups. What it gives back comes again, with the same identity.
    let chat = Session::parse("chat")?;
    let second = hearback.launch(&job(place, "0")?.session(chat.clone()))?.id().clone();
    let (cancel, mut attempts) = (CancelWait::new(), Vec::new());
    hearback.on_follow_up(&chat.clone().into(), &cancel, |delivery| {
        assert_eq!(delivery.job.id, second);
        attempts.push((delivery.id.clone(), delivery.attempt));
        if delivery.attempt == 1 {
            return Err("not now");
        }
        cancel.cancel();
        Ok(())
    })?;
    let id = format!("{second}.end");
    assert_eq!(attempts, [(id.clone(), 1), (id, 2)]);
    assert!(hearback.follow_ups(&chat.into())?.jobs.is_empty());

    // A wait ends at its limit, or from another thread, and the job runs on until it is killed.
    let third = hearback.launch(&job(place, "for ever")?)?.id().clone();
    assert!(hearback.wait_timeout(&third, Duration::from_millis(10))?.is_none());
    let cancel = CancelWait::new();
    std::thread::scope(|scope| {
        let wait = scope.spawn(|| hearback.wait_until(&third, &cancel));
        cancel.cancel();
        wait.join().expect("a wait does not panic")
    })?;
    let killed = hearback.kill(&third, &KillRequest::new(KilledBy::Person))?;
    assert!(killed.is_complete());

    assert!(!hearback.settings_file().exists());
    Ok(())
}
