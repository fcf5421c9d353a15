"""A search of every method's own hyper-parameters on held-out data, with an equal budget."""

from dpn_plugin.bench.search.method_search import MethodSearch, choose, plan_searches
from dpn_plugin.bench.search.record import SEARCH_FOLDER, SearchRecord, TrialRecord, read_searches
from dpn_plugin.bench.search.space import SearchTable, describe_ranges
from dpn_plugin.bench.search.trials import Trials

__all__ = [
    "SEARCH_FOLDER",
    "MethodSearch",
    "SearchRecord",
    "SearchTable",
    "TrialRecord",
    "Trials",
    "choose",
    "describe_ranges",
    "plan_searches",
    "read_searches",
]
