"""Train DPN- on the paper's points in the plane; print the AUROC of every measure against OOD."""

import torch
from sklearn.metrics import roc_auc_score
from torch import nn

import dpn_plugin
from dpn_plugin.data import SourceSpec, load

torch.manual_seed(0)
train, test = (
    load(SourceSpec(source="synthetic:gaussians", split=split), root=".", in_domain=True)
    for split in ("train", "test")
)
outliers, ood = (
    load(SourceSpec(source="synthetic:gaussians-ood", split=split), root=".")
    for split in ("train", "test")
)
x, y = torch.cat([train.inputs, outliers.inputs]), torch.cat([train.labels, outliers.labels])
model = nn.Sequential(
    nn.Linear(2, 125), nn.ReLU(), nn.Linear(125, 125), nn.ReLU(), nn.Linear(125, 3)
)
loss = dpn_plugin.create_loss("dpn-minus", num_classes=3, gamma=1.0)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(300):
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()

model.eval()
is_ood = torch.cat([test.labels, ood.labels]) < 0
for name in ("dpn-maxp", "dpn-entropy", "dpn-mi", "dpn-precision", "dpn-dent"):
    with torch.no_grad():
        scores = dpn_plugin.create_detector(name, model)(torch.cat([test.inputs, ood.inputs]))
    print(f"{name:14}{roc_auc_score(is_ood, scores):.4f}")
