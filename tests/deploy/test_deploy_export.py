"""An exported bundle gives what the bundle gives, for any batch, in another runtime."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from bundles import bundle_folder, tensors
from torch import Tensor, nn

from benchmark_suites.matrix.subjects import BACKBONES
from dpn_plugin import functional
from dpn_plugin.data import Transform
from dpn_plugin.deploy import DecisionRule, export_bundle, load_bundle
from dpn_plugin.deploy.export import onnx_program
from dpn_plugin.deploy.graph import Preprocessing, measures_of
from dpn_plugin.deploy.result import MEASURES
from dpn_plugin.errors import UserError

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9), reason="exporting needs torch 2.9"
)
NAMES = ("dpn-gaussian-kl", "mahalanobis", "knn", "dpn-mi", "open-max", "odin")


class Measured(nn.Module):
    def forward(self, logits: Tensor) -> dict[str, Tensor]:
        return measures_of({"logits": logits})


class Network(nn.Module):
    """What a bundle's graph does before its detectors."""

    def __init__(self, backbone: nn.Module, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.transform = Transform((0.3,), (0.35,), (32, 32))
        self.preprocessing = Preprocessing(self.transform, shape)
        self.backbone = backbone

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        outputs = self.backbone.outputs(self.preprocessing(images))
        return {"features": outputs.features, **measures_of({"logits": outputs.logits})}


def session(model: nn.Module, example: Tensor, names: tuple[str, ...]):
    model_bytes = onnx_program(model, example, names).model_proto.SerializeToString()
    loaded = onnxruntime.InferenceSession(model_bytes)
    return lambda x: dict(zip(names, loaded.run(None, {"images": x.numpy()}), strict=True))


@pytest.mark.parametrize("classes", [2, 10])
def test_measures_in_onnxruntime_agree_with_torch(classes: int) -> None:
    run = session(Measured(), torch.randn(3, classes), MEASURES)
    generator = torch.Generator().manual_seed(0)
    for size in (1, 7, 10_000):
        logits = 60 * torch.rand(size, classes, generator=generator) - 30
        found, expected = run(logits), functional.dirichlet_measures(logits)
        for name in MEASURES:
            ours, theirs = torch.from_numpy(found[name]), getattr(expected, name)
            error = (ours - theirs).abs()
            assert ((error <= 1e-5 * theirs.abs()) | (error <= 1e-7)).all(), name


def test_tiny_uncertainties_keep_their_digits_in_onnxruntime() -> None:
    run = session(Measured(), torch.randn(3, 4), MEASURES)
    logits = torch.tensor([[30.0, -25, -28, -30], [12.0, -9, -9, -9]])
    found, expected = run(logits), functional.dirichlet_measures(logits.double())
    assert 0 < expected.entropy[0] < 1e-21
    for name in ("entropy", "mutual_information"):
        np.testing.assert_allclose(found[name], getattr(expected, name), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", BACKBONES)
def test_every_backbone_agrees_in_onnxruntime(name: str) -> None:
    torch.manual_seed(0)
    network = Network(BACKBONES[name].build(32).eval(), (1, 8, 8)).eval()
    run = session(network, tensors(0, 1, 2), ("features", *MEASURES))
    images = tensors(*range(7))
    with torch.no_grad():
        outputs = network.backbone.outputs(network.transform(images))
    measures = functional.dirichlet_measures(outputs.logits)
    for rows in (slice(0, 1), slice(0, 7)):
        found = run(images[rows])
        np.testing.assert_allclose(found["features"], outputs.features[rows], rtol=1e-3, atol=1e-4)
        for each in MEASURES:
            expected = getattr(measures, each)[rows]
            np.testing.assert_allclose(found[each], expected, rtol=1e-3, atol=1e-4)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory):
    bundle = load_bundle(bundle_folder(detectors=NAMES), "cpu")
    return bundle, export_bundle(bundle, tmp_path_factory.mktemp("export") / "bundle.onnx")


def test_names_tell_what_is_in_the_file(exported) -> None:
    _, found = exported
    expected = ["probabilities", *MEASURES]
    for name in NAMES[:4]:
        expected += [f"{name}.score", f"{name}.p_value"]
    assert list(found.outputs) == expected
    assert "cannot be traced" in found.left_out["open-max"]
    assert "runs the network again" in found.left_out["odin"]


def test_a_file_gives_the_scores_and_p_values_of_the_bundle(exported) -> None:
    bundle, found = exported
    loaded = onnxruntime.InferenceSession(str(found.path))
    for rows in (1, 7, 300):
        images = tensors(*range(rows))
        ours = dict(zip(found.outputs, loaded.run(None, {"images": images.numpy()}), strict=True))
        theirs = bundle(images)
        np.testing.assert_allclose(ours["probabilities"], theirs.probabilities, atol=1e-5)
        for name in NAMES[:4]:
            result = theirs.detectors[name]
            np.testing.assert_allclose(ours[f"{name}.score"], result.score, rtol=1e-3, atol=1e-4)
            # a score that equals a calibration score up to rounding may be on either side of it
            step = 1.01 / (1 + len(bundle.calibrations[name].scores))
            np.testing.assert_allclose(ours[f"{name}.p_value"], result.p_value, atol=step)


def test_a_file_runs_without_torch_and_without_this_package(exported, tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", tensors(0, 1, 2).numpy())
    program = f"""
import sys
for name in ("torch", "dpn_plugin", "timm", "pytorch_ood", "onnx"):
    sys.modules[name] = None  # importing it raises
import json
import numpy as np
import onnxruntime
session = onnxruntime.InferenceSession({str(exported[1].path)!r})
images = np.load({str(tmp_path / "images.npy")!r})
names = [each.name for each in session.get_outputs()]
found = dict(zip(names, session.run(None, {{"images": images}})))
classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
print([classes[index] for index in found["probabilities"].argmax(axis=1)])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(list(exported[0](tensors(0, 1, 2)).prediction))


def test_a_torch_program_takes_any_batch(tmp_path: Path) -> None:
    rule = DecisionRule(alpha=0.2, by_class=True)
    bundle = load_bundle(bundle_folder(detectors=("dpn-mi",), rule=rule), "cpu")
    export_bundle(bundle, tmp_path / "b.pt2", "pt2")
    program = torch.export.load(tmp_path / "b.pt2").module()
    for rows in (1, 40):
        images = tensors(*range(rows))
        expected = bundle(images).detectors["dpn-mi"]
        with torch.no_grad():
            found = program(images)
        np.testing.assert_allclose(found["dpn-mi.score"], expected.score, rtol=1e-4, atol=1e-6)
        assert (found["dpn-mi.p_value"] - expected.p_value).abs().max() < 0.1


@pytest.mark.parametrize("size", [(8, 8), (50, 41), (32, 32)])
def test_resizing_in_a_graph_is_that_of_the_transform(size: tuple[int, int]) -> None:
    transform = Transform((0.3,), (0.35,), (32, 32))
    images = torch.randint(0, 256, (2, 1, *size), dtype=torch.uint8)
    found = Preprocessing(transform, (1, *size))(images)
    torch.testing.assert_close(found, transform(images), rtol=1e-5, atol=1e-5)


def test_p_values_of_a_graph_equal_those_of_the_calibration() -> None:
    from dpn_plugin.deploy.calibration import Calibration
    from dpn_plugin.deploy.graph import PValues

    generator = torch.Generator().manual_seed(0)
    known = torch.randint(0, 20, (101,), generator=generator).double()
    classes = torch.randint(0, 3, (101,), generator=generator)
    scores = torch.randint(-2, 23, (200,), generator=generator).double()
    predicted = torch.randint(0, 3, (200,), generator=generator)
    for by_class in (False, True):
        calibration = Calibration(known, classes, DecisionRule(alpha=0.2, by_class=by_class), 3)
        found = PValues(calibration, 3)(scores, predicted)
        assert torch.equal(found, calibration.p_values(scores, predicted))


def test_random_networks_and_missing_packages_are_refused(tmp_path: Path, monkeypatch) -> None:
    recipe = {"epochs": 1, "drop_rate": 0.2}
    random = load_bundle(bundle_folder("mcdp", ("dpn-mi", "dpn-entropy"), **recipe), "cpu")
    with pytest.raises(UserError, match="random and cannot be part of a graph"):
        export_bundle(random, tmp_path / "x.onnx")
    plain = load_bundle(bundle_folder(), "cpu")
    with pytest.raises(UserError, match="Did you mean 'onnx'"):
        export_bundle(plain, tmp_path / "x.onnx", "onx")
    monkeypatch.setattr("dpn_plugin.deploy.export.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'dpn-plugin\[export\]'"):
        export_bundle(plain, tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []
