"""How the site is built: `make docs`."""

import lengthwise

project = "lengthwise"
author = "The lengthwise developers"
copyright = "2026, The lengthwise developers"  # noqa: A001
version = release = lengthwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "lengthwise"

autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# Types of other libraries are named in signatures without pulling in their inventories: a build needs no network.
nitpick_ignore_regex = [(r"py:.*", r"(?!lengthwise).*")]
# What all layouts have in common, named in signatures only: users take one of the layouts.
nitpick_ignore = [("py:class", "lengthwise.layouts.Layout")]
