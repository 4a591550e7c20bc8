//! The name somebody probably meant.

/// The known name a typo was most likely meant to be: equal but for case, or an edit or two away.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .into_iter()
        .map(|known| (edits(&lower, &known.to_lowercase()), known))
        .filter(|&(distance, known)| distance <= 1 + known.chars().count() / 5)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, known)| known)
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut distances: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = i;
        distances[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(letter != *other);
            diagonal = distances[j + 1];
            distances[j + 1] = substitute.min(diagonal + 1).min(distances[j] + 1);
        }
    }
    distances[b.len()]
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
