"""
Arbitrary command lines end with a result, or with exit code 2 and a message, and write nothing
outside the working directory.
"""

from pathlib import Path

import pytest
from hostile import NAMES, dpn, files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpn_plugin.cli.commands import COMMANDS

BIG = 10**30
LONG = "9" * 5000
TRAIN = [
    "train", "--method", "baseline", "--backbone", "mlp_synthetic", "--epochs", "1",
    "--limit", "30", "--device", "cpu",
]  # fmt: skip
POINTS = ["--in-domain", "synthetic:gaussians"]
#: without NUL, which no operating system accepts in an argument
WORDS = st.one_of(
    st.sampled_from(
        [*NAMES, "", "-", "--", "--json", "*", "[", "nan", "-1", str(BIG), "~nobody/x"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=15),
)
# without --out, which may name any folder
OPTIONS = st.sampled_from(
    ["--device", "--seeds", "--methods", "--detectors", "--backbone", "--limit", "--epochs",
     "--run", "--detector", "--only-eval", "--data-root", "--workers", "--seed", "--set", "-o",
     "--in-domain", "--outliers", "--recipe", "--stem", "--lr", "--image-size", "--batch-size"]
)  # fmt: skip
SCHEMES = ("npz", "folder", "synthetic", "sklearn", "pytorch_ood", "openood", "torchvision", "")
#: `check` imports the module that it is given, and `doctor` may end with 1
NAMED = sorted(COMMANDS.keys() - {"check", "doctor"})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent of the working directory, the only place where files may be created."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(NAMED), words=st.lists(WORDS | OPTIONS, max_size=6))
def test_arbitrary_arguments(name: str, words: list[str], here: Path) -> None:
    # a benchmark of a built-in suite would run for minutes
    dry = ["--dry-run"] if name == "bench" else []
    dpn(name, *dry, *words)
    assert {path.split("/")[0] for path in files(here)} == {"here"}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(option=OPTIONS, word=WORDS)
def test_arbitrary_values_of_the_options_of_train(option: str, word: str, here: Path) -> None:
    given = [option, word] if option == "-o" else [f"{option}={word}"]
    dpn(*TRAIN, *POINTS, "--out", "out", "--force", *given)
    assert {path.split("/")[0] for path in files(here)} == {"here"}


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    scheme=st.sampled_from(SCHEMES),
    argument=WORDS,
    key=st.sampled_from(["split", "classes", "limit", "size", "seed", "patches", "root", ""]),
    value=WORDS,
)  # fmt: skip
def test_arbitrary_sources(scheme: str, argument: str, key: str, value: str, here: Path) -> None:
    source = f"{scheme}:{argument}?{key}={value}"
    done = dpn(*TRAIN, f"--in-domain={source}", "--out", "out", "--force")
    assert done.exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        ["--seed", BIG],
        ["--seed", 2**63],
        ["--workers", BIG],
        ["--workers", 10**12],
        ["--image-size", 10**9],
        ["--set", "a=1", "--set", "a.b=2"],
        ["--set", f"epochs={LONG}"],
        ["--device", "cuda:99"],
        ["--out", "x" * 300],
        ["--out", "/dev/null"],
    ],
    ids=lambda words: " ".join(map(str, words))[:40],
)
def test_numbers_and_names_out_of_range(words: list[object], here: Path) -> None:
    assert dpn(*TRAIN, *POINTS, "--out", "out", *words, "--force").exit_code == 2


@pytest.mark.parametrize(
    "source",
    [
        "npz:" + "a" * 5000,
        "npz:~nobody/x.npz",
        "folder:~nobody/x",
        f"synthetic:gaussians?classes=0-{LONG}",
        f"synthetic:gaussians?limit={LONG}",
        f"pytorch_ood:UniformNoise/{LONG}",
        "pytorch_ood:UniformNoise/999999999",
        "pytorch_ood:UniformNoise/5?size=5",
        "pytorch_ood:GaussianNoise/5?scale=-1",
        "torchvision:FakeData?size=1000000000000",
        "torchvision:FakeData?size=-5",
        "openood:../../etc/passwd",
    ],
    ids=lambda source: source[:40],
)
def test_sources_out_of_range(source: str, here: Path) -> None:
    assert dpn(*TRAIN, "--in-domain", source, "--out", "out").exit_code == 2
    assert files(here / "here") == set()


@pytest.mark.parametrize("words", [["--seeds", BIG], ["--seeds", "100000000"]])
def test_a_plan_of_too_many_runs(words: list[object], here: Path) -> None:
    done = dpn("bench", "synthetic", "--dry-run", *words)
    assert (done.exit_code, "at most 1000" in done.output) == (2, True)


def test_a_suite_whose_name_is_too_long(here: Path) -> None:
    assert dpn("bench", "x" * 5000 + ".toml", "--dry-run").exit_code == 2
