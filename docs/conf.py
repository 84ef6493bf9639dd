"""Configuration of the documentation: ``sphinx-build -W docs docs/_build``."""

import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import fssgd

project, author, copyright = "fssgd", "the fssgd developers", "the fssgd developers"
version = release = fssgd.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.extlinks",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
extlinks = {"doi": ("https://doi.org/%s", "doi:%s")}
exclude_patterns = ["_build"]
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
default_role = "code"
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "fssgd"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False, "show_prev_next": False}
html_show_sourcelink = False
templates_path = ["_templates"]

sphinx_gallery_conf = {
    "examples_dirs": str(Path(__file__).resolve().parents[1] / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
}
