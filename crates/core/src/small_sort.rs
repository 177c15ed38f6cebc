//! Sorting that is compiled once. The standard library's sort is compiled for every type that is sorted, each time to
//! about five kilobytes, and the lists here are short.

use std::cmp::Ordering;

/// Stable sorting of lists, for few bytes of code for each type. Not for lists whose sorting takes noticeable time.
pub trait SmallSort<T> {
    /// Sorts as `compare` says.
    fn small_sort_by(&mut self, compare: impl Fn(&T, &T) -> Ordering);

    /// Sorts by a key.
    fn small_sort_by_key<K: Ord>(&mut self, key: impl Fn(&T) -> K) {
        self.small_sort_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Sorts by the natural order.
    fn small_sort(&mut self)
    where
        T: Ord,
    {
        self.small_sort_by(T::cmp);
    }
}

impl<T> SmallSort<T> for [T] {
    fn small_sort_by(&mut self, compare: impl Fn(&T, &T) -> Ordering) {
        let sources = sources(self.len(), &|a, b| compare(&self[a], &self[b]));
        arrange(sources, &mut |a, b| self.swap(a, b));
    }
}

/// For each place in the sorted list, where its element is now.
fn sources(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut sources: Vec<_> = (0..len).collect();
    sources.sort_by(|a, b| compare(*a, *b));
    sources
}

/// Moves every element to its place, one cycle of the permutation after the other.
fn arrange(mut sources: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..sources.len() {
        let mut at = start;
        loop {
            let source = std::mem::replace(&mut sources[at], at);
            if source == start {
                break;
            }
            swap(at, source);
            at = source;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_as_the_standard_library_does(list: Vec<(u8, u32)>) {
            let (mut ours, mut theirs) = (list.clone(), list);
            // Many are equal in their first halves: their order shows whether the sort is stable.
            ours.small_sort_by_key(|(key, _)| key % 8);
            theirs.sort_by_key(|(key, _)| key % 8);
            prop_assert_eq!(&ours, &theirs);
            ours.small_sort();
            theirs.sort();
            prop_assert_eq!(ours, theirs);
        }
    }
}
