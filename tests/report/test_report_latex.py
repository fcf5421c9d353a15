"""The LaTeX tables compile with the packages that their first line names."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from paper_bench import complete_bench

from dpn_plugin.report import write_report

LATEX = shutil.which("pdflatex")


@pytest.mark.skipif(LATEX is None, reason="needs pdflatex")
def test_all_tables_compile(tmp_path: Path) -> None:
    write_report([complete_bench(tmp_path / "c10", "c10")], tmp_path / "out")
    paths = sorted((tmp_path / "out" / "tables").rglob("*.tex"))
    assert {path.parent.name for path in paths} == {"tables", "paper"}
    for path in paths:
        needed = re.match(r"% needs (\\usepackage{[a-z,]+})\n", path.read_text())
        assert needed, f"{path.name} does not say which packages it needs"
        document = (
            rf"\documentclass{{article}}{needed[1]}"
            rf"\begin{{document}}\input{{{path}}}\end{{document}}"
        )
        command = [str(LATEX), "-interaction=nonstopmode", "-halt-on-error", document]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{path.name}: {ended.stdout[-600:]}"
