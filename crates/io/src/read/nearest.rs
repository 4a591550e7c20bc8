//! Finds the known name that was probably meant.

use strsim::levenshtein;

/// The known name that is closest to a name: equal except for case, or with an edit or two.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .into_iter()
        .map(|known| (levenshtein(&lower, &known.to_lowercase()), known))
        .filter(|&(distance, known)| distance <= 1 + known.chars().count() / 5)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_slip_is_found() {
        let known = ["age", "postcode"];
        assert_eq!(nearest("Age", known), Some("age"));
        assert_eq!(nearest("postcod", known), Some("postcode"));
        assert_eq!(nearest("disease", known), None);
    }
}
