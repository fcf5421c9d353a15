"""The hosts know our names, whoever is imported first."""

import json
from typing import Any

import pytest

ORDERS = (
    "import dpn_plugin, pytorch_ood, timm",
    "import pytorch_ood, timm, dpn_plugin",
    "import timm.models, dpn_plugin, pytorch_ood.loss",
    # Ours are half imported at the moment when they make a host fire its hook.
    "import dpn_plugin.detectors",
    "import dpn_plugin.losses",
    "import dpn_plugin.backbones.vgg",
)

LENT = """
import dpn_plugin.{home} as home, pytorch_ood.{host} as host
for name in "{names}".split():
    assert getattr(host, name) is getattr(home, name), name
    assert name in dir(host), name
    assert name in getattr(host, "__all__", [name]), name
assert not hasattr(host, "NoSuchName")
from pytorch_ood.{host} import {one}
"""

CHECKS = {
    "detectors": LENT.format(
        home="detectors",
        host="detector",
        one="EnergyBased, MutualInformation",
        names="DifferentialEntropy GaussianKL MaxProbability MutualInformation Precision "
        "PredictiveEntropy",
    ),
    "losses": LENT.format(
        home="losses",
        host="loss",
        one="OutlierExposureLoss, RepresentationGapLoss",
        names="EvidentialLoss ForwardKLLoss RepresentationGapLoss ReverseKLLoss",
    ),
    "backbones": """
import timm
assert timm.create_model("vgg16_cifar", num_classes=7).num_classes == 7
assert timm.is_model("mlp_synthetic")
assert timm.models.model_entrypoint("dpn92").__module__ == "timm.models.dpn"
from dpn_plugin.plugins.manager import plugins
assert not plugins().failures, plugins().failures
""",
    "the host's own": """
import warnings, pytorch_ood.loss as host
assert host.CrossEntropyLoss.__module__.startswith("pytorch_ood.")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert host.SSDeepSVDDLoss is host.DeepSADLoss
# the host's own __getattr__ warns, and still points at who asked
assert [warning.filename for warning in caught] == ["<string>"]
""",
}

# Every order starts afresh but for what the hosts stand on: it takes most of the time and no part.
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


def test_backbones_of_plugins_reach_timm_and_bad_ones_harm_nobody(site: Any) -> None:
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
        from dpn_plugin.plugins.manager import plugins
        for failure in plugins().failures:
            print(failure.package, failure.message)
        """
    )
    lines = printed.splitlines()
    assert [line.split("'")[1] for line in lines] == ["unhashable_net", "lost_net", "dpn92"]
    assert all(line.startswith("ood-nets backbone") for line in lines)
