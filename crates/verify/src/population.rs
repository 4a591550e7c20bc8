//! [`PopulationRisk`]: how easily persons of a sample are found in the population that it was drawn from, by models that know the
//! class sizes of the sample and the number of persons in the population.
//!
//! | model | says | paper |
//! | --- | --- | --- |
//! | Poisson | a class of `f` sampled persons has `f` plus a Poisson number of others, `f (1 - p) / p` in the mean, where `p` is the sampled share | [SH98] |
//! | Zayatz | sizes of classes are spread in the population as in the sample; Bayes' rule gives the chance that a single one is single there | [Zay91] |
//! | slide negative binomial | the persons of a class beyond the first are negative binomial, and each is sampled with chance `p` | [CK98] |
//! | Pitman | classes are a random partition by Pitman's sampling formula, whose two parameters are the most likely ones | [Hos01] |
//!
//! # Limits
//! All of these are estimates. They hold if persons were drawn with equal chances, and as far as classes are spread as the model
//! says, which nothing in the sample can prove. A release is never judged by them.
//! # Deviations
//! [SH98] estimates means by a log-linear model; here each class has its own mean, estimated from its size. [CK98] fits its
//! parameters to the numbers of singles and pairs; here the size of the population is given, and the shape is the most likely one.
//! # Cost        proportional to the number of different class sizes

/// A model of the population.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopulationModel {
    /// Poisson numbers of persons who were not sampled.
    Poisson,
    /// Sizes spread as in the sample.
    Zayatz,
    /// Negative binomial sizes, slid by one.
    SlideNegativeBinomial,
    /// Pitman's sampling formula.
    Pitman,
}

impl PopulationModel {
    /// Every model.
    pub const ALL: [PopulationModel; 4] = [
        PopulationModel::Poisson,
        PopulationModel::Zayatz,
        PopulationModel::SlideNegativeBinomial,
        PopulationModel::Pitman,
    ];

    /// The name in files.
    pub fn word(self) -> &'static str {
        match self {
            PopulationModel::Poisson => "poisson",
            PopulationModel::Zayatz => "zayatz",
            PopulationModel::SlideNegativeBinomial => "snb",
            PopulationModel::Pitman => "pitman",
        }
    }
}

/// How easily persons of a sample are found in their population.
#[derive(Clone, Debug, PartialEq)]
pub struct PopulationRisk {
    /// Persons of the population.
    pub persons: u64,
    /// The share of them that was sampled.
    pub share: f64,
    /// Persons of the sample who are alone in their class there.
    pub alone_in_sample: u64,
    /// By each model, the number of persons of the population who are alone in it. At most `share` of them are in the sample.
    pub alone: Vec<(PopulationModel, f64)>,
    /// By the Poisson model, the chance of a journalist to pick the right person of the population, for the persons who are easiest
    /// to find.
    pub highest_risk: f64,
    /// The mean of these chances over the persons of the sample.
    pub average_risk: f64,
}

impl PopulationRisk {
    /// The risk of a sample, by its class sizes with the number of classes of each, ascending. `None` if the sample is empty or
    /// larger than the population.
    pub fn of(class_sizes: &[(u64, u64)], n_population: u64) -> Option<PopulationRisk> {
        let sample = Sample::new(class_sizes, n_population)?;
        let risk = |size: u64| sample.journalist_risk(size);
        let chances = class_sizes.iter().map(|&(size, n)| (size * n) as f64 * risk(size));
        Some(PopulationRisk {
            persons: n_population,
            share: sample.share,
            alone_in_sample: sample.n_alone() as u64,
            alone: PopulationModel::ALL.into_iter().map(|model| (model, sample.alone_in_population(model))).collect(),
            average_risk: chances.sum::<f64>() / sample.n_persons,
            highest_risk: class_sizes.iter().map(|&(size, _)| risk(size)).fold(0.0, f64::max),
        })
    }
}

/// Class sizes of a sample of known size.
struct Sample<'a> {
    class_sizes: &'a [(u64, u64)],
    n_classes: f64,
    n_persons: f64,
    n_population: f64,
    share: f64,
}

impl<'a> Sample<'a> {
    fn new(class_sizes: &'a [(u64, u64)], population: u64) -> Option<Self> {
        let persons: u64 = class_sizes.iter().map(|(size, n)| size * n).sum();
        if persons == 0 || persons > population {
            return None;
        }
        let (n_persons, n_population) = (persons as f64, population as f64);
        let n_classes = class_sizes.iter().map(|&(_, n)| n as f64).sum();
        Some(Sample { class_sizes, n_classes, n_persons, n_population, share: n_persons / n_population })
    }

    fn n_alone(&self) -> f64 {
        let n: u64 = self.class_sizes.iter().filter(|(size, _)| *size == 1).map(|(_, n)| n).sum();
        n as f64
    }

    fn alone_in_population(&self, model: PopulationModel) -> f64 {
        // Nobody is alone in the population who is not alone in a sample of it, and with everybody sampled nothing is estimated.
        if self.n_alone() == 0.0 || self.n_persons == self.n_population {
            return self.n_alone();
        }
        let alone = match model {
            PopulationModel::Poisson => self.n_alone() * (-self.unsampled(1)).exp() / self.share,
            PopulationModel::Zayatz => self.zayatz(),
            PopulationModel::SlideNegativeBinomial => self.slide_negative_binomial(),
            PopulationModel::Pitman => self.pitman(),
        };
        alone.clamp(0.0, self.n_population)
    }

    /// The mean number of persons who were not sampled, in a class of this size.
    fn unsampled(&self, size: u64) -> f64 {
        size as f64 * (1.0 - self.share) / self.share
    }

    /// The mean of one over the size of a class in the population, by the Poisson model.
    fn journalist_risk(&self, size: u64) -> f64 {
        let mean = self.unsampled(size);
        // So many persons that their number differs from its mean by less than the last digits shown.
        if mean > 1e9 {
            return 1.0 / (size as f64 + mean);
        }
        // Terms beyond this add less than rounding does. They are summed from the likeliest one, so that none underflows early.
        let spread = 40.0 + 12.0 * mean.sqrt();
        let (first, last) = ((mean - spread).max(0.0) as u64, (mean + spread) as u64);
        let (mut sum, mut total) = (0.0, 0.0);
        let middle = mean as u64;
        let mut add = |n: u64, weight: f64| {
            sum += weight / (size + n) as f64;
            total += weight;
        };
        let mut weight = 1.0;
        for n in middle..=last {
            add(n, weight);
            weight *= mean / (n + 1) as f64;
        }
        weight = 1.0;
        for n in (first..middle).rev() {
            weight *= (n + 1) as f64 / mean;
            add(n, weight);
        }
        sum / total
    }

    /// Singles in the sample, times the chance that a single one is single in the population, over the sampled share.
    fn zayatz(&self) -> f64 {
        let weight = |&(size, n): &(u64, u64)| n as f64 / self.n_classes * self.chance_of_one(size);
        let of_all: f64 = self.class_sizes.iter().map(weight).sum();
        let chance = self.n_alone() / self.n_classes * self.share / of_all;
        self.n_alone() * chance / self.share
    }

    /// The hypergeometric chance that a class of the population with so many persons has one in the sample.
    fn chance_of_one(&self, size: u64) -> f64 {
        let mut chance = size as f64 * self.share;
        for drawn in 0..size.saturating_sub(1) {
            let others = self.n_population - self.n_persons - drawn as f64;
            chance *= others.max(0.0) / (self.n_population - 1.0 - drawn as f64);
            if chance < f64::MIN_POSITIVE {
                return 0.0;
            }
        }
        chance
    }

    fn slide_negative_binomial(&self) -> f64 {
        let fitted = |log_shape: f64| SlideNegativeBinomial::fit(self, log_shape.exp());
        let best = most_likely(|log_shape| fitted(log_shape).log_likelihood(self), (-9.0, 14.0));
        let model = fitted(best);
        model.n_classes(self) * model.log_unsampled_is_none(1.0).exp()
    }

    fn pitman(&self) -> f64 {
        let best_theta = |alpha: f64| {
            let within = Pitman::log_within(alpha, self);
            let highest = (1e4 * self.n_population).ln();
            let model = |log: f64| Pitman { alpha, theta: log.exp() - alpha };
            let log = most_likely(|log| model(log).log_likelihood(self, within), (-18.0, highest));
            (model(log), model(log).log_likelihood(self, within))
        };
        let alpha = most_likely(|alpha| best_theta(alpha).1, (1e-6, 1.0 - 1e-6));
        let (Pitman { alpha, theta }, _) = best_theta(alpha);
        let others = self.n_population - 1.0;
        self.n_population * (log_rising(theta + alpha, others) - log_rising(theta + 1.0, others)).exp()
    }
}

/// A class of the population has one person, and a negative binomial number of others.
struct SlideNegativeBinomial {
    /// The shape of the negative binomial distribution.
    shape: f64,
    /// Its mean.
    mean: f64,
    /// The chance of each person to be in the sample.
    share: f64,
}

impl SlideNegativeBinomial {
    /// The mean for which the classes that are expected to be sampled, and those that are not, have all persons of the population.
    fn fit(sample: &Sample<'_>, shape: f64) -> Self {
        let wanted = sample.n_persons / sample.n_classes;
        let model = |log_mean: f64| SlideNegativeBinomial { shape, mean: log_mean.exp(), share: sample.share };
        let (mut low, mut high) = (-30.0, sample.n_population.ln() + 5.0);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            let tried = model(middle);
            let per_class = (1.0 + tried.mean) * tried.share / tried.chance_of_some();
            *(if per_class < wanted { &mut low } else { &mut high }) = middle;
        }
        model(low)
    }

    /// The logarithm of the chance that none of the persons beyond the first is drawn, where each is drawn with this chance.
    fn log_unsampled_is_none(&self, share: f64) -> f64 {
        -self.shape * (share * self.mean / self.shape).ln_1p()
    }

    /// The chance that a class of the population is in the sample.
    fn chance_of_some(&self) -> f64 {
        1.0 - (1.0 - self.share) * self.log_unsampled_is_none(self.share).exp()
    }

    /// The classes of the population.
    fn n_classes(&self, sample: &Sample<'_>) -> f64 {
        sample.n_classes / self.chance_of_some()
    }

    /// The logarithm of the chance that so many persons beyond the first are in the sample: a negative binomial number of
    /// which each is drawn by chance is negative binomial with the same shape.
    fn log_chance_of_others(&self, n: f64) -> f64 {
        let drawn = self.share * self.mean;
        log_rising(self.shape, n) - log_rising(1.0, n)
            + self.log_unsampled_is_none(self.share)
            + n * (drawn / (self.shape + drawn)).ln()
    }

    fn log_likelihood(&self, sample: &Sample<'_>) -> f64 {
        let log_chance = |&(size, n): &(u64, u64)| {
            let with_first = self.share.ln() + self.log_chance_of_others((size - 1) as f64);
            let without = (1.0 - self.share).ln() + self.log_chance_of_others(size as f64);
            let larger = with_first.max(without);
            n as f64 * (larger + ((with_first - larger).exp() + (without - larger).exp()).ln())
        };
        sample.class_sizes.iter().map(log_chance).sum::<f64>() - sample.n_classes * self.chance_of_some().ln()
    }
}

/// The parameters of Pitman's sampling formula.
struct Pitman {
    alpha: f64,
    theta: f64,
}

impl Pitman {
    /// The part of the likelihood that depends on the sizes of classes, and on no theta.
    fn log_within(alpha: f64, sample: &Sample<'_>) -> f64 {
        let of_size = |&(size, n): &(u64, u64)| n as f64 * log_rising(1.0 - alpha, (size - 1) as f64);
        sample.class_sizes.iter().map(of_size).sum()
    }

    fn log_likelihood(&self, sample: &Sample<'_>, within: f64) -> f64 {
        let Pitman { alpha, theta } = *self;
        let more = sample.n_classes - 1.0;
        let of_classes = more * alpha.ln() + log_rising(theta / alpha + 1.0, more);
        of_classes - log_rising(theta + 1.0, sample.n_persons - 1.0) + within
    }
}

/// The logarithm of `x (x + 1) ... (x + n - 1)`.
fn log_rising(x: f64, n: f64) -> f64 {
    // Stirling's series is exact to the last digits from here on. Its large terms are subtracted by hand, so that nothing cancels.
    const LARGE: f64 = 24.0;
    let (mut x, mut n, mut sum) = (x, n, 0.0);
    while n > 0.0 && x < LARGE {
        sum += x.ln();
        (x, n) = (x + 1.0, n - 1.0);
    }
    if n <= 0.0 {
        return sum;
    }
    let rest = |x: f64| 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    sum + (x + n - 0.5) * (n / x).ln_1p() + n * x.ln() - n + rest(x + n) - rest(x)
}

/// Where a function is largest: at the best of evenly spread points, and then by golden sections around it.
fn most_likely(of: impl Fn(f64) -> f64, (low, high): (f64, f64)) -> f64 {
    const N_POINTS: u32 = 32;
    let at = |position: u32| low + (high - low) * f64::from(position) / f64::from(N_POINTS);
    let points = (0..=N_POINTS).map(|position| (position, of(at(position))));
    let (best, _) = points.max_by(|one, other| one.1.total_cmp(&other.1)).expect("there are points");
    let (mut low, mut high) = (at(best.saturating_sub(1)), at((best + 1).min(N_POINTS)));
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    for _ in 0..60 {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if of(left) < of(right) { low = left } else { high = right }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(class_sizes: &[(u64, u64)], n_population: u64, model: PopulationModel) -> f64 {
        let risk = PopulationRisk::of(class_sizes, n_population).unwrap();
        risk.alone.iter().find(|(of, _)| *of == model).unwrap().1
    }

    fn is_near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
    }

    #[test]
    fn poisson_by_hand() {
        // Half is sampled: a class of one has one person more in the mean, so it is single with chance 1/e.
        is_near(alone(&[(1, 4), (2, 3)], 20, PopulationModel::Poisson), 8.0 * (-1f64).exp(), 1e-9);
        let sample = Sample::new(&[(1, 4), (2, 3)], 20).unwrap();
        // The mean of 1 / (1 + X) is (1 - exp(-m)) / m.
        is_near(sample.journalist_risk(1), 1.0 - (-1f64).exp(), 1e-12);
        // The mean of 1 / (2 + X) is (m - 1 + exp(-m)) / m^2.
        is_near(sample.journalist_risk(2), (1.0 + (-2f64).exp()) / 4.0, 1e-12);
        let rare = Sample::new(&[(1, 10)], 1_000_000).unwrap();
        let mean: f64 = 99_999.0;
        is_near(rare.journalist_risk(1), 1.0 / mean, 1e-12);
    }

    #[test]
    fn zayatz_by_hand() {
        // One class of 1 and one of 2 in 3 of 6 persons. A single one of the population is drawn with chance 1/2; of a pair one is
        // drawn in C(2,1) C(4,2) = 12 of C(6,3) = 20 samples. Bayes: (1/2 1/2) / (1/2 1/2 + 1/2 12/20) = 5/11, and 5/11 of
        // one single over the share of 1/2 are 10/11 singles.
        is_near(alone(&[(1, 1), (2, 1)], 6, PopulationModel::Zayatz), 10.0 / 11.0, 1e-12);
    }

    #[test]
    fn the_slide_negative_binomial_finds_the_population_that_it_describes() {
        for (shape, mean, share) in [(0.5, 3.0, 0.2), (2.0, 8.0, 0.05), (0.1, 4.0, 0.5)] {
            let (shape, mean, share): (f64, f64, f64) = (shape, mean, share);
            let n_classes = 1e9;
            // The sample that is expected, summed from the definitions: a class of 1 + y persons has a binomial number in it.
            let mut expected = vec![0.0; 500];
            let mut of_population = n_classes * (shape / (shape + mean)).powf(shape);
            let n_alone = of_population;
            for y in 0..1_000u32 {
                let n = f64::from(y) + 1.0;
                let mut chance = (1.0 - share).powf(n);
                for (drawn, expected) in expected.iter_mut().enumerate() {
                    *expected += of_population * chance;
                    chance *= (n - drawn as f64) / (drawn as f64 + 1.0) * share / (1.0 - share);
                }
                of_population *= (shape + f64::from(y)) / n * mean / (shape + mean);
            }
            let sizes: Vec<(u64, u64)> = (1..500).map(|size| (size as u64, expected[size].round() as u64)).collect();
            let sizes: Vec<(u64, u64)> = sizes.into_iter().filter(|(_, n)| *n > 0).collect();
            let n_persons: u64 = sizes.iter().map(|(size, n)| size * n).sum();
            let found =
                alone(&sizes, (n_persons as f64 / share).round() as u64, PopulationModel::SlideNegativeBinomial);
            is_near(found / n_alone, 1.0, 0.01);
        }
    }

    #[test]
    fn no_parameters_of_pitman_are_likelier_than_those_that_are_found() {
        for sizes in [&[(1, 30), (2, 11), (3, 4), (9, 1)][..], &[(1, 5), (4, 8), (30, 2)], &[(1, 3), (2, 40)]] {
            let sample = Sample::new(sizes, 10_000).unwrap();
            // The formula, product by product.
            let log_likelihood = |alpha: f64, theta: f64| {
                let n_classes = sample.n_classes as u64;
                let mut sum: f64 = (1..n_classes).map(|l| (theta + l as f64 * alpha).ln()).sum();
                sum -= (1..sample.n_persons as u64).map(|i| (theta + i as f64).ln()).sum::<f64>();
                for &(size, n) in sizes {
                    sum += n as f64 * (1..size).map(|i| (i as f64 - alpha).ln()).sum::<f64>();
                }
                sum
            };
            let likeliest = |alpha: f64, theta: f64| {
                let model = Pitman { alpha, theta };
                let found = model.log_likelihood(&sample, Pitman::log_within(alpha, &sample));
                is_near(found, log_likelihood(alpha, theta), 1e-6);
                found
            };
            let best_of = |alpha: f64| {
                let log = most_likely(|log| likeliest(alpha, log.exp() - alpha), (-18.0, 20.0));
                likeliest(alpha, log.exp() - alpha)
            };
            let found = best_of(most_likely(best_of, (1e-6, 1.0 - 1e-6)));
            for alpha in 1..50 {
                for theta in 1..60 {
                    let (alpha, theta) = (f64::from(alpha) / 50.0, 1.3f64.powi(theta - 10));
                    assert!(log_likelihood(alpha, theta) <= found + 1e-6, "{alpha} {theta}");
                }
            }
        }
    }

    #[test]
    fn expected_singles_of_pitman_by_hand() {
        // Of two persons, the second is of another class with chance (theta + alpha) / (theta + 1).
        let (theta, alpha) = (0.7f64, 0.3f64);
        let both = 2.0 * (log_rising(theta + alpha, 1.0) - log_rising(theta + 1.0, 1.0)).exp();
        is_near(both, 2.0 * (theta + alpha) / (theta + 1.0), 1e-12);
    }

    #[test]
    fn rising_products_are_exact() {
        for (x, n) in [(0.3, 5u32), (23.5, 100), (1e6, 3), (0.001, 40)] {
            let by_hand: f64 = (0..n).map(|i| (x + f64::from(i)).ln()).sum();
            is_near(log_rising(x, f64::from(n)), by_hand, 1e-9 * by_hand.abs().max(1.0));
        }
    }

    #[test]
    fn a_sample_of_everybody_needs_no_model_and_one_that_is_too_large_has_none() {
        for model in PopulationModel::ALL {
            assert_eq!(alone(&[(1, 3), (2, 2)], 7, model), 3.0);
            assert_eq!(alone(&[(2, 3)], 700, model), 0.0);
            assert_eq!(PopulationRisk::of(&[(1, 3), (2, 2)], 7).unwrap().average_risk, 5.0 / 7.0);
            let mostly_single = alone(&[(1, 100)], 100_000, model);
            assert!((0.0..=100_000.0).contains(&mostly_single), "{model:?}: {mostly_single}");
        }
        assert_eq!(PopulationRisk::of(&[(1, 3)], 2), None);
        assert_eq!(PopulationRisk::of(&[], 2), None);
    }
}
