"""What notebooks show."""

import html.parser
import xml.etree.ElementTree

import pandas
import pytest

import kohort


class Balance(html.parser.HTMLParser):
    """Fails where tags are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("rect", "line", "progress"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag


def tags(page):
    parser = Balance()
    parser.feed(page)
    assert parser.open == []
    return parser.tags


def charts(page):
    """The charts of a page, each read as XML."""
    return [
        xml.etree.ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>") for part in page.split("<svg")[1:]
    ]


def test_a_release_shows_what_was_asked_reached_and_lost(people, roles):
    release = kohort.anonymize(people, **roles)
    page = release._repr_html_()
    assert {"table", "svg"} <= set(tags(page))
    titles = [chart.find("{http://www.w3.org/2000/svg}title").text for chart in charts(page)]
    assert titles == ["Risk before and after", "Loss per column", "Class sizes"]
    assert "disease: l" in page and f"{100 * release.loss['lm']:.3g} %" in page
    assert "CANARY" not in page


def test_a_release_for_audiences_shows_what_each_of_them_was_promised():
    from test_jobs import drivers

    release = kohort.anonymize(
        drivers(),
        k=9,
        quasi={"age": None, "car": None, "job": kohort.Column(sensitive_to="insurer", requirements=kohort.l_diversity(2))},
        sensitive="disease",
        audiences={"insurer": kohort.Audience(["age", "car"], k=4), "hr": kohort.Audience(["age", "job"], k=5)},
        collusion={"both": {"audiences": ["insurer", "hr"], "k": 2, "sensitive": {"disease": kohort.l_diversity(2)}}},
    )
    page = release._repr_html_()
    reached = release.manifest["achieved"]
    # Nobody was promised the k that stands at the top of the spec.
    assert "smallest class" not in page and "k = 9" not in repr(release)
    for asked, k in (("audience insurer", reached["audiences"]["insurer"]), ("insurer and hr together", reached["coalitions"]["both"]["k"])):
        assert f"<td>k for {asked}</td>" in page and f'<td class="n">{k}</td>' in page
    assert "<td>insurer, job: l</td>" in page and "<td>insurer and hr together, disease: l</td>" in page
    assert [chart.find("{http://www.w3.org/2000/svg}title").text for chart in charts(page)][0].startswith("Risk")
    assert f"insurer: k = 4 asked, {reached['audiences']['insurer']} reached" in repr(release)


def test_a_persons_own_k_and_presence_are_shown():
    from test_command import JOBS, people

    tables = {"people": people(), "register": people(200).select(["id", "age", "job"])}
    assert "each person&#x27;s own k" in JOBS["a_persons_own_k"](tables.get).anonymize()._repr_html_()
    assert "share of private persons in a class" in JOBS["a_register"](tables.get).anonymize()._repr_html_()


def test_a_check_shows_measures_and_sizes(people):
    page = kohort.check(people, quasi="age", sensitive={"disease": kohort.l_diversity(2)}, k=2)._repr_html_()
    assert "not met" in page and "unique persons" in page
    assert len(charts(page)) == 1
    tags(page)


def test_numbers_and_the_names_of_their_columns_stand_at_the_right(people):
    page = kohort.check(people, quasi="age", sensitive="disease")._repr_html_()
    assert '<th>measure</th><th class="n">counted</th>' in page
    assert '<td>highest risk</td><td class="n">100 %</td>' in page
    assert '<th>worst class of</th><th class="n">l</th>' in page and "<td>disease</td>" in page


def test_a_hierarchy_shows_its_tree():
    page = kohort.hierarchy({"*": {"health": ["nurse", "doctor"], "<b>": ["cook"]}})._repr_html_()
    assert tags(page).count("details") == 3
    assert "nurse" in page and "&lt;b&gt;" in page and "<b>" not in page
    assert "ranges of 5, 10" in kohort.steps(5, 10)._repr_html_()
    tags(kohort.steps(5, 10).tree(range(1000))._repr_html_())
    with pytest.raises(TypeError, match="values"):
        kohort.steps(5, 10).tree()


def test_a_hierarchy_is_shown_wherever_it_comes_from(tmp_path):
    (tmp_path / "edges.csv").write_text("nurse;health\nhealth;*\n")
    assert kohort.hierarchy_file(tmp_path / "edges.csv", edges=True).tree().rows() == [("nurse", "health", "*")]
    frame = pandas.DataFrame({"job": ["nurse", "cook"], "field": pandas.array(["health", None], dtype="string"), "all": ["*", "*"]})
    assert kohort.hierarchy(frame).tree().rows() == [("nurse", "health", "*"), ("cook", "*")]
    assert kohort.steps(5).tree(pandas.array([1, None, 7], dtype="Int64")).rows() == [("1", "[0,4]", "*"), ("7", "[5,9]", "*")]
    odd = kohort.hierarchy([['a;"b"', "x,y", "*"], ["", "x,y", "*"]]).tree()
    assert kohort.hierarchy_file(_written(tmp_path, odd.to_csv())).tree().rows() == odd.rows()
    with pytest.raises(kohort.InputError, match="line break"):
        kohort.hierarchy({"two\nlines": "*"})


def _written(folder, text):
    (folder / "hierarchy.csv").write_text(text)
    return folder / "hierarchy.csv"


def test_a_wrong_hierarchy_says_what_is_wrong_with_it():
    with pytest.raises(kohort.InputError):
        kohort.hierarchy([["a", "x", "*"], ["b", "x", "other"]]).tree()


def test_other_results_show_tables(people, roles, tmp_path):
    release = kohort.anonymize(people, **roles)
    release.write(tmp_path / "out")
    for shown in (
        kohort.verify(tmp_path / "out"),
        kohort.suggest(people),
        kohort.audit([release], audiences={"reader": ["age"]}, k=99),
    ):
        assert "table" in tags(shown._repr_html_())


def test_the_tutorial_runs(tmp_path):
    import nbclient
    import nbformat
    from conftest import REPOSITORY

    notebook = nbformat.read(REPOSITORY / "python" / "examples" / "clinic.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(REPOSITORY)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("<svg" in output.get("data", {}).get("text/html", "") for output in outputs)


def test_a_bar_is_updated_in_place_and_removed_when_a_call_ends():
    import nbclient
    import nbformat

    cells = [
        "import kohort\n"
        "from kohort import _progress\n"
        "_progress._PATIENCE_SECONDS = 0\n"
        "found = kohort.check('examples/clinic/patients.csv', quasi='birth')",
        "context = _progress.reporting(None)\n"
        "bar = context.__enter__()\n"
        "bar('reading', 1, 4)\n"
        "bar('reading', 1, 2)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    nbclient.NotebookClient(notebook, timeout=600).execute()
    outputs = [[output["data"]["text/html"] for output in cell.outputs] for cell in notebook.cells]
    # Each bar is one output. That of the finished call is empty.
    assert outputs == [[""], ['<div>reading <progress value="50" max="100"></progress> 50 %</div>']]
