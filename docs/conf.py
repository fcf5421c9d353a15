"""Settings of the documentation."""

from importlib.metadata import version as installed_version
from pathlib import Path

# autodoc changes the annotations of pydantic's BaseModel. Models that accept further keys cannot be
# defined after that, so all models are imported first.
import dpn_plugin.testing  # noqa: F401

project = "dpn-plugin"
author = "The dpn-plugin developers"
release = version = installed_version("dpn-plugin")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx_design",
]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
# the examples of plugins.md use the plugin without installing it
doctest_path = [str(Path(__file__).parent / "examples" / "plugin")]
exclude_patterns = ["_build", "examples"]
# pytorch-ood's inherited docstrings refer to its own site
suppress_warnings = ["ref.doc"]

html_theme = "furo"
html_title = "dpn-plugin"
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
pygments_dark_style = "github-dark"  # furo's default underlines the names of modules
autodoc_member_order = "bysource"
autodoc_typehints = "description"
