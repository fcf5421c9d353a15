"""``dpn suite``, and where commands look for data."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpn_plugin.bench import load_suite
from dpn_plugin.cli import app
from dpn_plugin.plugins import registry
from dpn_plugin.runs import open_run


def run(*arguments: object, **environment: str):
    words = list(map(str, arguments))
    return CliRunner().invoke(app, words, prog_name="dpn", env=environment or None)


def test_show_prints_the_suite_file() -> None:
    done = run("suite", "show", "digits")
    assert done.exit_code == 0, done.output
    assert done.stdout == Path(registry.load("suites", "digits")).read_text("utf-8")


@pytest.mark.parametrize("name", registry.list_suites())
def test_a_copy_is_the_same_suite(name: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / "my.toml"
    done = run("suite", "copy", name, path)
    assert done.exit_code == 0, done.output
    assert f"dpn bench {path}" in done.stdout
    assert not done.stderr
    assert load_suite(str(path))[1] == load_suite(name)[1]
    text = path.read_text("utf-8")
    assert text.startswith(f"# A copy of the suite {name!r}. Relative paths")
    assert "DPN_DATA_ROOT" in text


def test_a_copy_says_which_files_it_does_not_find(tmp_path: Path) -> None:
    text = run("suite", "show", "digits").stdout
    text = text.replace("sklearn:photograph/china", "npz:china.npz")
    (tmp_path / "mine.toml").write_text(text, "utf-8")
    (tmp_path / "china.npz").touch()
    done = run(
        "suite", "copy", tmp_path / "mine.toml", tmp_path / "other" / "my.toml", COLUMNS="500"
    )
    assert done.exit_code == 0, done.output
    assert f"npz:china.npz is {tmp_path / 'china.npz'}" in done.stderr
    assert not run("suite", "copy", tmp_path / "mine.toml", tmp_path / "beside.toml").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", "digts"], "Unknown suite 'digts'. Did you mean 'digits'"),
        (["copy", "digts", "my.toml"], "Unknown suite 'digts'. Did you mean 'digits'"),
        (["shwo", "digits"], "Unknown action 'shwo'. Did you mean 'show'"),
        (["copy", "digits"], "dpn suite copy digits my.toml"),
        (["copy", "digits", "mine"], "must end in .toml: mine.toml"),
        (["show", "digits", "my.toml"], "dpn suite copy digits my.toml"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_mistakes_get_one_sentence(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("suite", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_copy_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("mine", "utf-8")
    done = run("suite", "copy", "digits", tmp_path / "my.toml")
    assert done.exit_code == 2
    assert "exists already" in done.stderr
    assert (tmp_path / "my.toml").read_text("utf-8") == "mine"


MNIST = ["--in-domain", "torchvision:MNIST"]
NETWORK = ["--backbone", "mlp_synthetic", "--recipe", "synthetic", "--device", "cpu"]


@pytest.mark.parametrize(
    "command",
    [
        ["train", *NETWORK, "--method", "baseline", *MNIST],
        ["bench", "fashion", "--methods", "baseline"],
    ],
    ids=["train", "bench"],
)
def test_the_data_root_comes_from_the_environment(command: list[str], tmp_path: Path) -> None:
    command = [*command, "--out", str(tmp_path / "out")]
    done = run(*command, DPN_DATA_ROOT=str(tmp_path / "there"))
    assert done.exit_code == 2
    assert f"was not found in {tmp_path / 'there'}" in done.stderr
    done = run(*command, "--data-root", tmp_path / "here", DPN_DATA_ROOT=str(tmp_path / "there"))
    assert f"was not found in {tmp_path / 'here'}" in done.stderr
    assert "DPN_DATA_ROOT" in run(command[0], "--help").stdout


def test_without_the_variable_data_is_in_the_current_folder(tmp_path: Path) -> None:
    done = run("bench", "fashion", "--out", tmp_path / "out", DPN_DATA_ROOT="")
    assert f"was not found in {Path('data').absolute()}" in done.stderr


POINTS = ["--in-domain", "synthetic:gaussians", "--limit", "60", "--epochs", "1"]
OUTLIERS = ["--outliers", "synthetic:gaussians-ood"]


def test_outliers_that_a_method_ignores_are_mentioned(tmp_path: Path) -> None:
    words = ["train", *NETWORK, *POINTS, *OUTLIERS]
    ignored = run(*words, "--method", "baseline", "--out", tmp_path / "baseline")
    assert ignored.exit_code == 0, ignored.output
    message = "The method 'baseline' trains without outliers: synthetic:gaussians-ood is not used."
    assert message in " ".join(ignored.stderr.split())
    assert [each.source for each in open_run(tmp_path / "baseline").config.outliers] == OUTLIERS[1:]
    used = run(*words, "--method", "oe", "--out", tmp_path / "oe")
    assert "is not used" not in used.stderr


def test_outliers_from_the_in_domain_data_are_refused(tmp_path: Path) -> None:
    outliers = ["--outliers", "synthetic:gaussians?split=test"]
    words = ["train", *NETWORK, *POINTS, *outliers, "--method", "oe", "--out", tmp_path / "oe"]
    done = run(*words)
    assert done.exit_code == 2
    assert "come from one data set" in done.stderr


def test_an_absurd_number_of_epochs_is_refused(tmp_path: Path) -> None:
    epochs = ["--epochs", "99999999999999", "--out", str(tmp_path / "out")]
    train = ["train", *NETWORK, *POINTS[:2], "--method", "baseline", *epochs]
    for done in (run(*train), run("bench", "synthetic", *epochs)):
        assert done.exit_code == 2
        assert "epochs: Input should be less than or equal to 100000" in done.stderr
