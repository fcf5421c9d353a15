"""Tables for people: numbers stay whole, however narrow the terminal is."""

import pytest

from dpn_plugin.cli.output import print_table

LONG = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"
NUMBERS = ["98.12", "100.00", "86.91 ± 3.43", "-1.234e-05", "1,234", "97 %", "0.5432", "12.345"]
HEADS = ["Near-OOD AUROC", "Far-OOD AUROC", "mutual_information", "p_ood", "n", "share", "a", "b"]


@pytest.mark.parametrize("width", [40, 80, 100, 250])
@pytest.mark.parametrize("count", [3, 8])
def test_numbers_are_never_broken(width: int, count: int, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    columns, numbers = ["backbone", "method", "detector", *HEADS[:count]], NUMBERS[:count]
    rows = [[LONG, "deep-ensemble", "mahalanobis-odin", *numbers], ["a", "oe", "gen", *numbers]]
    print_table("The leaderboard", columns, rows)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    for number in numbers:
        assert printed.count(number) == 2, number
    assert printed.count("The leaderboard") == 1


def test_a_wide_terminal_shows_one_part_with_whole_names(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    print_table("t", ["image", "mutual_information"], [[LONG, "0.5"]])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["t"],
        ["image", "mutual_information"],
        [LONG, "0.5"],
    ]


def test_text_is_folded_and_the_first_column_is_not(monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_table("t", ["name", "summary"], [[LONG, "word " * 40]])
    assert LONG in capsys.readouterr().out


def test_an_empty_table_has_its_headings(capsys) -> None:
    print_table("t", ["name", "value"], [])
    assert "name" in capsys.readouterr().out
