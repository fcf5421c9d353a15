"""What the lint checks of this folder share: parsed modules, and how problems are reported."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

PACKAGE = "dpn_plugin"
ROOT = Path(__file__).parents[2]


def modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the path below ``root`` and the syntax tree of every module of the package."""
    for path in sorted((root / PACKAGE).rglob("*.py")):
        yield path.relative_to(root), ast.parse(path.read_text(encoding="utf-8"), str(path))


def main(problems: Callable[[Path], list[str]]) -> None:
    """Print the problems of the tree named on the command line; exit with 1 if there are any."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    found = problems(root)
    print("\n".join(found) or "No problems.")
    sys.exit(bool(found))
