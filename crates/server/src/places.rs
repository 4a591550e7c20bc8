//! [`Places`]: limits the number of connections or cursors, in all and per login.
//!
//! # Guarantee
//! No analyst gets more than a fixed share, and some places are reserved for owners. So an analyst who opens many
//! connections or cursors can't keep out an owner or another analyst.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kohort_sql::Role;

/// A limited number of places, and who has taken them.
pub(crate) struct Places<Holder: Eq + Hash + Clone> {
    most: usize,
    most_of_one: usize,
    for_owners: usize,
    taken: Mutex<Taken<Holder>>,
}

struct Taken<Holder> {
    n_places: usize,
    by_holder: HashMap<Holder, usize>,
}

/// Why no place is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All places are taken.
    Full,
    /// The holder has reached the limit per holder.
    Share,
}

/// A taken place, until it is dropped.
pub(crate) struct Place<Holder: Eq + Hash + Clone> {
    places: Arc<Places<Holder>>,
    holder: Holder,
}

impl<Holder: Eq + Hash + Clone> Places<Holder> {
    /// `most` places. An analyst gets at most `most_of_one`, and `for_owners` places are reserved for owners.
    pub(crate) fn new(most: usize, most_of_one: usize, for_owners: usize) -> Arc<Places<Holder>> {
        let taken = Mutex::new(Taken { n_places: 0, by_holder: HashMap::new() });
        Arc::new(Places { most, most_of_one, for_owners, taken })
    }

    /// Takes a place if one is free.
    pub(crate) fn take(self: &Arc<Self>, holder: Holder, role: Role) -> Result<Place<Holder>, NoPlace> {
        let mut taken = self.taken();
        let n_held = taken.by_holder.get(&holder).copied().unwrap_or(0);
        let (most, most_of_one) = match role {
            Role::Owner => (self.most, self.most),
            Role::Analyst => (self.most - self.for_owners, self.most_of_one),
        };
        if n_held >= most_of_one {
            return Err(NoPlace::Share);
        }
        if taken.n_places >= most {
            return Err(NoPlace::Full);
        }
        taken.n_places += 1;
        taken.by_holder.insert(holder.clone(), n_held + 1);
        drop(taken);
        Ok(Place { places: Arc::clone(self), holder })
    }

    fn taken(&self) -> MutexGuard<'_, Taken<Holder>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Holder: Eq + Hash + Clone> Drop for Place<Holder> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.n_places -= 1;
        if let Some(n_held) = taken.by_holder.get_mut(&self.holder) {
            *n_held -= 1;
            if *n_held == 0 {
                taken.by_holder.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_analyst_takes_all_places_and_owners_find_one() {
        let places = Places::new(6, 3, 2);
        let analyst = |name| places.take(name, Role::Analyst);
        let mut held: Vec<Place<&str>> = (0..3).map(|_| analyst("ann").unwrap()).collect();
        assert_eq!(analyst("ann").err(), Some(NoPlace::Share));
        held.push(analyst("bob").unwrap());
        assert_eq!(analyst("bob").err(), Some(NoPlace::Full));
        held.extend((0..2).map(|_| places.take("olga", Role::Owner).unwrap()));
        assert_eq!(places.take("olga", Role::Owner).err(), Some(NoPlace::Full));
        held.clear();
        assert!(analyst("ann").is_ok());
        assert!(places.taken().by_holder.is_empty());
    }
}
