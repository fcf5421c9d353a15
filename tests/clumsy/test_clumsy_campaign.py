"""The campaign is large enough, and would notice a command that damages what is on the desk."""

from pathlib import Path

import clumsy_bench
import clumsy_others
import clumsy_train
import pytest
from clumsy_campaign import Desk, done, message, refused, run_case

ALL = [*clumsy_train.CASES, *clumsy_bench.CASES, *clumsy_others.CASES, *clumsy_others.READ_ONLY]


@pytest.fixture
def small_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    (tmp_path / "desk" / "photos").mkdir(parents=True)
    (tmp_path / "desk" / "photos" / "simplex.png").write_text("a holiday")
    monkeypatch.chdir(tmp_path / "desk")
    return Desk(tmp_path / "desk", tmp_path / "pristine")


def test_there_are_more_than_161_different_commands() -> None:
    commands = {case.command for case in ALL}
    assert len(commands) == len(ALL) > 161


def test_a_foreign_file_that_is_replaced_is_noticed_and_brought_back(small_desk: Desk) -> None:
    with pytest.raises(AssertionError, match="changed"):
        run_case(done("plot simplex 1 2 3 --out photos/simplex.png"), small_desk)
    assert Path("photos/simplex.png").read_text() == "a holiday"


def test_a_folder_that_is_left_behind_is_noticed(small_desk: Desk) -> None:
    with pytest.raises(AssertionError, match="changed"):
        run_case(done("plot simplex 1 2 3 --out other/a.png"), small_desk)
    assert not Path("other").exists()


@pytest.mark.parametrize(
    "case",
    [refused("--version", ""), done("sore"), refused("sore", "Did you mean 'bench'?")],
    ids=["a result", "a refusal", "another message"],
)
def test_another_end_is_noticed(case, small_desk: Desk) -> None:
    with pytest.raises(AssertionError):
        run_case(case, small_desk)


def test_the_message_is_what_stands_in_the_box() -> None:
    boxed = "Usage: dpn\nTry 'dpn --help'\n╭─ Error ─╮\n│ No such │\n│ option  │\n╰─────────╯\n"
    assert message(boxed) == "No such option"
    assert message("Error: Too\nlong.") == "Error: Too long."
