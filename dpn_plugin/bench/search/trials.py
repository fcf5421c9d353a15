"""Trials of a search: train with other hyper-parameters, and look at held-out data alone."""

import shutil
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch

from dpn_plugin._distributed import Processes
from dpn_plugin._records import write_record
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.search.method_search import MethodSearch
from dpn_plugin.bench.search.record import SearchRecord, TrialRecord
from dpn_plugin.bench.search.samplers import next_values
from dpn_plugin.bench.search.space import Value
from dpn_plugin.data import Batches, Samples
from dpn_plugin.errors import CannotWrite, UserError
from dpn_plugin.evaluation import held_out_figures
from dpn_plugin.runs import Predictor, TrainedRun
from dpn_plugin.training import TrainingData, TrainingMonitor, train

_BATCH = 256
Figures = dict[str, Any]


class TrialMonitor(TrainingMonitor, Protocol):
    """Receives progress events of one trial."""

    def ended(self) -> None:
        """The trial is done."""


class Trials:
    """
    The trials of one search.

    A trial gets what ``load_data`` returns, which is the run's own training data with the part that
    is held out of it: no test sample can be reached from here.

    :param search: what to do
    :param load_data: returns the training data of a run
    :param processes: this process and the others that train together
    :param start_trial: gets the run of a trial that starts; returns what receives its steps
    """

    def __init__(
        self,
        search: MethodSearch,
        load_data: Callable[[PlannedRun], TrainingData],
        processes: Processes,
        start_trial: Callable[[PlannedRun], TrialMonitor],
    ) -> None:
        self.search, self.load_data, self.processes = search, load_data, processes
        self.start_trial = start_trial

    def carry_out(self) -> SearchRecord:
        """
        Carry out the trials that are missing, and return the record of all.

        The record is written after every trial: an interrupted search goes on where it stopped.

        :raises UserError: if no trial can be trained, or the record cannot be written
        """
        record: SearchRecord = self.processes.broadcast(self.search.start_record)
        while not record.finished:
            record = self._next(record)
            self.processes.broadcast(partial(self._write, record))
        return record

    def _next(self, record: SearchRecord) -> SearchRecord:
        """Return the record with one trial more, or as finished if there is none."""
        values = self.processes.broadcast(partial(next_values, record))
        if values is not None:
            trial, data = self._trial(record, values)
            return record.model_copy(update={"data": data, "trials": [*record.trials, trial]})
        if all(each.accuracy is None for each in record.trials):
            reason = record.trials[0].reason
            raise UserError(f"No trial of {record.method} could be trained: {reason}")
        return record.model_copy(update={"finished": True})

    def _write(self, record: SearchRecord) -> None:
        write_record(self.search.path, record)
        # the networks of trials are not needed any more
        shutil.rmtree(self.search.path.with_suffix(""), ignore_errors=True)

    def _trial(
        self, record: SearchRecord, values: dict[str, Value]
    ) -> tuple[TrialRecord, dict[str, str]]:
        """Train one trial and return its figures, and the hashes of its data."""
        start, number = time.perf_counter(), len(record.trials)
        run = self.search.trial(number, values)
        data = self.load_data(run)
        fingerprints = data.compute_fingerprints()
        if record.data and record.data != fingerprints:
            raise UserError(
                f"The data is not what the search of {record.method} started with, though it has "
                "the same name. Use another --out, or restore the data."
            )
        monitor = self.start_trial(run)
        try:
            found = TrialRecord(values=values, **self._figures(run, data, monitor))
        except CannotWrite:
            raise
        except UserError as error:  # a training that diverged, for example
            found = TrialRecord(values=values, reason=str(error))
        finally:
            monitor.ended()
        seconds = round(time.perf_counter() - start, 3)
        return found.model_copy(update={"seconds": seconds}), fingerprints

    def _figures(self, run: PlannedRun, data: TrainingData, monitor: TrialMonitor) -> Figures:
        device = self.processes.device
        trained = train(
            run.config, run.folder, device=str(device), is_ours=True, monitor=monitor, data=data
        )
        figures: Figures = self.processes.broadcast(partial(_figures, trained, data, device))
        return figures


def _figures(run: TrainedRun, data: TrainingData, device: torch.device) -> Figures:
    """Return the figures on held-out samples: in-domain ones and, if there are any, outliers."""
    predictor = Predictor(run).to(device)
    parts = (data.features or data).held_out_parts
    outputs = [_outputs(predictor, run, part, device, data.features is not None) for part in parts]
    return held_out_figures(run.method, *outputs)


def _outputs(
    predictor: Predictor, run: TrainedRun, samples: Samples, device: torch.device, points: bool
) -> dict[str, np.ndarray]:
    found: dict[str, list[np.ndarray]] = {}
    for x, y in Batches(samples, _BATCH, shuffle=False).epoch(0):
        with torch.inference_mode():
            if points:
                outputs = predictor.outputs_of_features(x.to(device))
            else:
                outputs = predictor.outputs(run.transform(x.to(device)))
        for name, tensor in {**outputs, "labels": y}.items():
            found.setdefault(name, []).append(tensor.cpu().numpy())
    return {name: np.concatenate(each) for name, each in found.items()}
