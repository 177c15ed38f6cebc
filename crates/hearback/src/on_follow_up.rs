//! Being told of follow-ups in this process: a program that stays gives a closure, and the closure gets each of them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hearback_core::port::record::StoreError;
use hearback_core::port::sink::{
    Delivery, DeliveryContext, FollowUpSink, HOST_SINK, SinkError, SinkReply, Sinks,
};
use hearback_core::{JobId, SinkPayload};
use hearback_monitor::delivery::{Attempt, Deliverer, Turn};
use hearback_monitor::host::Changed;
use hearback_monitor::wait::WaitLimit;

use crate::permissions::{Capability, Guarded};
use crate::{Hearback, Scope};

/// How long a closure may take before another process may take the follow-up over although this one lives.
const HELD_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

impl Hearback {
    /// Gives each follow-up of a scope to `take` as it becomes due: those of the sink `host`, and those that name no
    /// sink. Returns at the end of `limit`; those that are due then are given first.
    ///
    /// `Ok` acknowledges the follow-up: it is never given again, to any process. `Err` gives it back: it comes again,
    /// after the pauses of [`Settings::retry`](crate::Settings::retry), and becomes a dead letter when its attempts are
    /// used up. The same happens if this process dies in `take`. So a follow-up may come twice, always with the same
    /// [`Delivery::id`].
    ///
    /// Any number of processes and threads may do this at once: each follow-up is leased to one of them. Between
    /// follow-ups this sleeps, and looks only at jobs that change.
    ///
    /// ```standalone_crate
    /// use hearback::{CancelWait, Hearback, Options, argv};
    /// use hearback::core::Session;
    ///
    /// hearback::supervise_if_asked();
    /// # let place = std::env::temp_dir().join(format!("hearback-doc-{}", std::process::id()));
    /// let hearback = Hearback::open(Options::default().home(&place))?;
    /// let chat = Session::parse("chat-7")?;
    /// hearback.launch(&argv(["rustc", "--version"])?.session(chat.clone()))?;
    ///
    /// let (cancel, mut told) = (CancelWait::new(), Vec::new());
    /// hearback.on_follow_up(&chat.into(), &cancel, |delivery| {
    ///     told.push(delivery.text.clone());
    ///     cancel.cancel(); // One is enough here.
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// assert!(told[0].contains("outcome: done"));
    /// # // Its supervisor may still move the job.
    /// # while place.exists() {
    /// #     let _ = std::fs::remove_dir_all(&place);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// When the caller may not acknowledge, or the jobs cannot be read or watched.
    pub fn on_follow_up<E: fmt::Display>(
        &self,
        scope: &Scope,
        limit: impl Into<WaitLimit>,
        take: impl FnMut(&Delivery) -> Result<(), E> + Send,
    ) -> Result<(), Guarded<StoreError>> {
        self.permissions().check(Capability::Ack)?;
        let sinks = InProcess { hearback: self, take: Mutex::new(take) };
        self.tell(&sinks, scope, &limit.into()).map_err(Guarded::Failed)
    }

    fn tell(&self, sinks: &dyn Sinks, scope: &Scope, limit: &WaitLimit) -> Result<(), StoreError> {
        let clock = &self.ports.clock;
        let deliverer = Deliverer { sinks, ..self.deliverer() };
        let deadline = clock.awake().saturating_add(limit.within().unwrap_or(Duration::MAX));
        let _hook = self.wake_on_cancel(limit);
        // The first look comes after the watch was made, so that nothing happens unseen between the two.
        let mut changes = self.job_changes()?;
        let mut next = self.ended_in(scope)?;
        // Those that were tried, or are held by another process, and when to look again.
        let mut later: BTreeMap<JobId, Duration> = BTreeMap::new();
        loop {
            for id in next.drain(..) {
                if limit.is_cancelled() {
                    return Ok(());
                }
                later.remove(&id);
                match deliverer.attempt(&id, Turn::Try) {
                    Ok(Attempt::Later(pause) | Attempt::Failed { next: Some(pause), .. }) => {
                        later.insert(id, clock.awake().saturating_add(pause));
                    }
                    Ok(_) => {}
                    Err(error) if error.is_gone() => {}
                    Err(error) => return Err(error),
                }
            }
            let now = clock.awake();
            if now >= deadline || limit.is_cancelled() {
                return Ok(());
            }
            let until = later.values().min().map_or(deadline, |soonest| deadline.min(*soonest));
            let wanted = |id: &JobId| self.may_see(scope, id);
            match changes.wait_unless(until.saturating_sub(now), || limit.is_cancelled(), wanted) {
                Changed::Everything => next = self.ended_in(scope)?,
                Changed::Jobs(changed) => next.extend(changed.into_iter().map(|(id, _)| id)),
            }
            let now = clock.awake();
            next.extend(later.iter().filter(|(_, at)| **at <= now).map(|(id, _)| id.clone()));
            next.sort();
            next.dedup();
        }
    }

    /// The jobs of a scope whose follow-up is open, the oldest end first.
    fn ended_in(&self, scope: &Scope) -> Result<Vec<JobId>, StoreError> {
        Ok(self.follow_ups(scope)?.jobs.into_iter().map(|job| job.view.id).collect())
    }
}

/// The sinks of a process that is told in a closure: that closure, and nothing else.
struct InProcess<'a, F> {
    hearback: &'a Hearback,
    take: Mutex<F>,
}

impl<E: fmt::Display, F: FnMut(&Delivery) -> Result<(), E> + Send> Sinks for InProcess<'_, F> {
    fn find(&self, name: &str) -> Result<Box<dyn FollowUpSink + '_>, SinkError> {
        match name {
            HOST_SINK => Ok(Box::new(self)),
            _ => Err(SinkError::Elsewhere(name.to_owned())),
        }
    }

    fn is_elsewhere(&self, name: &str) -> bool {
        name != HOST_SINK
    }

    fn of_unrouted(&self) -> Option<&str> {
        Some(HOST_SINK)
    }
}

impl<E: fmt::Display, F: FnMut(&Delivery) -> Result<(), E> + Send> FollowUpSink for InProcess<'_, F> {
    fn deliver(&self, payload: &SinkPayload, _: &DeliveryContext) -> Result<SinkReply, SinkError> {
        for delivery in payload.deliveries() {
            let delivery = self.hearback.secrets().masked_delivery(delivery.clone());
            let mut take = self.take.lock().unwrap_or_else(PoisonError::into_inner);
            take(&delivery).map_err(|error| SinkError::Failed(error.to_string()))?;
        }
        Ok(SinkReply::Delivered)
    }

    fn within(&self) -> Duration {
        HELD_WITHIN
    }
}
