//! The people of the invented country Vallmar: where they live, what they do, what they fall ill with.
//!
//! Weights are made up, but keep what makes real data hard: crowded cities beside villages, rare occupations, and
//! diagnoses that follow age and sex.

/// The number of stages of life, for weights by age.
pub(super) const N_STAGES: usize = 4;

/// The stage of life at an age: child, young, middle-aged or old.
pub(super) fn stage(age: u32) -> usize {
    match age {
        0..=17 => 0,
        18..=39 => 1,
        40..=64 => 2,
        _ => 3,
    }
}

/// Patients per five years of age, from 0 on; the last ones are 95 to 99.
pub(super) const AGES: [u32; 20] = [34, 20, 17, 22, 30, 36, 40, 41, 42, 46, 54, 62, 70, 78, 84, 80, 66, 42, 18, 5];

/// A town: the first three digits of its postcodes, how many delivery areas it has, and how many patients it sends.
pub(super) struct Town {
    pub(super) prefix: &'static str,
    pub(super) n_areas: u32,
    pub(super) weight: u32,
}

const fn town(prefix: &'static str, n_areas: u32, weight: u32) -> Town {
    Town { prefix, n_areas, weight }
}

/// The first digit of a postcode is its province, the first two are its district.
pub(super) const TOWNS: [Town; 26] = [
    // Province 0, the coast.
    town("010", 24, 190),
    town("011", 9, 60),
    town("014", 6, 32),
    town("027", 4, 14),
    town("028", 3, 9),
    town("042", 5, 22),
    // Province 1, the capital, where the clinic is.
    town("100", 40, 410),
    town("101", 36, 370),
    town("102", 30, 280),
    town("105", 18, 150),
    town("113", 12, 96),
    town("114", 10, 70),
    town("129", 6, 38),
    // Province 2, the river.
    town("200", 20, 130),
    town("203", 8, 50),
    town("215", 6, 30),
    town("216", 5, 24),
    town("238", 3, 8),
    // Province 3, the hills.
    town("300", 10, 62),
    town("304", 5, 20),
    town("331", 4, 12),
    town("352", 2, 5),
    // Province 4, the north.
    town("400", 8, 34),
    town("417", 3, 9),
    town("460", 2, 4),
    town("481", 2, 3),
];

/// An occupation, its parent in the hierarchy, and how many women and men of working age have it.
pub(super) struct Occupation {
    pub(super) name: &'static str,
    pub(super) group: &'static str,
    pub(super) sector: &'static str,
    pub(super) weights: [u32; 2],
}

const fn job(name: &'static str, group: &'static str, sector: &'static str, weights: [u32; 2]) -> Occupation {
    Occupation { name, group, sector, weights }
}

/// The occupations of people of working age.
pub(super) const OCCUPATIONS: [Occupation; 36] = [
    job("nurse", "care", "services", [60, 12]),
    job("midwife", "care", "services", [6, 0]),
    job("physician", "care", "services", [14, 14]),
    job("dentist", "care", "services", [4, 4]),
    job("carer", "care", "services", [46, 10]),
    job("primary teacher", "education", "services", [40, 8]),
    job("secondary teacher", "education", "services", [24, 20]),
    job("lecturer", "education", "services", [6, 8]),
    job("sales assistant", "trade", "services", [72, 34]),
    job("shop owner", "trade", "services", [12, 18]),
    job("waiter", "hospitality", "services", [26, 16]),
    job("cook", "hospitality", "services", [18, 26]),
    job("hairdresser", "hospitality", "services", [18, 3]),
    job("cleaner", "hospitality", "services", [44, 12]),
    job("bookkeeper", "office", "administration", [34, 14]),
    job("clerk", "office", "administration", [70, 34]),
    job("secretary", "office", "administration", [32, 2]),
    job("bank teller", "finance", "administration", [16, 12]),
    job("insurance agent", "finance", "administration", [10, 14]),
    job("civil servant", "public service", "administration", [34, 32]),
    job("police officer", "public service", "administration", [7, 20]),
    job("firefighter", "public service", "administration", [1, 9]),
    job("judge", "public service", "administration", [2, 2]),
    job("electrician", "construction", "industry", [2, 40]),
    job("plumber", "construction", "industry", [1, 28]),
    job("bricklayer", "construction", "industry", [0, 26]),
    job("carpenter", "construction", "industry", [2, 24]),
    job("machinist", "manufacturing", "industry", [6, 44]),
    job("assembler", "manufacturing", "industry", [22, 38]),
    job("lorry driver", "transport", "industry", [3, 42]),
    job("train driver", "transport", "industry", [1, 8]),
    job("warehouse worker", "transport", "industry", [16, 44]),
    job("programmer", "engineering", "industry", [12, 40]),
    job("civil engineer", "engineering", "industry", [8, 22]),
    job("farmer", "agriculture", "land and sea", [8, 18]),
    job("fisher", "agriculture", "land and sea", [0, 6]),
];

/// The occupations of everybody else, and their parent in the hierarchy.
pub(super) const WITHOUT_WORK: [(&str, &str); 6] = [
    ("infant", "growing up"),
    ("pupil", "growing up"),
    ("student", "growing up"),
    ("homemaker", "not employed"),
    ("looking for work", "not employed"),
    ("retired", "not employed"),
];

/// A diagnosis, its chapter, and how often it is made by stage of life, and for women and men (in percent).
pub(super) struct Diagnosis {
    pub(super) name: &'static str,
    pub(super) chapter: &'static str,
    pub(super) by_stage: [u32; N_STAGES],
    pub(super) by_sex: [u32; 2],
}

const fn illness(name: &'static str, chapter: &'static str, by_stage: [u32; N_STAGES], by_sex: [u32; 2]) -> Diagnosis {
    Diagnosis { name, chapter, by_stage, by_sex }
}

/// The diagnoses of the clinic's patients.
pub(super) const DIAGNOSES: [Diagnosis; 34] = [
    illness("angina", "heart and vessels", [0, 2, 26, 40], [90, 110]),
    illness("heart attack", "heart and vessels", [0, 1, 18, 32], [70, 130]),
    illness("heart failure", "heart and vessels", [1, 2, 12, 60], [100, 100]),
    illness("high blood pressure", "heart and vessels", [0, 6, 40, 44], [100, 100]),
    illness("stroke", "heart and vessels", [0, 2, 12, 42], [100, 100]),
    illness("asthma", "breathing", [40, 20, 12, 10], [105, 95]),
    illness("chronic bronchitis", "breathing", [1, 4, 22, 34], [90, 110]),
    illness("influenza", "breathing", [24, 14, 10, 20], [100, 100]),
    illness("pneumonia", "breathing", [22, 8, 12, 40], [95, 105]),
    illness("appendicitis", "digestion", [26, 22, 8, 4], [95, 105]),
    illness("gallstones", "digestion", [1, 12, 24, 20], [130, 70]),
    illness("gastritis", "digestion", [8, 22, 20, 14], [100, 100]),
    illness("inflamed bowel", "digestion", [6, 18, 12, 6], [100, 100]),
    illness("cirrhosis", "digestion", [0, 3, 14, 8], [60, 140]),
    illness("breast cancer", "tumours", [0, 8, 30, 26], [199, 1]),
    illness("bowel cancer", "tumours", [0, 2, 16, 28], [95, 105]),
    illness("lung cancer", "tumours", [0, 1, 16, 22], [80, 120]),
    illness("leukaemia", "tumours", [7, 4, 5, 8], [95, 105]),
    illness("prostate cancer", "tumours", [0, 0, 12, 28], [0, 200]),
    illness("anxiety", "mind", [14, 36, 24, 8], [125, 75]),
    illness("depression", "mind", [12, 40, 36, 16], [120, 80]),
    illness("alcohol dependence", "mind", [1, 22, 30, 8], [60, 140]),
    illness("schizophrenia", "mind", [1, 12, 7, 2], [90, 110]),
    illness("dementia", "mind", [0, 0, 2, 38], [110, 90]),
    illness("concussion", "injuries", [34, 20, 8, 10], [85, 115]),
    illness("broken wrist", "injuries", [38, 16, 14, 18], [110, 90]),
    illness("hip fracture", "injuries", [1, 2, 8, 46], [130, 70]),
    illness("burn", "injuries", [16, 12, 8, 4], [80, 120]),
    illness("type 1 diabetes", "metabolism", [16, 12, 8, 4], [100, 100]),
    illness("type 2 diabetes", "metabolism", [1, 8, 34, 46], [95, 105]),
    illness("thyroid disorder", "metabolism", [4, 18, 24, 14], [150, 50]),
    illness("hepatitis", "infections", [3, 12, 10, 4], [85, 115]),
    illness("HIV", "infections", [0, 8, 6, 1], [60, 140]),
    illness("tuberculosis", "infections", [1, 4, 3, 3], [90, 110]),
];

/// Wings of the clinic: a patient lies where a bed is free.
pub(super) const WARDS: [&str; 6] = ["north 1", "north 2", "north 3", "south 1", "south 2", "south 3"];

/// Syllables that made-up names begin with.
pub(super) const FIRST_SYLLABLES: [&str; 18] = [
    "an", "bel", "cor", "dal", "er", "fen", "gil", "hal", "ing", "jor", "kel", "lin", "mar", "nor", "ol", "ran", "sel",
    "tor",
];

/// Syllables that made-up names end with.
pub(super) const LAST_SYLLABLES: [&str; 18] = [
    "a", "beth", "da", "den", "dis", "fin", "gard", "ian", "ka", "lo", "mund", "na", "nor", "rik", "sa", "stan", "vik",
    "wen",
];
