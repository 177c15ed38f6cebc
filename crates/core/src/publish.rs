//! Adding a fact to those in memory: the first of its name stays, as in every store.

use crate::port::disk::Publish;
use crate::{Fact, Facts, Read, SmallSort};

impl Facts {
    /// Adds a fact unless there is one of its name, as every store does.
    pub fn publish(&mut self, fact: &Fact) -> Publish {
        match fact {
            Fact::Spec(fact) => put(&mut self.spec, fact),
            Fact::Begin(fact) => put(&mut self.begin, fact),
            Fact::Target(fact) => put(&mut self.target, fact),
            Fact::Kill(n, fact) => put_numbered(&mut self.kills, *n, fact),
            Fact::End(fact) => put(&mut self.end, fact),
            Fact::Swept(fact) => put(&mut self.swept, fact),
            Fact::Answer(fact) => put(&mut self.answer, fact),
            Fact::Lease(n, fact) => put_numbered(&mut self.leases, *n, fact),
            Fact::LeaseResult(n, fact) => put_numbered(&mut self.results, *n, fact),
            Fact::Receipt(fact) => put(&mut self.receipt, fact),
            Fact::Settled(fact) => put(&mut self.settled, fact),
        }
    }
}

/// Adds a fact where there is one at most.
pub(crate) fn put<T: Clone>(place: &mut Read<T>, fact: &T) -> Publish {
    if !place.is_absent() {
        return Publish::Exists;
    }
    *place = Read::Present(fact.clone());
    Publish::New
}

/// Adds a fact of which there are several, in the order of their numbers.
pub(crate) fn put_numbered<T: Clone>(list: &mut Vec<(u32, Read<T>)>, n: u32, fact: &T) -> Publish {
    if list.iter().any(|(taken, _)| *taken == n) {
        return Publish::Exists;
    }
    list.push((n, Read::Present(fact.clone())));
    list.small_sort_by_key(|(n, _)| *n);
    Publish::New
}
