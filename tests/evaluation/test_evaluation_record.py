"""The record of an evaluation: any hyper-parameters, and a damaged file counts as missing."""

import json
from pathlib import Path

import numpy as np
import pytest

from dpn_plugin._records import json_hash
from dpn_plugin.evaluation import (
    EVALUATION_FILE,
    DetectorEvaluation,
    EvaluationRecord,
    OutputKeys,
    ResultRow,
    read_evaluation,
)
from dpn_plugin.evaluation.record import Identity, write_evaluation


@pytest.fixture
def record() -> EvaluationRecord:
    return EvaluationRecord(
        identity=Identity(outputs={"in_domain_test": "0" * 64}, versions={"dpn-plugin": "1"}),
        backbone="resnet18",
        method="baseline",
        seed=3,
        data={"in_domain_test": "1" * 64},
        code={},
        outputs=OutputKeys(in_domain_test="0" * 64),
        general=[ResultRow(task="classification", metric="accuracy", value=0.5)],
        warnings=["one"],
        training_seconds=1.5,
        seconds=0.5,
    )


def test_a_record_is_read_as_it_was_written(record: EvaluationRecord, tmp_path: Path) -> None:
    row = ResultRow(task="ood", detector="msp", dataset="far", metric="auroc", value=0.9)
    record.detectors["msp"] = DetectorEvaluation(rows=[row], tuned=True)
    write_evaluation(tmp_path, record)
    found = read_evaluation(tmp_path)
    assert found == record
    assert found.title == "resnet18 baseline seed 3"
    assert list(found.all_rows()) == [*record.general, row]


def test_hyperparameters_of_any_type_can_be_written(
    record: EvaluationRecord, tmp_path: Path
) -> None:
    found = DetectorEvaluation()
    found.hyperparameters = {"k": 5, "t": np.float32(0.5), "path": Path("here")}
    record.detectors["a plugin's"] = found
    write_evaluation(tmp_path, record)
    written = read_evaluation(tmp_path)
    assert written == record
    assert written.detectors["a plugin's"].hyperparameters == {"k": 5, "t": "0.5", "path": "here"}


def test_a_folder_without_a_record_has_no_evaluation(tmp_path: Path, caplog) -> None:
    assert read_evaluation(tmp_path) is None
    assert not caplog.records


def test_a_changed_figure_is_logged_and_counts_as_missing(
    record: EvaluationRecord, tmp_path: Path, caplog
) -> None:
    write_evaluation(tmp_path, record)
    path = tmp_path / EVALUATION_FILE
    path.write_text(path.read_text("utf-8").replace('"value": 0.5', '"value": 0.6'), "utf-8")
    assert read_evaluation(tmp_path) is None
    message = f"{path} is damaged: its content does not match its hash. The run is evaluated again."
    assert caplog.messages == [message]


@pytest.mark.parametrize("changes", [{"seed": "x"}, {"rows": []}, {"general": [{"value": 1}]}])
def test_another_shape_counts_as_missing(
    changes: dict, record: EvaluationRecord, tmp_path: Path, caplog
) -> None:
    content = record.model_dump(mode="json") | changes
    (tmp_path / EVALUATION_FILE).write_text(json.dumps({"sha256": json_hash(content), **content}))
    assert read_evaluation(tmp_path) is None
    assert "is damaged: " in caplog.text


@pytest.mark.parametrize(
    ("known", "tune", "expected"),
    [
        ({}, False, ["msp"]),
        ({"msp": DetectorEvaluation()}, False, []),
        ({"msp": DetectorEvaluation(reason="not applicable")}, False, []),
        ({"msp": DetectorEvaluation(reason="failed", failed=True)}, False, ["msp"]),
        ({"msp": DetectorEvaluation()}, True, ["msp"]),
        ({"msp": DetectorEvaluation(tuned=True)}, True, []),
        ({"msp": DetectorEvaluation(tuned=True)}, False, ["msp"]),
    ],
)
def test_missing_detectors(
    known: dict, tune: bool, expected: list[str], record: EvaluationRecord
) -> None:
    record.detectors.update(known)
    assert record.missing(["msp"], tune) == expected
