"""Named data sources, class subsets and splits, the overlap check, augmentation and batches."""

from dpn_plugin.data.augment import Augmentation
from dpn_plugin.data.batches import Batches
from dpn_plugin.data.dataset_cache import DatasetCache, SharedSets
from dpn_plugin.data.decoding import default_workers
from dpn_plugin.data.drop_shared import DistinctTests, drop_shared, shared_rows
from dpn_plugin.data.hashes import fingerprint, row_hashes
from dpn_plugin.data.image_files import find_image_files, load_image_files
from dpn_plugin.data.inputs import (
    Inputs,
    JoinedImages,
    MappedImages,
    StoredImages,
    StreamedImages,
    chunks,
    join,
)
from dpn_plugin.data.lazy_images import LazyImages
from dpn_plugin.data.loading import load
from dpn_plugin.data.mixed import Mixed, Mixing
from dpn_plugin.data.mixing import MIXINGS
from dpn_plugin.data.overlap import (
    check_calibration,
    check_in_domain_test,
    check_no_overlap,
    check_set_aside,
    check_shift,
)
from dpn_plugin.data.samples import Samples, hold_out, set_aside
from dpn_plugin.data.shifts import clean_spec, match_classes, shifted_sets, split_severity
from dpn_plugin.data.spec import ClassRange, SourceSpec, parse_value
from dpn_plugin.data.storage import StorageOptions
from dpn_plugin.data.transform import Transform, channel_statistics

__all__ = [
    "MIXINGS",
    "Augmentation",
    "Batches",
    "ClassRange",
    "DatasetCache",
    "DistinctTests",
    "Inputs",
    "JoinedImages",
    "LazyImages",
    "MappedImages",
    "Mixed",
    "Mixing",
    "Samples",
    "SharedSets",
    "SourceSpec",
    "StorageOptions",
    "StoredImages",
    "StreamedImages",
    "Transform",
    "channel_statistics",
    "check_calibration",
    "check_in_domain_test",
    "check_no_overlap",
    "check_set_aside",
    "check_shift",
    "chunks",
    "clean_spec",
    "default_workers",
    "drop_shared",
    "find_image_files",
    "fingerprint",
    "hold_out",
    "join",
    "load",
    "load_image_files",
    "match_classes",
    "parse_value",
    "row_hashes",
    "set_aside",
    "shared_rows",
    "shifted_sets",
    "split_severity",
]
