//! Rows of codes packed to as few bits as their domains need.
//!
//! Sorting and cutting move whole rows, so small rows are fast. Six columns of a census take 36 bits, not the 192 of
//! six `u32`. Fields fill words from the top and never straddle two, so comparing words compares codes.

/// Where each column's code sits in a packed row.
#[derive(Clone, Debug)]
pub struct Layout {
    fields: Vec<Field>,
    words: usize,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    word: usize,
    shift: u32,
    mask: u64,
}

/// A packed row with its weight and number.
#[derive(Clone, Copy, Debug)]
pub struct Packed<const W: usize> {
    /// The codes.
    pub words: [u64; W],
    /// The row's number.
    pub row: u32,
    /// How many rows of the table it stands for.
    pub weight: u32,
}

impl Layout {
    /// The layout of columns, given the number of codes of each.
    pub fn new(n_codes: &[u32]) -> Layout {
        let mut fields = Vec::with_capacity(n_codes.len());
        let (mut word, mut free) = (0, 64);
        for &n_codes in n_codes {
            let bits = (32 - n_codes.saturating_sub(1).leading_zeros()).max(1);
            if free < bits {
                word += 1;
                free = 64;
            }
            free -= bits;
            fields.push(Field { word, shift: free, mask: (1 << bits) - 1 });
        }
        Layout { words: word + 1, fields }
    }

    /// How many words a row takes.
    pub fn words(&self) -> usize {
        self.words
    }

    /// How many columns there are.
    pub fn n_columns(&self) -> usize {
        self.fields.len()
    }

    /// A column's code in a packed row.
    #[inline]
    pub fn code<const W: usize>(&self, words: &[u64; W], column: usize) -> u32 {
        let field = self.fields[column];
        // One word needs no look-up, and the compiler can't know that the index is 0.
        let word = if W == 1 { words[0] } else { words[field.word] };
        ((word >> field.shift) & field.mask) as u32
    }

    /// Packs the codes of a row.
    pub fn pack<const W: usize>(&self, code: impl Fn(usize) -> u32) -> [u64; W] {
        let mut words = [0; W];
        for (column, field) in self.fields.iter().enumerate() {
            words[field.word] |= u64::from(code(column)) << field.shift;
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_rows_hold_and_order_their_codes(n_codes in prop::collection::vec(1u32.., 1..20), a in any::<u64>(), b in any::<u64>()) {
            let layout = Layout::new(&n_codes);
            prop_assume!(layout.words() <= 16);
            let codes = |seed: u64| -> Vec<u32> {
                (0..n_codes.len()).map(|column| (seed.rotate_left(column as u32 * 7) % u64::from(n_codes[column])) as u32).collect()
            };
            let (a, b) = (codes(a), codes(b));
            let (packed_a, packed_b): ([u64; 16], [u64; 16]) = (layout.pack(|column| a[column]), layout.pack(|column| b[column]));
            for (column, &code) in a.iter().enumerate() {
                prop_assert_eq!(layout.code(&packed_a, column), code);
            }
            prop_assert_eq!(packed_a.cmp(&packed_b), a.cmp(&b));
        }
    }
}
