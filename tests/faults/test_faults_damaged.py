"""Files that were truncated, changed, emptied, removed or swapped."""

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from dpn_process import Dpn
from folders import FIRST, IMAGES_FIRST, SECOND, check_same


def truncated(path: Path, random: Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: random.randrange(1, len(content))])


def flipped(path: Path, random: Random) -> None:
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def emptied(path: Path, random: Random) -> None:
    path.write_bytes(b"")


def removed(path: Path, random: Random) -> None:
    path.unlink()


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


DAMAGES = [truncated, flipped, emptied, removed]
#: every kind of file in the folder of a finished benchmark
FINISHED = [
    "store/*/logits.npy",
    "store/*/scores.npy",
    "store/*/entry.json",
    f"{SECOND}/member-*.safetensors",
    f"{FIRST}/held_out.safetensors",
    f"{FIRST}/run.json",
    f"{FIRST}/evaluation.json",
    f"{FIRST}/history.csv",
    f"{FIRST}/curves.png",
    "results.csv",
    "leaderboard.csv",
    "bench.json",
    "report.html",
    "report.sha256",
    "tables/*.csv",
    "figures/*.png",
]
#: files that only a benchmark of images has
OF_IMAGES = [f"{IMAGES_FIRST}/samples.json"]
#: files that only a benchmark that was killed has
HALF = [
    f"{SECOND}/run.json",
    f"{SECOND}/member-0.safetensors",
    f"{SECOND}/checkpoints/member-1/*/model.safetensors",
    f"{SECOND}/checkpoints/member-1/*/optimizer.pt",
    f"{SECOND}/checkpoints/member-1/*/state.json",
]
#: digits that decide results, and a bit that changes each to another digit
DIGITS = [
    ("finished", FIRST / "run.json", rb'"mean": \[\s*-?(\d)', 0),
    ("finished", FIRST / "evaluation.json", rb'"value": 0\.(\d)', 0),
    ("half", SECOND / "run.json", rb'"sha256": "[a-f]*(\d)', 0),
    ("half", SECOND / "checkpoints/member-1/step-000000016/state.json", rb'"step": 1(\d)', 2),
]
#: pairs of files of the same kind in a finished benchmark
PAIRS = [
    ("store/*", 0, 1),
    ("store/*/logits.npy", 0, 1),
    ("store/*/scores.npy", 0, 1),
    ("store/*/entry.json", 0, 1),
    (f"{SECOND}/member-*.safetensors", 0, 2),
    ("runs/*/*/*/held_out.safetensors", 0, 1),
    ("runs/*/*/*/evaluation.json", 0, 1),
    ("runs/*/*/*/history.csv", 0, 1),
    ("figures/*.*", 0, 1),
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(
    ("state", "pattern"),
    [*(("finished", each) for each in FINISHED), *(("half", each) for each in HALF)],
)
def test_damaged(state, pattern, damage, reference: Dpn, request, copied, record_property) -> None:
    record_property("fault", f"{damage.__name__} file")
    out = copied(request.getfixturevalue(state))
    random = Random(f"{pattern} {damage.__name__}")
    path = random.choice(sorted(out.glob(pattern)))
    record_property("where", f"{state}: {short(path, out)}")
    damage(path, random)
    if pattern.startswith("store"):
        remove_evaluations(out)
    check_recovery(reference, out, record_property)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("pattern", OF_IMAGES)
def test_damaged_in_a_benchmark_of_images(
    pattern, damage, images: Dpn, copied, record_property
) -> None:
    record_property("fault", f"{damage.__name__} file")
    out = copied(images.out)
    random = Random(f"{pattern} {damage.__name__}")
    path = random.choice(sorted(out.glob(pattern)))
    record_property("where", f"images: {short(path, out)}")
    damage(path, random)
    check_recovery(images, out, record_property)


def test_swapped_in_a_benchmark_of_images(images: Dpn, copied, record_property) -> None:
    record_property("fault", "swapped files")
    record_property("where", "images: runs/*/*/*/samples.json")
    out = copied(images.out)
    swap(*sorted(out.glob("runs/*/*/*/samples.json")))
    check_recovery(images, out, record_property)


@pytest.mark.parametrize(("state", "name", "digit", "bit"), DIGITS)
def test_one_digit(
    state, name, digit, bit, reference: Dpn, request, copied, record_property
) -> None:
    record_property("fault", "one digit changed")
    out = copied(request.getfixturevalue(state))
    content = bytearray((out / name).read_bytes())
    found = re.search(digit, content)
    record_property(
        "where", f"{state}: {short(out / name, out)}, {''.join(found[0].decode().split())}"
    )
    content[found.end() - 1] ^= 1 << bit
    (out / name).write_bytes(content)
    check_recovery(reference, out, record_property)


@pytest.mark.parametrize(("pattern", "one", "other"), PAIRS)
def test_swapped(pattern, one, other, reference: Dpn, copied, record_property) -> None:
    record_property("fault", "swapped files")
    record_property("where", f"finished: {pattern}")
    out = copied(reference.out)
    paths = sorted(path for path in out.glob(pattern) if not path.name.startswith("."))
    swap(paths[one], paths[other])
    if pattern.startswith("store"):
        remove_evaluations(out)
    check_recovery(reference, out, record_property)


def test_swapped_records(reference: Dpn, copied, record_property) -> None:
    """Each record is valid, but of another plan, as if the suite file had been changed."""
    record_property("fault", "swapped files")
    record_property("where", "finished: runs/*/*/*/run.json")
    out = copied(reference.out)
    swap(out / FIRST / "run.json", out / SECOND / "run.json")
    dpn = Dpn(reference.suite, out)
    assert dpn.run() == 2
    assert "holds a run of another plan" in dpn.output
    record_property("observed", "exit 2: it holds a run of another plan; nothing was changed")
    swap(out / FIRST / "run.json", out / SECOND / "run.json")
    check_same(out, reference.out)


def test_swapped_checkpoints(reference: Dpn, half: Path, copied, record_property) -> None:
    """Of two networks of one ensemble."""
    record_property("fault", "swapped folders")
    record_property("where", "half: checkpoints of member-1 and member-2")
    out = copied(half)
    folder = out / SECOND / "checkpoints"
    (folder / "member-1").rename(folder / "member-2")
    check_recovery(reference, out, record_property)


def remove_evaluations(out: Path) -> None:
    """Remove all figures; otherwise only the stored outputs of test sets are read."""
    for path in out.rglob("evaluation.json"):
        path.unlink()


def check_recovery(reference: Dpn, out: Path, record_property: Callable[[str, str], None]) -> None:
    again = Dpn(reference.suite, out)
    assert again.run() == 0, again.output
    record_property("observed", f"again: {again.summary}")
    check_same(out, reference.out)


def short(path: Path, out: Path) -> str:
    """Return the end of the path, with the hashes of the store shortened."""
    parts = [part[:8] if len(part) == 64 else part for part in path.relative_to(out).parts]
    return "/".join(parts if len(parts) < 4 else [parts[2], *parts[4:]])
