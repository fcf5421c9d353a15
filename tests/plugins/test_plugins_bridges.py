"""Our names are available in the hosts in any order of import."""

import json
from typing import Any

import pytest

ORDERS = (
    "import dpn_plugin, pytorch_ood, timm",
    "import pytorch_ood, timm, dpn_plugin",
    "import timm.models, dpn_plugin, pytorch_ood.loss",
    # Our modules are in the middle of their import when the import hook of a host runs.
    "import dpn_plugin.detectors",
    "import dpn_plugin.losses",
    "import dpn_plugin.backbones.vgg",
)

EXPOSED = """
import dpn_plugin.{module} as ours, pytorch_ood.{host} as host
for name in "{names}".split():
    assert getattr(host, name) is getattr(ours, name), name
    assert name in dir(host), name
    assert name in getattr(host, "__all__", [name]), name
assert not hasattr(host, "NoSuchName")
from pytorch_ood.{host} import {one}
"""

CHECKS = {
    "detectors": EXPOSED.format(
        module="detectors",
        host="detector",
        one="EnergyBased, MutualInformation",
        names="DifferentialEntropy GaussianKL MaxProbability MutualInformation Precision "
        "PredictiveEntropy",
    ),
    "losses": EXPOSED.format(
        module="losses",
        host="loss",
        one="OutlierExposureLoss, RepresentationGapLoss",
        names="EvidentialLoss ForwardKLLoss RepresentationGapLoss ReverseKLLoss dpn_minus dpn_plus",
    ),
    "backbones": """
import timm
assert timm.create_model("vgg16_cifar", num_classes=7).num_classes == 7
assert timm.is_model("mlp_synthetic")
assert timm.models.model_entrypoint("dpn92").__module__ == "timm.models.dpn"
from dpn_plugin.plugins import plugins
assert not plugins().failures, plugins().failures
""",
    "the host's own": """
import warnings, pytorch_ood.loss as host
assert host.CrossEntropyLoss.__module__.startswith("pytorch_ood.")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert host.SSDeepSVDDLoss is host.DeepSADLoss
# the host's own __getattr__ warns, and the warning still points at the caller
assert [warning.filename for warning in caught] == ["<string>"]
""",
}

# Every order runs in a fork of a process that has imported the dependencies of the hosts, which
# take most of the time and do not affect the result.
FORKS = """
import json, os, sys, traceback, warnings
import huggingface_hub, scipy.stats, sklearn.neighbors, torch, torchvision
warnings.simplefilter("error", UserWarning)  # timm warns when a name is registered twice
orders, checks = json.loads(sys.stdin.read())
for order in orders:
    if os.fork():
        os.wait()
        continue
    for kind, check in checks.items():
        problem = ""
        try:
            exec(order + check, {})
        except BaseException:
            problem = traceback.format_exc()
        print(json.dumps([order, kind, problem]), flush=True)
    os._exit(0)
"""


@pytest.fixture(scope="module")
def problems(shared_site: Any) -> dict[tuple[str, str], str]:
    done = shared_site.run("-c", FORKS, input=json.dumps([ORDERS, CHECKS]))
    return {
        (order, kind): problem for order, kind, problem in map(json.loads, done.stdout.splitlines())
    }


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("order", ORDERS)
def test_our_names_are_in_the_hosts_in_any_order_of_import(
    problems: dict[tuple[str, str], str], order: str, kind: str
) -> None:
    assert problems[order, kind] == ""


def test_importing_the_package_imports_neither_torch_nor_a_host(site: Any) -> None:
    heavy = "{'torch', 'timm', 'pytorch_ood', 'numpy', 'pandas'}"
    code = f"import sys, dpn_plugin; dpn_plugin.list_detectors(); print({heavy} & {{*sys.modules}})"
    assert site.python(code) == "set()\n"


def test_backbones_of_plugins_are_in_timm_and_bad_ones_are_reported(site: Any) -> None:
    site.install(
        "ood-nets",
        """
        import timm
        from timm import create_model
        from dpn_plugin import Entry, hookimpl
        def tiny(pretrained=False, **options):
            return create_model("test_resnet", **options)
        @hookimpl
        def dpn_backbones():
            yield Entry("tiny_net", tiny, "registered under the name of the entry")
            yield Entry("unhashable_net", [], "no function at all")
            yield Entry("lost_net", "there_is_no:net", "cannot be imported")
            yield Entry("dpn92", tiny, "a Dual Path Network is not a Dirichlet one")
        """,
    )
    printed = site.python(
        """
        import dpn_plugin, timm
        assert timm.create_model("tiny_net", num_classes=3).num_classes == 3
        assert timm.is_model("vgg16_cifar")
        assert timm.models.model_entrypoint("dpn92").__module__ == "timm.models.dpn"
        from dpn_plugin.plugins import plugins
        for failure in plugins().failures:
            print(failure.package, failure.message)
        """
    )
    lines = printed.splitlines()
    assert [line.split("'")[1] for line in lines] == ["unhashable_net", "lost_net", "dpn92"]
    assert all(line.startswith("ood-nets backbone") for line in lines)
