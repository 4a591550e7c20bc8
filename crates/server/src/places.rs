//! [`Places`]: how many of something there may be, and how many of one holder.
//!
//! # Guarantee
//! One holder never has more than their share, and whoever is no owner leaves some places free: so no analyst, however many
//! connections or cursors they open, keeps an owner out, or another analyst.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kohort_sql::Role;

/// Places that are taken and given back, by whom.
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

/// Why there is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All are taken.
    Full,
    /// This holder has all they may have.
    Share,
}

/// A place, until it is dropped.
pub(crate) struct Place<Holder: Eq + Hash + Clone> {
    places: Arc<Places<Holder>>,
    holder: Holder,
}

impl<Holder: Eq + Hash + Clone> Places<Holder> {
    /// So many places, of which one holder who is no owner gets some, and owners alone get others.
    pub(crate) fn new(most: usize, most_of_one: usize, for_owners: usize) -> Arc<Places<Holder>> {
        let taken = Mutex::new(Taken { n_places: 0, by_holder: HashMap::new() });
        Arc::new(Places { most, most_of_one, for_owners, taken })
    }

    /// Takes one, if there is one.
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
    fn nobody_takes_all_and_owners_find_a_place() {
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
