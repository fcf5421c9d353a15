"""The names that the paper prints, for ours, and how LaTeX writes them."""

import re

from dpn_plugin.report.table_text import escape_latex

MEASURES = {
    "dpn-maxp": "Max.P",
    "dpn-entropy": "Ent.",
    "dpn-mi": "MI",
    "dpn-precision": "α₀",
    "dpn-dent": "D.Ent",
}
METHODS = {
    "baseline": "Baseline",
    "mcdp": "MCDP",
    "deep-ensemble": "DE",
    "edl": "EDL",
    "oe": "OE",
    "dpn-fwd": "DPN_fwd",
    "dpn-rev": "DPN_rev",
    "dpn-plus": "DPN+",
    "dpn-minus": "DPN-",
    "dpn-minus-in0": "DPN{0, -0.5}",
    "dpn-minus-out0": "DPN{0.5, 0}",
    "dpn-rev-ood0.1": "DPN_rev^0.1",
    "binary": "Binary",
}
SETS = {
    "tinyimagenet": "Tiny",
    "stl10": "STL-10",
    "lsun": "LSUN",
    "places365": "Places365",
    "textures": "Textures",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
}

_LATEX = {
    "DPN_fwd": r"DPN$_{fwd}$",
    "DPN_rev^0.1": r"DPN$_{rev}^{0.1}$",
    "DPN_rev": r"DPN$_{rev}$",
    "DPN+": r"DPN$^+$",
    "DPN-": r"DPN$^-$",
    "DPN{0, -0.5}": r"DPN$_{\{0,-0.5\}}$",
    "DPN{0.5, 0}": r"DPN$_{\{0.5,0\}}$",
    "α₀": r"$\alpha_0$",
}
# the longest first, because one name starts with another
_NAMES = re.compile("|".join(re.escape(name) for name in sorted(_LATEX, key=len, reverse=True)))


def latex_name(text: str) -> str:
    """Return a text for LaTeX, with the names of the paper as the paper writes them."""
    between = [escape_latex(part) for part in _NAMES.split(text)]
    names = [_LATEX[name] for name in _NAMES.findall(text)]
    return "".join(part for pair in zip(between, [*names, ""], strict=True) for part in pair)
