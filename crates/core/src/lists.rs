//! [`Lists`]: lists of numbers, stored one after the other.

/// Lists of numbers, stored one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    items: Vec<u32>,
    /// List `l` is `items[starts[l]..starts[l + 1]]`.
    starts: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Self {
        Lists { items: Vec::new(), starts: vec![0] }
    }
}

impl Lists {
    /// Lists, given the start of each. The last start is the end of all.
    pub(crate) fn new(items: Vec<u32>, starts: Vec<u32>) -> Lists {
        debug_assert_eq!(starts.last().copied(), Some(items.len() as u32));
        Lists { items, starts }
    }

    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = u32>) {
        self.items.extend(list);
        self.starts.push(self.items.len() as u32);
    }

    pub(crate) fn append(&mut self, others: &Lists) {
        let n_before = self.items.len() as u32;
        self.items.extend_from_slice(&others.items);
        self.starts.extend(others.starts[1..].iter().map(|start| start + n_before));
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    #[inline]
    pub(crate) fn get(&self, list: usize) -> &[u32] {
        self.run(list..list + 1)
    }

    #[inline]
    pub(crate) fn len_of(&self, list: usize) -> u32 {
        self.starts[list + 1] - self.starts[list]
    }

    /// Some neighbouring lists as one.
    #[inline]
    pub(crate) fn run(&self, lists: std::ops::Range<usize>) -> &[u32] {
        &self.items[self.start(lists.start)..self.start(lists.end)]
    }

    /// How many items are before a list, or in all lists for one past the last.
    #[inline]
    pub(crate) fn start(&self, list: usize) -> usize {
        self.starts[list] as usize
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|list| self.get(list))
    }

    /// All numbers, list after list.
    pub(crate) fn items(&self) -> &[u32] {
        &self.items
    }
}

impl<L: IntoIterator<Item = u32>> FromIterator<L> for Lists {
    fn from_iter<I: IntoIterator<Item = L>>(lists: I) -> Lists {
        let mut all = Lists::default();
        lists.into_iter().for_each(|list| all.push(list));
        all
    }
}
