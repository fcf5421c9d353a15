"""
Draw log alpha0 of in-domain and OOD points while DPN+ and DPN- train, with and without anchor.

``python docs/examples/anchor.py docs/images/anchor.png`` draws the picture of docs/mathematics.md.
"""

import sys

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor, nn

import dpn_plugin
from dpn_plugin.data import SourceSpec, load

STEPS = 1200


def points() -> tuple[Tensor, Tensor]:
    """Return the paper's points in the plane and their labels, -1 for OOD."""
    inside = load(SourceSpec(source="synthetic:gaussians"), root=".", in_domain=True)
    outside = load(SourceSpec(source="synthetic:gaussians-ood"), root=".")
    return (
        torch.cat([inside.inputs, outside.inputs]),
        torch.cat([inside.labels, outside.labels]),
    )


def log_precisions(method: str, x: Tensor, y: Tensor) -> Tensor:
    """Return the mean log alpha0 of in-domain and OOD points before each step, 2 x STEPS."""
    torch.manual_seed(0)
    layers = [nn.Linear(2, 125), nn.ReLU(), nn.Linear(125, 125), nn.ReLU(), nn.Linear(125, 3)]
    model = nn.Sequential(*layers)
    loss = dpn_plugin.create_loss(method, num_classes=3, gamma=1.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    found = []
    for _ in range(STEPS):
        logits = model(x)
        log_alpha0 = logits.detach().logsumexp(dim=1)
        found.append(torch.stack([log_alpha0[y >= 0].mean(), log_alpha0[y < 0].mean()]))
        optimizer.zero_grad()
        loss(logits, y).backward()
        optimizer.step()
    return torch.stack(found, dim=1)


def main(path: str) -> None:
    """Train four networks, draw the picture and print the last values."""
    x, y = points()
    figure = Figure(figsize=(8, 3), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2, sharex=True), ("plus", "minus"), strict=True):
        for method, style in ((f"dpn-{name}", "--"), (f"dpn-{name}-anchored", "-")):
            inside, outside = log_precisions(method, x, y)
            axes.plot(inside, style, color="tab:blue", label=f"{method}, in-domain")
            axes.plot(outside, style, color="tab:orange", label=f"{method}, OOD")
            print(f"{method}-in {inside[-1]:.3f}\n{method}-ood {outside[-1]:.3f}")
        axes.set(xlabel="step", ylabel="mean log α₀")
        axes.legend(fontsize="x-small")
    FigureCanvasAgg(figure).print_png(path)


if __name__ == "__main__":
    main(sys.argv[1])
