"""Named data sources, class subsets and splits, the overlap guard, augmentation and batches."""

from dpn_plugin.data.augment import Augmentation
from dpn_plugin.data.batches import Batches
from dpn_plugin.data.guard import check_no_overlap
from dpn_plugin.data.library import Library
from dpn_plugin.data.loading import load
from dpn_plugin.data.samples import Samples, fingerprint
from dpn_plugin.data.spec import SourceSpec
from dpn_plugin.data.splits import hold_out

__all__ = [
    "Augmentation",
    "Batches",
    "Library",
    "Samples",
    "SourceSpec",
    "check_no_overlap",
    "fingerprint",
    "hold_out",
    "load",
]
