"""Installing the wheel is enough: the names are in the hosts in fresh interpreters of any kind."""

import json
from pathlib import Path

import pytest
from wheel_environment import WheelEnvironment

#: nothing of ours is imported by the program
ORDERS = {
    "timm": "import timm; timm.create_model('vgg16_cifar', num_classes=10)",
    "torch, timm": "import torch, timm; assert timm.is_model('nets_tiny') == True",
    "timm.loss": "from timm.loss import RepresentationGapLoss, ReverseKLLoss, dpn_plus, dpn_minus",
    "detector": "from pytorch_ood.detector import EnergyBased, GaussianKL, MutualInformation",
    "loss": "from pytorch_ood.loss import RepresentationGapLoss, dpn_minus, OutlierExposureLoss",
    "pytorch_ood, timm": "import pytorch_ood as host, timm; assert timm.is_model('vgg16_cifar')\n"
    "assert host.loss.dpn_plus and host.detector.Precision and 'dpn_plus' in dir(host.loss)",
    "a plugin": "import ood_nets, timm; assert timm.create_model('nets_tiny', num_classes=3)",
}
NO_FAILURES = "\nfrom dpn_plugin.plugins import plugins; assert not plugins().failures\n"

#: a plugin whose module imports timm: it is in the middle of its import when timm is complete
NETS = """
    from timm import create_model
    from dpn_plugin import Entry, hookimpl
    def tiny(pretrained=False, **options):
        return create_model("test_resnet", **options)
    @hookimpl
    def dpn_backbones():
        yield Entry("nets_tiny", tiny, "a small network")
"""

USER = """
    import sys
    import timm
    from timm.loss import RepresentationGapLoss

    def work(index):
        return timm.is_model("vgg16_cifar") and RepresentationGapLoss.__name__

    def test_it():
        assert work(0) and "dpn_plugin_autoload" in sys.modules

    test_two = test_it

    if __name__ == "__main__":
        import multiprocessing
        for method in sys.argv[1:]:
            with multiprocessing.get_context(method).Pool(1) as pool:
                assert pool.map(work, [0]) == ["RepresentationGapLoss"]
        print("done", work(0))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> WheelEnvironment:
    environment = WheelEnvironment(tmp_path_factory.mktemp("wheel"))
    environment.install()
    environment.add_plugin("ood-nets", NETS)
    lines = [line[4:] for line in USER.splitlines()]
    (environment.folder / "test_user.py").write_text("\n".join(lines))
    return environment


@pytest.mark.parametrize("order", ORDERS)
def test_the_names_are_there_in_every_order_of_imports(
    installed: WheelEnvironment, order: str
) -> None:
    installed.code(ORDERS[order] + NO_FAILURES)


def test_python_m_and_processes_that_it_starts_have_the_names(installed: WheelEnvironment) -> None:
    printed = installed.run("-m", "test_user", "spawn", "forkserver")
    assert printed == "done RepresentationGapLoss\n"


def test_processes_of_torchrun_have_the_names(installed: WheelEnvironment) -> None:
    launch = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    assert installed.run("-m", *launch, "test_user.py").count("done RepresentationGapLoss") == 2


def test_workers_of_xdist_have_the_names(installed: WheelEnvironment) -> None:
    options = ("-q", "-n", "2", "-p", "no:cacheprovider")
    assert "2 passed" in installed.run("-m", "pytest", *options, "test_user.py")


def test_import_torch_imports_no_plugin_and_no_host(installed: WheelEnvironment) -> None:
    found = "[name for name in sys.modules if name.startswith(('dpn', 'timm', 'plug', 'pytorch_'))]"
    assert installed.code(f"import sys, torch; print({found})") == "['dpn_plugin_autoload']\n"


@pytest.mark.parametrize("switch", ["DPN_AUTOLOAD", "TORCH_DEVICE_BACKEND_AUTOLOAD"])
def test_it_can_be_switched_off_and_our_import_does_the_same(
    installed: WheelEnvironment, switch: str
) -> None:
    code = """
        import timm, timm.loss, sys
        assert not timm.is_model("vgg16_cifar") and "dpn_plugin" not in sys.modules
        assert not hasattr(timm.loss, "dpn_plus")
        import dpn_plugin
        assert timm.is_model("vgg16_cifar") and timm.loss.dpn_plus
        from dpn_plugin.plugins import autoload_status
        print(*autoload_status())
    """
    printed = installed.code(code, **{switch: "0"})
    assert printed.startswith(f"False off, because {switch}=0;")


def test_the_doctor_says_that_it_is_on_and_shows_no_failures(installed: WheelEnvironment) -> None:
    record = json.loads(installed.run("-m", "dpn_plugin", "doctor", "--json"))
    assert record["autoload"]["enabled"]
    assert (record["hosts"], record["failures"]) == ({}, [])
    assert {each["package"] for each in record["plugins"]} == {
        "dpn-plugin",
        "dpn-example-plugin",
        "ood-nets",
    }


def test_the_list_of_plugins_shows_hosts_that_cannot_be_imported(
    installed: WheelEnvironment,
) -> None:
    code = """
        import sys; sys.modules["timm"] = None
        from dpn_plugin.cli import app
        app(["plugins", "--json"], standalone_mode=False)
    """
    assert "cannot be imported" in json.loads(installed.code(code))["hosts"]["timm"]


def test_a_package_that_cannot_be_imported_breaks_no_host(installed: WheelEnvironment) -> None:
    # as after deleting a clone that was installed in editable mode
    code = """
        import sys; sys.modules["dpn_plugin"] = None
        import torch, timm, timm.loss, dpn_plugin_autoload
        assert timm.create_model("test_resnet")
        print([(name, type(error).__name__) for name, error in dpn_plugin_autoload.failures])
    """
    failed = "'ModuleNotFoundError'"
    assert installed.code(code) == f"[('timm', {failed}), ('timm.loss', {failed})]\n"


def test_uninstalling_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = WheelEnvironment(tmp_path)
    before = environment.files()
    environment.install()
    assert environment.packages / "dpn_plugin_autoload.py" in environment.packages.iterdir()
    environment.uninstall()
    assert environment.files() == before
    environment.code(
        """
        import timm, sys
        assert not timm.is_model("vgg16_cifar")
        assert not [name for name in sys.modules if name.startswith("dpn")]
        """
    )
