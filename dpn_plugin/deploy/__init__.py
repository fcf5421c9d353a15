"""
Trained runs in use: bundles with fitted detectors and calibrated thresholds, their export, and
the scores of single images.
"""

from dpn_plugin.deploy.build import create_bundle
from dpn_plugin.deploy.bundle import Bundle
from dpn_plugin.deploy.export import Exported, export_bundle
from dpn_plugin.deploy.load import load_bundle
from dpn_plugin.deploy.monitor import BundleMonitor, Evidence, StreamMonitor, plot_evidence
from dpn_plugin.deploy.record import (
    BUNDLE_FILE,
    BundleRecord,
    DecisionRule,
    DetectorRecord,
    read_bundle_record,
)
from dpn_plugin.deploy.result import BundleResult, DetectorResult
from dpn_plugin.deploy.score import score_images
from dpn_plugin.deploy.stream import decide_together, list_files, score_files
from dpn_plugin.deploy.tables import records, writing_table

__all__ = [
    "BUNDLE_FILE",
    "Bundle",
    "BundleMonitor",
    "BundleRecord",
    "BundleResult",
    "DecisionRule",
    "DetectorRecord",
    "DetectorResult",
    "Evidence",
    "Exported",
    "StreamMonitor",
    "create_bundle",
    "decide_together",
    "export_bundle",
    "list_files",
    "load_bundle",
    "plot_evidence",
    "read_bundle_record",
    "records",
    "score_files",
    "score_images",
    "writing_table",
]
