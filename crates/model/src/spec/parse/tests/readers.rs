//! Audiences, registers and earlier releases: what readers may know beside the release.

use super::*;

#[test]
fn audiences_make_their_columns_quasi() {
    let text = "k = 5\n\
                [tables.a]\nfile = \"a.csv\"\ncolumns = { job = \"quasi\", ward = \"plain\", rest = \"quasi\" }\n\
                [audiences.hr]\nquasi = [\"job\", \"age\", \"ward\", \"age\"]\nk = 0\n\
                [audiences.none]\n[audiences.nobody]\nquasi = []\n";
    assert_eq!(
        problems(text),
        "line 4: tables.a.columns.rest: the column is quasi, but no audience knows it\n  \
         add it to the audiences that could know it, or give it another role\n\
         line 6: audiences.hr.quasi: column 'ward' is plain, not quasi\n  \
         give it role \"quasi\", or take it out of the audience\n\
         line 6: audiences.hr.quasi: 'age' is listed twice\n  \
         keep one of the two\n\
         line 7: audiences.hr.k: must be a whole number of at least 1, not 0\n\
         line 8: audiences.none: 'quasi' is missing\n  \
         for example quasi = [\"age\", \"postcode\"]\n\
         line 10: audiences.nobody.quasi: the audience knows no column, so there is nothing to protect from it\n  \
         name the columns it could know, or leave the audience out\n"
    );
    let spec = Spec::parse(
        "k = 5\n[tables.a]\nfile = \"a.csv\"\ncolumns = { ward = \"plain\" }\n[audiences.hr]\nquasi = [\"age\"]",
    )
    .unwrap();
    assert_eq!(spec.tables[0].columns[1].role, Role::Quasi);
}

#[test]
fn unmatched_persons_are_doubted_unless_the_spec_or_a_key_says_otherwise() {
    let text = |register: &str, of_voters: &str| {
        format!(
            "k = 5\n[tables.a]\nfile = \"a.csv\"\nperson = \"id\"\ncolumns = {{ id = \"key\", x = \"quasi\" }}\n\
             [registers.voters]\nfile = \"voters.csv\"\n{of_voters}\n[register]\n{register}\n"
        )
    };
    let spec = |register: &str, of_voters: &str| Spec::parse(&text(register, of_voters)).unwrap();
    assert_eq!(spec("", "").unmatched(), Unmatched::Doubt);
    assert_eq!(spec("unmatched = \"doubt\"", "").unmatched(), Unmatched::Doubt);
    assert_eq!(spec("unmatched = \"count\"", "").unmatched(), Unmatched::Count);
    assert_eq!(spec("", "key = \"no\"").unmatched(), Unmatched::Count);
    assert_eq!(
        problems(&text("unmatched = \"count\"", "key = \"no\"")),
        "line 10: register.unmatched: applies to registers without a key only, because a key tells who is in the register\n  \
         take unmatched out\n"
    );
}

#[test]
fn registers_with_a_key_need_persons() {
    let text = "k = 5\norder = \"input\"\n\
                [tables.a]\nfile = \"a.csv\"\ncolumns = { age = \"quasi\" }\n\
                [registers.voters]\nfile = \"v.csv\"\nkey = \"no\"\ncolumns = { agee = \"AGE\" }\ndate = 12:00:00\nsha256 = \"12\"\n\
                [registers.taxes]\n\
                [register]\nmethod = \"refined\"\n";
    assert_eq!(
        problems(text),
        "line 2: order: \"input\" would show which rows come from the register\n  \
         take order out, or set order = \"sorted\"\n\
         line 6: registers: a register with a key needs a table that names its persons\n  \
         add for example person = \"patient_id\" to the table; or take key out, so that rows are joined by their quasi values\n\
         line 6: registers: some registers have a key and some have none, so nobody can tell who is in both\n  \
         give each of them a key, or none\n\
         line 9: registers.voters.columns.agee: no table gives column 'agee' a role\n  \
         did you mean 'age'?\n\
         line 10: registers.voters.date: must be a date such as 2026-01-01, found a time\n\
         line 11: registers.voters.sha256: must be 64 hexadecimal digits, not 2 characters\n\
         line 12: registers.taxes: 'file' is missing\n  \
         for example file = \"voters.csv\"\n\
         line 14: register.method: must be auto, refine or direct, not 'refined'\n  \
         did you mean 'refine'?\n"
    );
}

#[test]
fn earlier_releases_are_one_folder_or_several() {
    let spec = |previous: &str, registers: &str| {
        format!(
            "k = 5\nprevious = {previous}\n[tables.a]\nfile = \"a.csv\"\ncolumns = {{ x = \"quasi\" }}\n{registers}"
        )
    };
    let voters = "[registers.voters]\nfile = \"voters.csv\"\n";
    let read = |previous: &str| Spec::parse(&spec(previous, voters)).unwrap().previous;
    assert_eq!(read("\"old\""), [PathBuf::from("old")]);
    assert_eq!(read("[\"older\", \"old\"]"), [PathBuf::from("older"), PathBuf::from("old")]);
    assert_eq!(
        problems(&spec("\"old\"", "")),
        "line 2: previous: applies to registers, but there are none\n  \
         add for example [registers.voters] with file and key\n"
    );
    assert_eq!(problems(&spec("5", voters)), "line 2: previous: must be a list of texts, found a whole number\n");
}

/// A spec of two audiences, with `more` after the columns and `tail` at the end.
fn for_two(more: &str, tail: &str) -> String {
    format!(
        "k = 5\n[tables.a]\nfile = \"a.csv\"\n[tables.a.columns]\nage = \"quasi\"\nill = \"sensitive\"\n{more}\
         [audiences.hr]\nquasi = [\"age\", \"job\"]\n[audiences.insurer]\nquasi = [\"age\", \"car\"]\n{tail}"
    )
}

#[test]
fn coalitions_ask_whatever_audiences_ask() {
    let spec = Spec::parse(&for_two(
        "wish = \"person_k\"\ncar = { role = \"quasi\", sensitive_to = [\"hr\"], l = 2, t = 0.5 }\n",
        "[collusion]\nk = 2\nperson_k = true\nsensitive = { ill = { l = 3, beta = 1 } }\n\
         [collusion.both]\naudiences = [\"hr\", \"insurer\"]\nsensitive.ill = { t = 0.3, distance = \"ordered\" }\n",
    ))
    .unwrap();
    let audiences = spec.audiences_of(&spec.tables[0]).unwrap();
    let column = |name: &str| name.to_owned();
    let hidden = [
        Requirement::DistinctL { column: column("car"), l: 2 },
        Requirement::TCloseness { column: column("car"), t: 0.5, distance: Distance::Equal },
    ];
    let own_k = Requirement::PersonK { column: column("wish") };
    assert_eq!(audiences.each[0].requirements, [&[Requirement::K(5), own_k.clone()][..], &hidden].concat());
    assert_eq!(audiences.each[1].requirements, [Requirement::K(5), own_k.clone()]);
    let of_all = [
        Requirement::K(2),
        own_k,
        Requirement::DistinctL { column: column("ill"), l: 3 },
        Requirement::Beta { column: column("ill"), beta: 1.0 },
    ];
    let of_both = [Requirement::TCloseness { column: column("ill"), t: 0.3, distance: Distance::Ordered }];
    let names: Vec<&str> = audiences.coalitions.iter().map(Coalition::word).collect();
    assert_eq!(names, ["all", "both"]);
    assert_eq!(
        (audiences.coalitions[0].requirements.as_slice(), audiences.coalitions[1].requirements.as_slice()),
        (&of_all[..], &of_both[..])
    );
    assert_eq!(audiences.coalitions[0].members, audiences.coalitions[1].members);
}

#[test]
fn settings_of_what_audiences_must_not_learn_are_checked() {
    let more = "car = { role = \"quasi\", sensitive_to = [\"insurer\", \"hrr\"], alpha = 0.5 }\n";
    let tail = "[collusion.all]\naudiences = [\"hr\"]\n[collusion.x]\naudiences = [\"hr\", \"insurer\"]\n\
                person_k = true\nsensitive = { car = { l = 2 }, ill = {}, il = { l = 2 } }\n";
    assert_eq!(
        problems(&for_two(more, tail)),
        "line 7: tables.a.columns.car.alpha: alpha is not defined for a quasi column, whose cells may be generalized\n  \
         ask for l, or for t with distance \"equal\"\n\
         line 7: tables.a.columns.car.sensitive_to: there is no requirement\n  for example l = 2\n\
         line 7: tables.a.columns.car.sensitive_to: there is no audience 'hrr'\n  did you mean 'hr'?\n\
         line 7: tables.a.columns.car.sensitive_to: audience 'insurer' knows column 'car', so the column can't be kept from the audience\n  \
         take the audience out, or the column out of what the audience knows\n\
         line 12: collusion.all: 'all' is the name of all audiences together\n  \
         say what all must not learn in [collusion] itself, or choose another name\n\
         line 12: collusion.all: there is no requirement\n  for example k = 2\n\
         line 13: collusion.all.audiences: a coalition has at least two audiences\n  \
         name two audiences or more, for example audiences = [\"insurer\", \"hr\"]\n\
         line 16: collusion.x.person_k: no column is person_k, so nobody has a k of their own\n  take person_k out\n\
         line 17: collusion.x.sensitive.car: audience 'insurer' knows column 'car', so the column can't be kept from the audience\n  \
         take the audience out, or the column out of what the audience knows\n\
         line 17: collusion.x.sensitive.ill: there is no requirement\n  for example l = 2\n\
         line 17: collusion.x.sensitive.il: no table gives column 'il' a role\n  did you mean 'ill'?\n"
    );
}

#[test]
fn rows_are_not_left_out_to_make_classes_of_audiences_smaller() {
    let text = for_two("", "").replace("k = 5\n", "k = 5\nmax_suppressed = 0.1\nleftovers = \"suppress\"\n");
    assert_eq!(
        problems(&text),
        "line 3: leftovers: \"suppress\" is not available with audiences\n  \
         take leftovers out; with max_suppressed alone, only persons who fit into no class are left out\n"
    );
}

#[test]
fn settings_without_what_they_apply_to_are_refused() {
    assert_eq!(
        problems(
            "k = 5\ndelta_presence = [0.5, 0.1]\n[tables.a]\nfile = \"a.csv\"\ncolumns = { x = \"plain\" }\n\
             [register]\n[audiences]\n[collusion]\n"
        ),
        "line 2: delta_presence: applies to registers, but there are none\n  \
         add for example [registers.voters] with file and key\n\
         line 2: delta_presence: must be [least, most] with 0 <= least <= most <= 1, not 0.1\n\
         line 6: register: applies to registers, but there are none\n  \
         add for example [registers.voters] with file and key\n\
         line 8: collusion: applies to audiences, but there are none\n  \
         add for example [audiences.insurer] with quasi = [\"age\"]\n\
         no column is quasi, so nothing would be protected\n  \
         give role \"quasi\" to every column that others could know about a person, such as age or postcode\n"
    );
}
