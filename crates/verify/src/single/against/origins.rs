//! [`Origins`]: which private rows a released row may have come from.
//!
//! Released rows with equal cells form a box, private rows with equal cells and equal own k form a point, and boxes and
//! points with equal copied cells form a bucket.
//! # Cost
//! Only boxes and points of one bucket are compared.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::{Pairs, concatenated, narrow};
use crate::Violation;
use crate::count::cells::CellIds;
use crate::count::grouping::Classes;
use crate::count::roll::OwnK;
use crate::origins::assignment::Network;
use crate::origins::candidates::PointTree;
use crate::reading::coverage::Runs;

/// The released and the private rows, and everything that decides which private row can be the origin of a released
/// one.
pub(crate) struct Sides<'a> {
    pub(crate) pairs: &'a Pairs<'a>,
    /// The private values that each label of a quasi column covers.
    pub(crate) runs: &'a [Runs],
    pub(crate) n_released: usize,
    pub(crate) n_original: usize,
    /// The released quasi cells.
    pub(crate) quasi: &'a [CellIds<'a>],
    /// Persons' own k, by person.
    pub(crate) own_k: &'a [OwnK],
    /// The person of each private row; if absent, each row is a person.
    pub(crate) persons: Option<&'a CellIds<'a>>,
    /// For each released row, the largest own k that its origin may have. See `Perspectives::sizes_for_own_k`.
    pub(crate) sizes_for_own_k: &'a [u32],
}

/// The boxes, points and buckets of a released and a private table.
pub(crate) struct Origins<'a> {
    sides: &'a Sides<'a>,
    /// Released rows, grouped by copied and quasi cells.
    pub(crate) boxes: Classes,
    /// Private rows, grouped by copied and quasi cells and own k.
    pub(crate) points: Classes,
    pub(crate) buckets: Vec<Bucket>,
}

/// The boxes and points with equal copied cells, as ranges of their numbers (the end excluded).
pub(crate) struct Bucket {
    pub(crate) boxes: (usize, usize),
    pub(crate) points: (usize, usize),
}

impl<'a> Origins<'a> {
    pub(crate) fn new(sides: &'a Sides<'a>) -> Self {
        let Sides { pairs, n_released, n_original, quasi, own_k, .. } = *sides;
        let copied: Vec<CellIds<'_>> =
            pairs.copied.par_iter().map(|(public, private)| concatenated(public, private)).collect();
        let both = Classes::group(&copied.iter().collect::<Vec<_>>(), n_released + n_original);
        let (bucket_of_rows, n_buckets) = (both.class_of_rows(), both.len());
        drop((both, copied));
        let (of_released, of_original) = bucket_of_rows.split_at(n_released);

        let bucket = CellIds::by_id(of_released, n_buckets);
        let boxes = Classes::group(&std::iter::once(&bucket).chain(quasi).collect::<Vec<_>>(), n_released);

        let bucket = CellIds::by_id(of_original, n_buckets);
        let mut columns = vec![bucket];
        columns
            .extend(pairs.quasi.iter().map(|(_, private)| CellIds::by_id(private.ids.as_slice(), private.texts.len())));
        for own_k in own_k {
            let wishes: Vec<u32> = (0..n_original).map(|row| narrow(own_k.get(row, sides.persons))).collect();
            columns.push(CellIds::by_id(wishes, u32::MAX as usize));
        }
        let points = Classes::group(&columns.iter().collect::<Vec<_>>(), n_original);

        // Boxes and points are sorted by bucket, because that is the first column they are grouped by.
        let bucket_of = |classes: &Classes, buckets: &[u32], group: usize| buckets[classes.rows(group)[0] as usize];
        let mut buckets = Vec::new();
        let (mut next_box, mut next_point) = (0, 0);
        while next_box < boxes.len() {
            let bucket = bucket_of(&boxes, of_released, next_box);
            let first_box = next_box;
            while next_box < boxes.len() && bucket_of(&boxes, of_released, next_box) == bucket {
                next_box += 1;
            }
            while next_point < points.len() && bucket_of(&points, of_original, next_point) < bucket {
                next_point += 1;
            }
            let first_point = next_point;
            while next_point < points.len() && bucket_of(&points, of_original, next_point) == bucket {
                next_point += 1;
            }
            buckets.push(Bucket { boxes: (first_box, next_box), points: (first_point, next_point) });
        }
        Origins { sides, boxes, points, buckets }
    }

    /// The boxes and points of one bucket, numbered from 0, and which points each box may take.
    ///
    /// # Errors
    /// If there are more than `most` candidates.
    pub(crate) fn network(&self, bucket: &Bucket, most: u64) -> Result<Network, Violation> {
        let Sides { pairs, runs, own_k, sizes_for_own_k, persons, .. } = *self.sides;
        let n_points = bucket.points.1 - bucket.points.0;
        let n_columns = runs.len() + own_k.len();
        let mut coordinates = Vec::with_capacity(n_points * n_columns);
        for point in bucket.points.0..bucket.points.1 {
            let row = self.points.rows(point)[0] as usize;
            let values = runs.iter().zip(&pairs.quasi);
            coordinates.extend(values.map(|(runs, (_, private))| runs.position(private.ids[row])));
            coordinates.extend(own_k.iter().map(|own_k| narrow(own_k.get(row, persons))));
        }
        let tree = PointTree::new(n_columns, coordinates, n_points);
        let n_candidates = AtomicU64::new(0);
        let candidates: Option<Vec<Vec<u32>>> = (bucket.boxes.0..bucket.boxes.1)
            .into_par_iter()
            .map(|released| {
                let row = self.boxes.rows(released)[0] as usize;
                let labels = runs.iter().zip(&pairs.quasi);
                let mut sides: Vec<(u32, u32)> = labels.map(|(runs, (public, _))| runs.run(public.ids[row])).collect();
                sides.extend(own_k.iter().map(|_| (0, sizes_for_own_k[row].saturating_add(1))));
                let points = tree.within(&sides);
                let n = points.len() as u64;
                (n_candidates.fetch_add(n, Ordering::Relaxed) + n <= most).then_some(points)
            })
            .collect();
        let candidates = candidates.ok_or(Violation::TooManyOrigins { limit: most })?;
        let sizes = |classes: &Classes, (from, to): (usize, usize)| -> Vec<u32> {
            (from..to).map(|group| classes.rows(group).len() as u32).collect()
        };
        Ok(Network::new(&candidates, sizes(&self.boxes, bucket.boxes), sizes(&self.points, bucket.points)))
    }

    /// The violation if boxes lack origins. `lacking` are pairs of a box and the number of origins it lacks.
    pub(crate) fn lacking(&self, lacking: impl Iterator<Item = (usize, u32)>) -> Option<Violation> {
        let (mut n, mut first_row) = (0, u64::MAX);
        for (released, lacking) in lacking.filter(|&(_, lacking)| lacking > 0) {
            n += u64::from(lacking);
            first_row = first_row.min(u64::from(self.boxes.rows(released)[0]) + 1);
        }
        (n > 0).then_some(Violation::WithoutOrigin { n, first_row })
    }
}
