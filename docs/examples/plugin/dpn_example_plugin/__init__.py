"""The hooks. Factories are strings, so that `dpn list` imports neither torch nor their modules."""

from pathlib import Path

from dpn_plugin import Entry, hookimpl

HERE = "dpn_example_plugin"


@hookimpl
def dpn_detectors():
    yield Entry("logit-margin", f"{HERE}.detector:LogitMargin", "Largest logit minus the second")
    yield Entry("nearest-mean", f"{HERE}.nearest_mean:NearestMean", "Distance to the nearest class")


@hookimpl
def dpn_losses():
    yield Entry("focal", f"{HERE}.loss:FocalLoss", "Focal loss, uniform predictions on outliers")


@hookimpl
def dpn_methods():
    yield Entry("focal", f"{HERE}.method:FOCAL", "Training with the focal loss")


@hookimpl
def dpn_datasets():
    yield Entry("stripes", f"{HERE}.stripes:load", "Noisy stripes in four directions")


@hookimpl
def dpn_suites():
    yield Entry("stripes", Path(__file__).with_name("stripes.toml"), "Stripes against squares")
