"""``run.json``: its model refuses what cannot be, and a folder belongs to one configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from tiny_runs import points

from dpn_plugin._distributed import Processes
from dpn_plugin._records import FORMAT, DamagedRecord, NewerFormat, json_hash
from dpn_plugin.data import Transform
from dpn_plugin.errors import UserError
from dpn_plugin.runs import (
    CHECKPOINTS,
    LARGEST_IMAGE,
    PACKAGES,
    RUN_FILE,
    EpochRecord,
    NetworkRecord,
    RunRecord,
    describe_changes,
    load_or_create_record,
    read_run_record,
    remove_leftovers,
    training_code,
    write_run_record,
)

HERE = Processes(torch.device("cpu"))
EPOCH = {
    "epoch": 1,
    "lr": 0.1,
    "loss": 1.0,
    "loss_in": 0.75,
    "loss_out": 0.25,
    "accuracy": 0.5,
    "held_out_loss": 1.5,
    "held_out_accuracy": 0.25,
    "seconds": 2.0,
    "images_per_second": 100.0,
}


def network(*losses: float) -> NetworkRecord:
    epochs = [EPOCH | {"epoch": i, "held_out_loss": loss} for i, loss in enumerate(losses, 1)]
    return NetworkRecord(sha256="0" * 64, identity="1" * 64, seconds=2.0, history=epochs)


@pytest.fixture
def record() -> RunRecord:
    return RunRecord(
        config=points(),
        versions={"torch": "2"},
        device="cpu",
        processes=1,
        classes=["a", "b"],
        input_shape=(2,),
        samples={"train": 10},
        data={"train": "0" * 64},
        transform=Transform((0.0, 0.0), (1.0, 1.0)),
        networks={"classifier": network(2.0, 1.0)},
        files={"held_out.safetensors": "0" * 64},
        finished=True,
    )


def write_with_hash(folder: Path, content: dict[str, Any]) -> None:
    text = json.dumps({"sha256": json_hash(content), **content})
    (folder / RUN_FILE).write_text(text, "utf-8")


def test_a_record_is_read_as_it_was_written(record: RunRecord, tmp_path: Path) -> None:
    write_run_record(tmp_path, record)
    assert read_run_record(tmp_path) == record


def test_a_folder_without_a_record_has_none(tmp_path: Path) -> None:
    assert read_run_record(tmp_path) is None
    assert read_run_record(tmp_path / "missing") is None


def test_the_selected_epoch_has_the_lowest_held_out_loss() -> None:
    assert network(2.0, 1.0, 3.0).selected.epoch == 2


@pytest.mark.parametrize("key", EPOCH)
def test_an_epoch_needs_every_figure(key: str) -> None:
    with pytest.raises(ValidationError, match=key):
        EpochRecord.model_validate({name: EPOCH[name] for name in EPOCH if name != key})
    with pytest.raises(ValidationError, match=key):
        EpochRecord.model_validate(EPOCH | {key: "many"})


def test_an_epoch_has_no_other_figures_and_does_not_change() -> None:
    with pytest.raises(ValidationError, match="extra"):
        EpochRecord.model_validate(EPOCH | {"f1": 1.0})
    with pytest.raises(ValidationError, match="frozen"):
        EpochRecord.model_validate(EPOCH).loss = 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {}}, "config.backbone is missing"),
        ({"config": {**points().model_dump(mode="json"), "seed": -1}}, "config.seed: .*, not -1"),
        ({"networks": {"../x": network(1.0).model_dump()}}, "networks.*String should match"),
        ({"networks": {"classifier": {}}}, "networks.classifier.sha256 is missing"),
        (
            {"networks": {"classifier": network(1.0).model_dump() | {"history": [{"epoch": 1}]}}},
            "networks.classifier.history.0.lr is missing",
        ),
        ({"files": {"/etc/passwd": "0"}}, "files.*String should match"),
        ({"classes": []}, "a finished run needs classes, input_shape and transform"),
        ({"input_shape": []}, "a finished run needs classes, input_shape and transform"),
        ({"transform": None}, "a finished run needs classes, input_shape and transform"),
        ({"input_shape": [0]}, "input_shape.0: .* greater than or equal to 1, not 0"),
        ({"input_shape": [3, 10**9, 8]}, "input_shape.1: .* less than or equal to 8192, not 100"),
        ({"input_shape": [1, 2, 3, 4]}, "input_shape: .* at most 3 items"),
        (
            {"transform": {"mean": [0.5], "std": [1.0], "size": [10**9, 10**9]}},
            f"images have at most {LARGEST_IMAGE} pixels along a side",
        ),
        ({"finished": "perhaps"}, "finished: Input should be a valid boolean"),
        ({"weights": 1}, "Unknown key 'weights'"),
    ],
    ids=str,
)
def test_records_that_cannot_be_are_refused(
    changes: dict, message: str, record: RunRecord, tmp_path: Path
) -> None:
    write_with_hash(tmp_path, record.model_dump(mode="json") | changes)
    with pytest.raises(DamagedRecord, match=f"run.json is damaged: .*{message}"):
        read_run_record(tmp_path)


def test_a_run_that_is_not_finished_needs_no_data(record: RunRecord, tmp_path: Path) -> None:
    started = RunRecord(config=record.config, versions={}, device="cpu", processes=1)
    write_run_record(tmp_path, started)
    assert read_run_record(tmp_path) == started
    assert not started.finished


def test_a_changed_file_is_refused(record: RunRecord, tmp_path: Path) -> None:
    write_run_record(tmp_path, record)
    path = tmp_path / RUN_FILE
    path.write_text(path.read_text("utf-8").replace('"processes": 1', '"processes": 2'), "utf-8")
    with pytest.raises(DamagedRecord, match="content does not match its hash"):
        read_run_record(tmp_path)


@pytest.mark.parametrize(
    ("format", "error", "message"),
    [
        (FORMAT + 1, NewerFormat, rf"has format {FORMAT + 1}, newer than {FORMAT}: update dpn-plu"),
        (
            FORMAT - 1,
            DamagedRecord,
            rf"has format {FORMAT - 1}; this version reads format {FORMAT}",
        ),
        (None, DamagedRecord, "has no format"),
    ],
)
def test_other_formats_are_refused(
    format: object, error: type, message: str, record: RunRecord, tmp_path: Path
) -> None:
    write_with_hash(tmp_path, record.model_dump(mode="json") | {"format": format})
    with pytest.raises(error, match=message):
        read_run_record(tmp_path)
    with pytest.raises(UserError, match=f"{message}.* Use another folder, or --force"):
        load_or_create_record(tmp_path, record.config, HERE, force=False)


def test_a_new_record_has_versions_and_no_networks(tmp_path: Path) -> None:
    found = load_or_create_record(tmp_path / "new", points(), HERE, force=False)
    assert found.config == points()
    assert found.versions.keys() == set(PACKAGES)
    assert (found.device, found.processes) == ("cpu", 1)
    assert (found.networks, found.finished) == ({}, False)
    assert not (tmp_path / "new").exists()


def test_the_record_of_the_same_configuration_is_continued(
    record: RunRecord, tmp_path: Path
) -> None:
    record = record.model_copy(update={"code": training_code(points())})
    write_run_record(tmp_path, record)
    for force in (False, True):
        assert load_or_create_record(tmp_path, points(), HERE, force=force) == record


def test_another_configuration_is_replaced_if_forced(record: RunRecord, tmp_path: Path) -> None:
    write_run_record(tmp_path, record)
    message = r"holds another run \(method: 'dpn-minus' -> 'oe'\)\. Use another folder, or --force"
    with pytest.raises(UserError, match=message):
        load_or_create_record(tmp_path, points("oe"), HERE, force=False)
    found = load_or_create_record(tmp_path, points("oe"), HERE, force=True)
    assert (found.config, found.networks) == (points("oe"), {})
    assert read_run_record(tmp_path) == record


def test_changes_are_listed_by_key_and_cut_after_four() -> None:
    assert describe_changes(points(), points()) == ""
    assert describe_changes(points(lr=1.0), points(lr=2.0)) == "recipe.lr: 2.0 -> 1.0"
    wanted = points("oe", epochs=1, lr=1.0, gamma=2.0, batch_size=9, seed=4)
    found = describe_changes(wanted, points(lr=2.0))
    assert found.startswith("method: 'dpn-minus' -> 'oe'; recipe.batch_size: 32 -> 9; recipe.")
    assert found.endswith(" and 2 more")


def write_files(folder: Path) -> None:
    (folder / CHECKPOINTS / "classifier").mkdir(parents=True)
    for name in ("classifier", "held_out", "other"):
        (folder / f"{name}.safetensors").write_text("weights")
    (folder / ".history.csv.0123abcd.tmp").write_text("half")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_files_of_a_replaced_run_are_removed(record: RunRecord, tmp_path: Path) -> None:
    write_run_record(tmp_path, record)
    write_files(tmp_path)
    remove_leftovers(tmp_path, record.model_copy(update={"config": points("oe")}))
    assert names(tmp_path) == {RUN_FILE, "other.safetensors"}


def test_the_files_of_the_same_run_stay(record: RunRecord, tmp_path: Path) -> None:
    write_run_record(tmp_path, record)
    write_files(tmp_path)
    remove_leftovers(tmp_path, record)
    kept = {f"{name}.safetensors" for name in ("classifier", "held_out", "other")}
    assert names(tmp_path) == {RUN_FILE, CHECKPOINTS, *kept}


def test_checkpoints_beside_a_damaged_record_are_removed(record: RunRecord, tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / RUN_FILE).write_text("{")
    remove_leftovers(tmp_path, record)
    assert names(tmp_path) == {RUN_FILE, "classifier.safetensors", "other.safetensors"}


def test_a_folder_that_does_not_exist_is_not_created(record: RunRecord, tmp_path: Path) -> None:
    remove_leftovers(tmp_path / "missing", record)
    assert names(tmp_path) == set()


def test_a_folder_with_files_of_others_is_refused(tmp_path: Path) -> None:
    for name in ("history.csv", "curves.png", "a.png", "b.png"):
        (tmp_path / name).write_text("precious")
    message = (
        r"is not empty and holds no run of dpn-plugin, but a.png, b.png, curves.png and 1 more"
    )
    with pytest.raises(UserError, match=message):
        load_or_create_record(tmp_path, points(), HERE, force=False)
    found = load_or_create_record(tmp_path, points(), HERE, force=False, is_ours=True)
    assert found.networks == {}


def test_changed_code_of_a_plugin_starts_a_new_run(record: RunRecord, tmp_path: Path) -> None:
    code = {"loss focal": "focal 1.0 abc", **training_code(points())}
    write_run_record(tmp_path, record.model_copy(update={"code": code}))
    write_files(tmp_path)
    with pytest.warns(UserWarning, match=r"The code of loss focal is not that of the run .* again"):
        found = load_or_create_record(tmp_path, points(), HERE, force=False)
    assert (found.code, found.networks) == (training_code(points()), {})
    remove_leftovers(tmp_path, found)
    assert names(tmp_path) == {RUN_FILE, "other.safetensors"}
