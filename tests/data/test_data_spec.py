import pytest

from dpn_plugin.data import SourceSpec, load
from dpn_plugin.errors import UserError
from dpn_plugin.runs import Recipe, TrainConfig


def test_a_plain_string_is_the_source_alone():
    spec = SourceSpec.parse("npz:a:b.npz")
    assert (spec.scheme, spec.argument) == ("npz", "a:b.npz")
    assert spec == SourceSpec.parse({"source": "npz:a:b.npz"})


def test_a_range_counts_from_its_start():
    spec = SourceSpec.parse({"source": "x:y", "classes": {"from": 10, "first": 5}})
    assert (spec.classes.start, spec.classes.stop) == (10, 15)


def test_a_range_without_first_has_no_end():
    assert SourceSpec.parse({"source": "x:y", "classes": {"from": 170}}).classes.stop is None


@pytest.mark.parametrize("classes", [None, [1, 2], ["a"], {"from": 3}, {"first": 2}])
def test_a_specification_is_the_same_after_writing_and_reading(classes):
    spec = SourceSpec.parse({"source": "x:y", "classes": classes, "options": {"small": True}})
    assert SourceSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.model_dump(mode="json", by_alias=True)["classes"] in (
        classes,
        {"from": 0, "first": 2},
        {"from": 3, "first": None},
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"source": "x:y", "clases": [1]},
            r"^far\.a: Unknown key 'clases'\. Did you mean 'classes'\?$",
        ),
        (
            {"source": "x:y", "classes": {"frm": 1}},
            r"^far\.a\.classes: Unknown key 'frm'\. Did you mean 'from'\?$",
        ),
        ({"source": "x:y", "classes": 3}, "far.a.classes: .*list of numbers or of names.*not 3"),
        ({"source": "x:y", "classes": []}, "far.a.classes: .*list of numbers or of names"),
        ({"source": "x:y", "classes": [1, "a"]}, r"far.a.classes.1: .*integer, not 'a'"),
        ({"source": "x:y", "classes": {"first": 0}}, "far.a.classes.first: .*equal to 1, not 0"),
        ({"source": "x:y", "limit": 0}, "far.a.limit: .*equal to 1, not 0"),
        ({"source": "x:y", "limit": True}, "far.a.limit: .*integer, not True"),
        ({"source": "x:y", "options": {"a": {"b": 1}}}, r"^far.a.options.a: "),
        ({"split": "test"}, "far.a.source is missing"),
        ({"sorce": "x:y"}, r"^far\.a: Unknown key 'sorce'\. Did you mean 'source'\?$"),
        ({"source": "x:y?size=1", "options": 3}, r"^far\.a\.options: .*dictionary"),
        ("MNIST", "far.a.source: .*scheme:argument.* not 'MNIST'"),
        (7, "far.a: .*not 7"),
    ],
)
def test_a_wrong_key_is_named(table, message):
    with pytest.raises(UserError, match=message):
        SourceSpec.parse(table, "far.a")


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("npz:a.npz", {}),
        ("npz:a.npz?split=test&limit=7", {"split": "test", "limit": 7}),
        ("npz:a.npz?classes=0-169", {"classes": {"from": 0, "first": 170}}),
        ("npz:a.npz?classes=170-", {"classes": {"from": 170}}),
        ("npz:a.npz?classes=3,5&limit=7", {"classes": [3, 5], "limit": 7}),
        ("npz:a.npz?classes=T-shirt,3-D", {"classes": ["T-shirt", "3-D"]}),
        (
            "npz:a.npz?small=True&size=8&rate=0.5&kind=x",
            {"options": {"small": True, "size": 8, "rate": 0.5, "kind": "x"}},
        ),
    ],
)
def test_a_source_can_be_written_as_one_text_everywhere(text, table):
    expected = SourceSpec.parse({"source": "npz:a.npz"} | table)
    assert SourceSpec.from_text(text) == expected
    assert SourceSpec.parse(text) == SourceSpec.parse({"source": text}) == expected
    config = TrainConfig(
        backbone="x", method="x", in_domain=text, outliers=text, recipe=Recipe.named("small")
    )
    assert (config.in_domain, config.outliers) == (expected, (expected,))


def test_keys_of_the_text_and_of_the_table_are_joined():
    table = {"source": "a:b?classes=3,5&small=true", "limit": 7, "options": {"size": 8}}
    options = {"small": True, "size": 8}
    expected = {"source": "a:b", "classes": [3, 5], "limit": 7, "options": options}
    assert SourceSpec.parse(table) == SourceSpec.parse(expected)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"source": "a:b?limit=3", "limit": 4}, "limit"),
        ({"source": "a:b?classes=3", "classes": [3]}, "classes"),
        ({"source": "a:b?size=3", "options": {"size": 3}}, "size"),
        ("a:b?limit=3&limit=4", "limit"),
        ("a:b?size=3&size=4", "size"),
    ],
)
def test_a_key_that_is_given_twice_is_refused(value, name):
    with pytest.raises(UserError, match=f"^far.a: '{name}' is given twice. Leave one of them out."):
        SourceSpec.parse(value, "far.a")


@pytest.mark.parametrize("source", ["npz:drawings.npz", "torchvision:MNIST", "sklearn:digits"])
def test_a_misspelt_key_of_a_text_is_named_with_the_nearest(source, drawings):
    for given, right in (("clases=3", "classes"), ("limt=3", "limit"), ("splt=test", "split")):
        with pytest.raises(UserError, match=f"has no option '.*'. Did you mean '{right}'"):
            load(f"{source}?{given}", root=drawings.parent)


def test_load_takes_a_text_with_classes(photos):
    samples = load("folder:photos?classes=cats", root=photos.parent, image_size=(8, 8))
    assert len(samples) == 3


def test_the_lower_of_two_limits_holds():
    assert SourceSpec.from_text("a:b?limit=5", limit=10).limit == 5
    assert SourceSpec.from_text("a:b?limit=50", limit=10).limit == 10
    assert SourceSpec.from_text("a:b", limit=10).limit == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:b?split", "^--outliers: 'split' must read key=value, e.g. 'split=test'.$"),
        ("a:b?classes=5-3", "^classes=5-3: the last class must not be below the first.$"),
        ("a:b?limit=x", "^--outliers.limit: .*integer, not 'x'.$"),
        ("a", "^--outliers.source: .*scheme:argument.* not 'a'"),
    ],
)
def test_a_text_that_is_not_a_source_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        SourceSpec.from_text(text, "--outliers")
