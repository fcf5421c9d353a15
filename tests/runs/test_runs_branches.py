"""The branch of a loss: which backbones get one, and that it is stored with the weights."""

import pytest
import torch

from dpn_plugin.backbones import create_backbone
from dpn_plugin.errors import UserError
from dpn_plugin.runs.methods import Network
from dpn_plugin.runs.networks import attach_branch


@pytest.mark.parametrize(
    ("name", "loss", "says"),
    [
        ("deit_tiny_distilled_patch16_224", "cac", "do not follow from its features"),
        ("efficientformer_l1", "vos", "one linear layer, and that of .* is the average of 2"),
    ],
)
def test_a_backbone_without_what_a_loss_reads_is_refused_by_name(name, loss, says) -> None:
    with pytest.raises(UserError, match=f"The loss '{loss}' .*{says}"):
        attach_branch(create_backbone(name, 3), Network("classifier", loss))


@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_efficientnet"])
def test_the_tensors_of_a_branch_belong_to_the_model_and_change_no_logits(name: str) -> None:
    backbone = create_backbone(name, 3, in_chans=1, image_size=16).eval()
    x = torch.randn(2, *backbone.input_size)
    before = backbone(x)
    attach_branch(backbone, Network("classifier", "center"))
    assert torch.equal(backbone(x), before)
    state = backbone.model.state_dict()
    assert state["ood_branch.centres"].shape == (3, backbone.num_features)


def test_a_loss_of_logits_leaves_the_network_alone() -> None:
    backbone = create_backbone("test_resnet", 3)
    before = [*backbone.model.state_dict()]
    attach_branch(backbone, Network("classifier", "logit-norm"))
    assert backbone.branch is None
    assert [*backbone.model.state_dict()] == before


def test_options_of_the_loss_decide_the_branch() -> None:
    backbone = create_backbone("test_resnet", 3)
    attach_branch(backbone, Network("classifier", "cac", {"magnitude": 4.0}))
    assert torch.equal(backbone.branch.centres, 4 * torch.eye(3))
