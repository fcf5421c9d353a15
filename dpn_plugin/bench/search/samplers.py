"""What a search tries next: random values, a grid, or what Optuna proposes."""

from importlib import import_module
from itertools import islice
from typing import Any

from dpn_plugin.bench.search.record import SearchRecord
from dpn_plugin.bench.search.space import Range, Space, Value, draw_values, grid_values
from dpn_plugin.errors import UserError


def next_values(record: SearchRecord) -> dict[str, Value] | None:
    """
    Return the values of the next trial; ``None`` if there is none left.

    They depend on the record alone, so that an interrupted search goes on as if it had not been.

    :param record: the trials so far
    :raises UserError: if Optuna is needed and not installed
    """
    settings, number = record.settings, len(record.trials)
    if number >= settings.trials:
        return None
    if number == 0:
        return {}  # the settings of the suite
    if settings.sampler == "grid":
        return next(islice(grid_values(settings.space, settings.seed), number - 1, None), None)
    if settings.sampler == "tpe":
        return _proposal(record)
    return draw_values(settings.space, settings.seed, number - 1, settings.trials - 1)


def _proposal(record: SearchRecord) -> dict[str, Value]:
    """Return what Optuna's tree-structured Parzen estimator proposes after the trials so far."""
    optuna = import_optuna()
    settings = record.settings
    distributions = {key: _distribution(optuna, each) for key, each in settings.space.items()}
    # another seed after every trial, because a sampler starts anew here
    sampler = optuna.samplers.TPESampler(seed=1000 * settings.seed + len(record.trials))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for trial in record.trials:
        if trial.values:  # those of the suite may lie outside of the ranges
            study.add_trial(
                optuna.trial.create_trial(
                    params=trial.values, distributions=distributions, value=record.value(trial)
                )
            )
    found: dict[str, Value] = study.ask(distributions).params
    return found


def _distribution(optuna: Any, space: Space | Any) -> Any:
    if not isinstance(space, Range):
        return optuna.distributions.CategoricalDistribution(space)
    if space.whole:
        ends = round(space.low), round(space.high)
        return optuna.distributions.IntDistribution(*ends, log=space.log)
    return optuna.distributions.FloatDistribution(space.low, space.high, log=space.log)


def import_optuna() -> Any:
    """
    Return the module, with its messages switched off.

    :raises UserError: if it is not installed
    """
    try:
        optuna = import_module("optuna")
    except ImportError as error:
        raise UserError(
            'sampler = "tpe" needs Optuna: pip install "dpn-plugin[search]". "random" and "grid" '
            "need nothing."
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
