"""Malicious or mistyped suite files give a plan or a message."""

import tomllib
from importlib.resources import files as resources
from pathlib import Path

import pytest
from hostile import NAMES, dpn, files, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpn_plugin.bench import Plan, Request, make_plan

SUITES = {
    path.name: path.read_text("utf-8")
    for path in resources("benchmark_suites").iterdir()
    if path.name.endswith(".toml")
}
SMALL = """title = "T"
[in_domain]
source = "synthetic:gaussians"
[far.a]
source = "synthetic:gaussians-ood"
split = "test"
[train]
backbone = "mlp_synthetic"
recipe = "synthetic"
"""
VALUES = st.one_of(
    st.sampled_from(
        ["1", "-1", "0", "1.5", "nan", "inf", "true", "[]", "{}", '""', "1979-05-27", "[[1], 2]"]
    ),
    st.integers(-(10**20), 10**20).map(str),
    st.text(max_size=12).map(lambda text: "'" + text.replace("'", "").replace("\n", " ") + "'"),
)
KEYS = sorted(
    {"seeds", "methods", "detectors", "input_size", "near", "far", "outliers", "train", "title",
     "in_domain", "in_domain_test", "source", "classes", "limit", "options", "split", "backbone",
     "recipe", "stem", "epochs", "lr", "augmentation", "schedule", "fine_tune", "notes", "hold_out",
     "image_size", "batch_size", "paper_task", "optimizer", "__class__", "model_config"}
)  # fmt: skip
SETTINGS = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def plan_of(text: str | bytes, folder: Path) -> Plan | str:
    path = folder / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    before = files(folder)
    request = Request(str(path), folder / "out", methods=("baseline",))
    found = outcome(make_plan, request)
    assert files(folder) == before, "a plan writes nothing"
    return found


def test_the_small_suite_has_a_plan(tmp_path: Path) -> None:
    assert isinstance(plan_of(SMALL, tmp_path), Plan)


@SETTINGS
@given(place=st.integers(0, 40), key=st.sampled_from(KEYS), value=VALUES)
def test_any_value_of_any_key_gives_a_plan_or_a_message(
    place: int, key: str, value: str, tmp_path: Path
) -> None:
    lines = SMALL.splitlines()
    lines.insert(place % (len(lines) + 1), f"{key} = {value}")
    plan_of("\n".join(lines), tmp_path)


@SETTINGS
@given(data=st.data())
def test_changed_suites_give_a_plan_or_a_message(data: st.DataObject, tmp_path: Path) -> None:
    text = SUITES[data.draw(st.sampled_from(sorted(SUITES)))]
    start = data.draw(st.integers(0, len(text)))
    end = min(len(text), start + data.draw(st.integers(0, 30)))
    part = data.draw(st.text(max_size=8) | VALUES)
    plan_of(text[:start] + part + text[end:], tmp_path)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=100))
def test_any_bytes_give_a_plan_or_a_message(content: bytes, tmp_path: Path) -> None:
    plan_of(content, tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_not_paths_or_markup(name: str, tmp_path: Path) -> None:
    quoted = '"' + "".join(f"\\U{ord(character):08x}" for character in name) + '"'
    assert tomllib.loads(f"a = {quoted}")["a"] == name
    for old in ('"T"', "far.a", '"synthetic:gaussians"', '"mlp_synthetic"', '"synthetic"\n'):
        new = f"far.{quoted}" if old == "far.a" else quoted
        found = plan_of(SMALL.replace(old, new), tmp_path)
        for run in found.runs if isinstance(found, Plan) else ():
            assert run.folder.resolve().is_relative_to((tmp_path / "out").resolve())
    (tmp_path / "mine.toml").write_text(SMALL.replace('"T"', quoted), "utf-8")
    shown = dpn("bench", tmp_path / "mine.toml", "--dry-run", "--methods", "baseline")
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title", "a = " + "[" * 20_000 + "\ntitle", "nested too deep"),
        ('"T"', '"T"\nseeds = 1000000000000000000000', "seeds: Input should be less than"),
        ('"T"', '"T"\ninput_size = [3, 1000000, 1000000]', "input_size: "),
        ("mlp_synthetic", "resnet18.nonsense", "Unknown backbone"),
        ("mlp_synthetic", "resnet18./../../../../x", "Unknown backbone"),
        ("mlp_synthetic", "local-dir:/tmp", "Unknown backbone"),
        ("mlp_synthetic", "hf-hub:timm/resnet18", "Unknown backbone"),
        ("[train]", "[train]\nimage_size = 1000000000", "image_size"),
    ],
)
def test_values_that_are_too_large_or_unknown_are_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    assert message in plan_of(SMALL.replace(old, new), tmp_path)


@pytest.mark.parametrize("place", ["source", "optimizer", "recipe", "methods", "detectors"])
def test_a_suite_imports_no_code(place: str, tmp_path: Path, marker: Path, monkeypatch) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')\ndef load(*a, **k): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for value in ("evil:load", "evil", "evil.load", "__import__('evil')"):
        line = {
            "source": f'[outliers]\nsource = "{value}"',
            "optimizer": f'[near]\n[train.optimizer]\nx = "{value}"',
            "recipe": f'[outliers]\nsource = "synthetic:x"\noptions = {{ x = "{value}" }}',
            "methods": "",
            "detectors": "",
        }[place]
        head = f'{place} = ["{value}"]\n' if not line else ""
        (tmp_path / "mine.toml").write_text(head + SMALL + line + "\n")
        assert dpn("bench", tmp_path / "mine.toml", "--out", tmp_path / "out").exit_code == 2
    assert not marker.exists()
