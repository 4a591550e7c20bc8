//! [`Bitmap`]: every person as one row of bits, anonymized as a single table.
//!
//! There is one bit per course, set if the person takes it, and one per book of a course, set if the person buys it
//! there. If data are complete, an unset bit says that there is no such row, and a class keeps the bits on which all
//! its persons agree. If data are incomplete, an unset bit says nothing, and a class keeps the bits that all its
//! persons have set.
//!
//! # Paper
//! `[NCN08]`, sections III-C and V: the single pass that MiRaCle has too (algorithm 2), on bits instead of trees
//! # Deviations
//! Whatever the paper leaves open is chosen in favour of the bitmap. LM is that of the rows for which the bits stand,
//! so that it can be compared with definition 8 over the tables: a row whose bit is kept loses nothing, any other row
//! is lost completely, and bits that were never set do not count. The nearest cluster is the one where the loss of all
//! its persons grows least. A cluster is closed at k persons rather than at k + 1, and the last few persons join a
//! class instead of being suppressed.

use std::collections::HashMap;

use super::students::Students;

/// The meaning of an unset bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// An unset bit says that there is no such row.
    Complete,
    /// An unset bit says nothing.
    Incomplete,
}

/// The order in which the single pass meets persons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The order of the table.
    Table,
    /// The order of their bits, courses before books.
    Bits,
}

/// The settings of the single pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) data: Data,
    pub(super) order: Order,
    pub(super) k: usize,
    /// The largest mean loss per cell at which a person joins a cluster instead of opening another.
    pub(super) threshold: f64,
    /// The largest number of open clusters.
    pub(super) limit: usize,
}

/// The loss of a release.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitmapLoss {
    /// The share of rows whose bit is not kept.
    pub(super) lm: f64,
    pub(super) dm: f64,
}

/// A row of bits per person.
pub(super) struct Bitmap {
    rows: Vec<u128>,
    n_bits: u32,
}

/// Persons, and the bits that they share.
#[derive(Clone)]
struct Cluster {
    /// Bits that are set for all of them.
    ones: u128,
    /// Bits that are unset for all of them.
    zeros: u128,
    persons: usize,
    /// The number of set bits, over all persons.
    n_set: u32,
}

impl Bitmap {
    /// The students' bits.
    pub(super) fn of(students: &Students) -> Bitmap {
        let n_courses = students.course().texts.len();
        let mut rows = vec![0u128; students.len()];
        let mut bit_of_book: HashMap<(u32, u32), usize> = HashMap::new();
        for (&student, &course) in students.student_of_takes.iter().zip(&students.course().ids) {
            set(&mut rows[student as usize], course as usize);
        }
        for (book, &title) in students.book().ids.iter().enumerate() {
            let course = students.course().ids[students.takes_of_book[book] as usize];
            let next = n_courses + bit_of_book.len();
            let bit = *bit_of_book.entry((course, title)).or_insert(next);
            set(&mut rows[students.student_of_book(book) as usize], bit);
        }
        Bitmap { rows, n_bits: (n_courses + bit_of_book.len()) as u32 }
    }

    /// How many bits a person has.
    pub(super) fn n_bits(&self) -> u32 {
        self.n_bits
    }

    /// Anonymizes the persons.
    pub(super) fn anonymize(&self, settings: Settings) -> BitmapLoss {
        let mut persons: Vec<u128> = self.rows.clone();
        if settings.order == Order::Bits {
            persons.sort_unstable_by_key(|bits| bits.reverse_bits());
        }
        let (mut open, mut full): (Vec<Cluster>, Vec<Cluster>) = (Vec::new(), Vec::new());
        for person in persons.into_iter().map(Cluster::of_person) {
            let joins = self.nearest(settings.data, &open, &person).filter(|&position| {
                let joined = open[position].join(&person);
                let mean = self.loss(settings.data, &joined) / self.n_cells(settings.data, &joined);
                mean <= settings.threshold || open.len() >= settings.limit
            });
            let Some(position) = joins else {
                open.push(person);
                continue;
            };
            open[position] = open[position].join(&person);
            if open[position].persons >= settings.k {
                full.push(open.swap_remove(position));
            }
        }
        while let Some(mut left) = open.pop() {
            while left.persons < settings.k {
                let among = if open.is_empty() { &mut full } else { &mut open };
                let Some(position) = self.nearest(settings.data, among, &left) else { break };
                left = left.join(&among.swap_remove(position));
            }
            full.push(left);
        }
        self.measure(settings.data, &full)
    }

    /// The cluster whose loss together with that of `other` grows least.
    fn nearest(&self, data: Data, clusters: &[Cluster], other: &Cluster) -> Option<usize> {
        let growth = |cluster: &Cluster| self.loss(data, &cluster.join(other)) - self.loss(data, cluster);
        let growths = clusters.iter().map(growth).enumerate();
        growths.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(position, _)| position)
    }

    /// How many cells of the bitmap a release no longer shows.
    fn loss(&self, data: Data, cluster: &Cluster) -> f64 {
        match data {
            Data::Complete => {
                let known = (cluster.ones | cluster.zeros) & (u128::MAX >> (128 - self.n_bits));
                f64::from(self.n_bits - known.count_ones()) * cluster.persons as f64
            }
            Data::Incomplete => cluster.lost_rows(),
        }
    }

    fn n_cells(&self, data: Data, cluster: &Cluster) -> f64 {
        match data {
            Data::Complete => f64::from(self.n_bits) * cluster.persons as f64,
            Data::Incomplete => f64::from(cluster.n_set),
        }
    }

    fn measure(&self, data: Data, classes: &[Cluster]) -> BitmapLoss {
        let mut persons_by_bits: HashMap<(u128, u128), usize> = HashMap::new();
        for class in classes {
            let zeros = if data == Data::Complete { class.zeros } else { 0 };
            *persons_by_bits.entry((class.ones, zeros)).or_insert(0) += class.persons;
        }
        let lost: f64 = classes.iter().map(Cluster::lost_rows).sum();
        let n_set: u32 = self.rows.iter().map(|row| row.count_ones()).sum();
        let dm = persons_by_bits.values().map(|&persons| (persons * persons) as f64).sum();
        BitmapLoss { lm: lost / f64::from(n_set), dm }
    }
}

impl Cluster {
    fn of_person(bits: u128) -> Cluster {
        Cluster { ones: bits, zeros: !bits, persons: 1, n_set: bits.count_ones() }
    }

    fn join(&self, other: &Cluster) -> Cluster {
        Cluster {
            ones: self.ones & other.ones,
            zeros: self.zeros & other.zeros,
            persons: self.persons + other.persons,
            n_set: self.n_set + other.n_set,
        }
    }

    /// How many set bits of its persons are not kept.
    fn lost_rows(&self) -> f64 {
        f64::from(self.n_set) - f64::from(self.ones.count_ones()) * self.persons as f64
    }
}

fn set(row: &mut u128, bit: usize) {
    assert!(bit < 128, "all courses and books fit into one word");
    *row |= 1 << bit;
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: Settings = Settings { data: Data::Incomplete, order: Order::Table, k: 2, threshold: 0.5, limit: 10 };

    #[test]
    fn a_class_keeps_the_bits_that_all_its_persons_have_set() {
        // Two persons share two of three bits; the others have a single bit and share it.
        let bitmap = Bitmap { rows: vec![0b0111, 0b1000, 0b1011, 0b1000], n_bits: 4 };
        let loss = bitmap.anonymize(Settings { threshold: 0.4, ..PAIRS });
        assert_eq!((loss.lm, loss.dm), (2.0 / 8.0, 8.0));
    }

    #[test]
    fn bits_that_nobody_has_are_kept_only_if_data_are_complete() {
        let bitmap = Bitmap { rows: vec![0b001, 0b010], n_bits: 3 };
        let cluster = Cluster::of_person(0b001).join(&Cluster::of_person(0b010));
        assert_eq!(bitmap.loss(Data::Complete, &cluster), 4.0);
        assert_eq!(bitmap.loss(Data::Incomplete, &cluster), 2.0);
        assert_eq!(bitmap.n_cells(Data::Complete, &cluster), 6.0);
    }

    #[test]
    fn the_last_person_joins_a_class() {
        let bitmap = Bitmap { rows: vec![0b1, 0b1, 0b1], n_bits: 1 };
        assert_eq!(bitmap.anonymize(PAIRS).dm, 9.0);
    }
}
