"""Features and head of a small model of every timm family that is fast enough."""

import pytest
import timm
import torch

from dpn_plugin.backbones import create_backbone

FAMILIES = [
    "test_byobnet",
    "test_convnext",
    "cpubone_nano",
    "cs3darknet_focus_s",
    "deit_tiny_patch16_224",
    "densenet121",
    "dla46x_c",
    "dpn48b",
    "edgenext_xx_small",
    "test_efficientnet",
    "efficientvit_b0",
    "efficientvit_m0",
    "fasternet_t0",
    "fastvit_t8",
    "ghostnet_050",
    "hardcorenas_b",
    "hgnetv2_b0",
    "iformer_t",
    "inception_next_atto",
    "lcnetv2_small",
    "lowformer_b0",
    "test_mambaout",
    "poolformerv2_s12",
    "mobilenetv3_small_050",
    "mobilevit_xxs",
    "test_nfnet",
    "pit_ti_224",
    "pvt_v2_b0",
    "regnetx_002",
    "repghostnet_050",
    "repvit_m1",
    "resnest14d",
    "test_resnet",
    "resnetv2_18",
    "rexnet_100",
    "legacy_seresnet18",
    "shvit_s1",
    "skresnet18",
    "starnet_s050",
    "tiny_vit_5m_224",
    "visformer_tiny",
    "test_vit",
    "vit_tiny_r_s16_p8_224",
    "ese_vovnet19b_slim_dw",
    "swin_tiny_patch4_window7_224",
    "gmlp_ti16_224",
    "xcit_nano_12_p8_224",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_head_of_encoder_is_the_model(name: str) -> None:
    if not timm.is_model(name):
        pytest.skip("this version of timm has no such model")
    backbone = create_backbone(name, 5, image_size=28, in_chans=1).eval()
    x = torch.randn(2, *backbone.input_size)
    expected = backbone.model(x)
    features = backbone.encoder(x)
    torch.testing.assert_close(backbone.head(features), expected, rtol=1e-3, atol=1e-4)
    assert features.shape == (2, backbone.num_features)
    if backbone.is_linear:
        by_hand = torch.nn.functional.linear(features, backbone.weight, backbone.bias)
        torch.testing.assert_close(by_hand, expected, rtol=1e-3, atol=1e-4)
    maps = backbone.outputs(x).feature_maps
    assert maps is None or maps.shape[1] == backbone.model.num_features
