//! The ledger of a materialized view: what it keeps, how it is read, and how it changes.

use std::fmt;

macro_rules! number {
    ($(#[$text:meta])* $name:ident) => {
        $(#[$text])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

number! {
    /// One version of a person's row. The number of a version is never used for another one.
    MemberKey
}
number! {
    /// A person. The number stays the same if the person's row changes.
    PersonKey
}
number! {
    /// A class: what readers see as one crowd.
    ClassId
}
number! {
    /// Part of a class that satisfies the requirement by itself.
    AtomId
}

/// What a row shows beside its quasi labels: one value number per column, sensitive and plain ones alike, and one more
/// per column that is raised for some reader. Two rows have the same tuple if no reader can tell them apart by it.
pub type Tuple = Vec<u32>;

/// A row and whose it is. One row per person and version.
#[derive(Clone, PartialEq, Eq)]
pub struct Member {
    /// This version of the row.
    pub key: MemberKey,
    /// Whose it is.
    pub person: PersonKey,
    /// The person's own k; 0 and 1 ask for no class.
    pub k: u32,
    /// For each quasi column, the node of the value.
    pub nodes: Vec<u32>,
    /// The rest of what is shown.
    pub tuple: Tuple,
}

/// Shows only the key. The numbers of cells would tell their values to anybody who has the dictionary.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("key", &self.key).finish_non_exhaustive()
    }
}

/// Whether a shown member's row still is in the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The row still is in the base.
    Stays,
    /// The row was deleted or replaced, and is shown until it can go.
    Leaves,
}

/// A member of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomMember {
    /// The row.
    pub member: Member,
    /// Whether the row is on its way out.
    pub shown: Shown,
}

/// What readers have seen of a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Past {
    /// Nothing.
    #[default]
    Nothing,
    /// The person in a crowd, or that the crowd was not shown because of its values. A reader who saw that could tell
    /// more from the person in another crowd.
    InCrowd,
    /// The person's own row, because the person asked for no class. Such a person can no longer be hidden in a crowd,
    /// and gives no cover to others.
    Alone,
}

/// Where a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Pending at a class.
    Waiting(ClassId),
    /// In an atom.
    Atom {
        /// Its class.
        class: ClassId,
        /// The atom.
        atom: AtomId,
    },
    /// Shown by itself.
    Alone,
    /// Not shown until a refresh.
    Hidden,
}

/// A change of the base, as the view sees it. Changes of a person's k, of policies, DGHs and retention are updates of
/// the rows they touch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// A row came.
    Insert(Member),
    /// A row went.
    Delete(MemberKey),
    /// A row was replaced by another of the same person.
    Update {
        /// The version that was.
        old: MemberKey,
        /// The version that is.
        new: Member,
    },
}

/// What a change does to the ledger. Effects must be written in order, in the transaction of the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A class comes into being, without members.
    Found {
        /// The class.
        class: ClassId,
        /// Its quasi labels.
        nodes: Vec<u32>,
    },
    /// A new row is not shown yet.
    Wait {
        /// Where it waits.
        class: ClassId,
        /// The row.
        member: Member,
    },
    /// A new row is not shown until a refresh.
    Hide {
        /// The row.
        member: Member,
    },
    /// A new row is shown by itself.
    ShowAlone {
        /// The row.
        member: Member,
    },
    /// Rows that waited are shown from now on, as one atom.
    Admit {
        /// The class.
        class: ClassId,
        /// The new atom.
        atom: AtomId,
        /// The rows.
        members: Vec<MemberKey>,
    },
    /// Rows that waited are hidden until a refresh.
    Seal {
        /// The rows.
        members: Vec<MemberKey>,
    },
    /// A shown row is on its way out.
    Leave {
        /// The row.
        member: MemberKey,
    },
    /// Rows of an atom are shown no more, and forgotten. The others stay; without others the atom is gone.
    Remove {
        /// The class.
        class: ClassId,
        /// The atom.
        atom: AtomId,
        /// The rows.
        members: Vec<MemberKey>,
    },
    /// An atom is shown no more. Those of its rows that are still in the base are hidden until a refresh.
    Withdraw {
        /// The class.
        class: ClassId,
        /// The atom.
        atom: AtomId,
        /// Its rows that left the base. They are forgotten.
        gone: Vec<MemberKey>,
        /// Its rows that are still in the base. They are hidden until a refresh.
        survivors: Vec<MemberKey>,
    },
    /// A class without members is given up.
    Dissolve {
        /// The class.
        class: ClassId,
    },
    /// A row that is in no class is forgotten.
    Forget {
        /// The row.
        member: MemberKey,
    },
    /// What readers have seen of a person, for when the person has a new row.
    Remember {
        /// The person.
        person: PersonKey,
        /// What was seen.
        past: Past,
    },
}

/// How what is kept is read. A change asks only for what it touches.
pub trait Ledger {
    /// Why it can't be read.
    type Error;

    /// Where a member is, `None` if there is no such member.
    ///
    /// # Errors
    /// If it can't be read.
    fn place(&self, member: MemberKey) -> Result<Option<Place>, Self::Error>;

    /// The members of an atom, in the order of their keys.
    ///
    /// # Errors
    /// If they can't be read.
    fn atom(&self, atom: AtomId) -> Result<Vec<AtomMember>, Self::Error>;

    /// The members that wait at a class, in the order of their keys.
    ///
    /// # Errors
    /// If they can't be read.
    fn waiting(&self, class: ClassId) -> Result<Vec<Member>, Self::Error>;

    /// The number of members that wait at a class. If there are too few, the members themselves need not be read.
    ///
    /// # Errors
    /// If they can't be counted.
    fn n_waiting(&self, class: ClassId) -> Result<usize, Self::Error> {
        Ok(self.waiting(class)?.len())
    }

    /// What readers have seen of a person, as it was last remembered.
    ///
    /// # Errors
    /// If it can't be read.
    fn past(&self, person: PersonKey) -> Result<Past, Self::Error>;

    /// A number above those of all classes that ever were, and one above those of all atoms.
    ///
    /// # Errors
    /// If they can't be read.
    fn unused(&self) -> Result<(ClassId, AtomId), Self::Error>;
}
