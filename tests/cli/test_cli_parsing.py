"""Lists of names and sizes on the command line."""

import pytest
from typer.testing import CliRunner

from dpn_plugin.cli import app
from dpn_plugin.cli.parsing import byte_count, names
from dpn_plugin.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("knn, vim,", ("knn", "vim")),
        ("knn,fisher(dpn-mi, knn),vim", ("knn", "fisher(dpn-mi, knn)", "vim")),
        ("fisher(a,b),fisher(c,d)", ("fisher(a,b)", "fisher(c,d)")),
        ("a),b", ("a)", "b")),
    ],
)
def test_commas_within_parentheses_belong_to_a_name(text, expected):
    assert names(text) == expected


def test_a_combination_is_planned_by_its_full_name(tmp_path):
    arguments = ["--detectors", "fisher(DPN-MI, energy),knn", "--out", str(tmp_path), "--dry-run"]
    done = CliRunner().invoke(app, ["bench", "synthetic", *arguments])
    assert done.exit_code == 0, done.output
    assert "Detectors: fisher(dpn-mi,energy-based), knn" in done.stdout


def test_a_misspelt_member_is_named_with_the_nearest_match(tmp_path):
    done = CliRunner().invoke(
        app, ["bench", "synthetic", "--detectors", "fisher(dpn-mi,knnn)", "--out", str(tmp_path)]
    )
    assert done.exit_code == 2
    assert "Unknown detector 'knnn'. Did you mean 'knn'" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("512", 512), ("8GB", 8 * 10**9), ("1.5 GiB", 3 * 2**29), ("20m", 20 * 10**6)],
)
def test_sizes_have_the_usual_units(text, expected):
    assert byte_count(text, "--cache-memory") == expected


@pytest.mark.parametrize("text", ["", "much", "-1GB", "8 XB", "1e9"])
def test_other_sizes_are_refused(text):
    with pytest.raises(UserError, match=r"--cache-memory takes a size like 8GB, 512MB or 0, not"):
        byte_count(text, "--cache-memory")
