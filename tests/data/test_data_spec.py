import pytest

from dpn_plugin.data import SourceSpec
from dpn_plugin.errors import UserError


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
def test_a_specification_survives_being_written_and_read(classes):
    spec = SourceSpec.parse({"source": "x:y", "classes": classes, "options": {"small": True}})
    assert SourceSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.model_dump(mode="json", by_alias=True)["classes"] in (
        classes,
        {"from": 0, "first": 2},
        {"from": 3, "first": None},
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"source": "x:y", "clases": [1]}, "far.a.clases is not a key.*Allowed: source, split"),
        ({"source": "x:y", "classes": {"frm": 1}}, "far.a.classes.frm .*Allowed: first, from"),
        ({"source": "x:y", "classes": 3}, "far.a.classes: .*list of numbers or of names.*not 3"),
        ({"source": "x:y", "classes": []}, "far.a.classes: .*list of numbers or of names"),
        ({"source": "x:y", "classes": [1, "a"]}, r"far.a.classes.1: .*integer, not 'a'"),
        ({"source": "x:y", "classes": {"first": 0}}, "far.a.classes.first: .*equal to 1, not 0"),
        ({"source": "x:y", "limit": 0}, "far.a.limit: .*equal to 1, not 0"),
        ({"source": "x:y", "limit": True}, "far.a.limit: .*integer, not True"),
        ({"source": "x:y", "options": {"a": [1]}}, r"^far.a.options.a: "),
        ({"split": "test"}, "far.a.source is missing"),
        ("MNIST", "far.a.source: .*scheme:argument.* not 'MNIST'"),
        (7, "far.a: .*not 7"),
    ],
)
def test_a_wrong_key_is_named(table, words):
    with pytest.raises(UserError, match=words):
        SourceSpec.parse(table, "far.a")
