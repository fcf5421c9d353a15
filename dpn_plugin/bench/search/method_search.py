"""The search of one method: what is planned, what is known, and a run with what was chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ValidationError

from dpn_plugin._records import json_hash
from dpn_plugin.bench.planned_run import PlannedRun
from dpn_plugin.bench.search.record import (
    SearchRecord,
    Settings,
    read_search,
    search_path,
)
from dpn_plugin.bench.search.space import (
    Range,
    SearchTable,
    Space,
    Value,
    describe_ranges,
    is_recipe_field,
    split_values,
)
from dpn_plugin.bench.variants import folder_name
from dpn_plugin.errors import UserError, unknown_name, validation_message
from dpn_plugin.plugins import registry
from dpn_plugin.runs import Recipe, TrainConfig, check_options, method_of, training_code


@dataclass(frozen=True)
class MethodSearch:
    """
    The search of a method on a backbone. It can be sent to another process.

    :param method: what results and messages call the method
    :param config: of the first trial: the settings of the suite with the seed of the search
    :param settings: how many trials, of what
    :param path: of the record
    """

    method: str
    config: TrainConfig
    settings: Settings
    path: Path

    @property
    def text(self) -> str:
        """What is searched, in one sentence without a full stop."""
        ranges = describe_ranges(self.settings.space)
        joined = "; ".join(f"{key} {each}" for key, each in ranges.items())
        how = f"{self.settings.trials} trials ({self.settings.sampler})"
        return f"{self.config.backbone} {self.method}, {how}: {joined}"

    def find_record(self) -> SearchRecord | None:
        """Read the record; ``None`` if there is none of this very search."""
        record = read_search(self.path)
        return record if record is not None and record.settings == self.settings else None

    def start_record(self) -> SearchRecord:
        """Return what is known of the search, or the record of a new one."""
        new = SearchRecord(
            backbone=self.config.backbone, method=self.method, settings=self.settings
        )
        return self.find_record() or new

    def trial(self, number: int, values: Mapping[str, Value]) -> PlannedRun:
        """Return the run of a trial; its folder is removed when its figures are recorded."""
        folder = self.path.with_suffix("") / f"trial-{number}"
        title = f"{self.method} (trial {number + 1} of {self.settings.trials})"
        return PlannedRun(title, change_config(self.config, values), folder)


def plan_searches(
    table: SearchTable | None, runs: Sequence[PlannedRun], out: Path
) -> tuple[MethodSearch, ...]:
    """
    Return the searches of all methods that have ranges.

    :param table: ``[search]`` of the suite
    :param runs: of the plan, with the settings of the suite
    :param out: the folder of the benchmark
    :raises UserError: if a name is unknown, or a range does not fit
    """
    if table is None:
        return ()
    _check_methods(table, runs)
    found: dict[tuple[str, str], MethodSearch] = {}
    for run in runs:
        key = run.config.backbone, run.method
        space = table.space(run.method)
        if key not in found and space and method_of(run.config).trains:
            found[key] = _plan_search(table, run, space, out)
    return tuple(found.values())


def choose(
    searches: Sequence[MethodSearch], runs: Sequence[PlannedRun]
) -> tuple[list[PlannedRun], list[MethodSearch]]:
    """Return the runs with what finished searches chose, and the searches that are not finished."""
    records = [(each, each.find_record()) for each in searches]
    pending = [each for each, record in records if record is None or not record.finished]
    chosen = {
        (each.config.backbone, each.method): record.chosen.values
        for each, record in records
        if record is not None and record.finished
    }
    changed = []
    for run in runs:
        values = chosen.get((run.config.backbone, run.method), {})
        changed.append(replace(run, config=change_config(run.config, values)) if values else run)
    return changed, pending


def change_config(config: TrainConfig, values: Mapping[str, Value]) -> TrainConfig:
    """
    Return a configuration with other hyper-parameters.

    :raises UserError: if a value is out of range, or the method has no such option
    """
    train, options = split_values(values)
    try:
        recipe = Recipe.model_validate({**config.recipe.model_dump(), **train})
    except ValidationError as error:
        raise UserError(validation_message(error, Recipe, kind="training option")) from error
    changed = {"recipe": recipe, "options": {**config.options, **options}}
    config = config.model_copy(update=changed)
    check_options(config)
    return config


def _plan_search(table: SearchTable, run: PlannedRun, space: Space, out: Path) -> MethodSearch:
    config = run.config.model_copy(update={"seed": table.seed})
    _check_space(run.method, config, space)
    settings = Settings(
        trials=table.trials,
        sampler=table.sampler,
        seed=table.seed,
        tolerance=table.tolerance,
        space=space,
        identity=json_hash(config.identity()),
        code=training_code(config),
    )
    path = search_path(out, config.backbone, folder_name(run.method))
    return MethodSearch(run.method, config, settings, path)


def _check_methods(table: SearchTable, runs: Sequence[PlannedRun]) -> None:
    """Refuse misspelt methods; one that is not asked for now is none."""
    planned = [run.method for run in runs]
    for name in table.methods:
        if name not in planned and not registry.is_known("methods", name.partition(":")[0]):
            known = [*planned, *registry.list_methods()]
            raise UserError(f"[search.methods]: {unknown_name('method', name, known)}")


def _check_space(method: str, config: TrainConfig, space: Space) -> None:
    """Try the ends of every range, so that a mistake is found before anything is trained."""
    for key, each in space.items():
        if key in Recipe.model_fields and not is_recipe_field(key):
            raise UserError(
                f"[search] {method}.{key}: it decides which samples are held out or what a network "
                "is, so trials could not be compared. Set it in [train]."
            )
        for value in each.ends if isinstance(each, Range) else each:
            try:
                change_config(config, {key: value})
            except UserError as error:
                raise UserError(f"[search] {method}.{key} = {value}: {error}") from error
