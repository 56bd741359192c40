"""Settings of the documentation site, which `make docs` builds offline, warnings as errors."""

import os
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

import powersketch
from docs.extensions.public_names import SKIPPED_BASES

project = "powersketch"
author = "The powersketch developers"
project_copyright = author
version = release = powersketch.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docs.extensions.mathml",
    "docs.extensions.pictures",
    "docs.extensions.api_pages",
    "docs.extensions.project_pages",
]
exclude_patterns = ["extensions", "**/sg_execution_times.rst", "sg_execution_times.rst"]
smartquotes = False  # values of options are shown as they are typed
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88
add_module_names = False
default_role = "code"  # docstrings mark names with single backquotes

autodoc_typehints = "none"  # the sections "Parameters" say it in words
autodoc_default_options = {
    "members": True,
    "inherited-members": ", ".join(SKIPPED_BASES),
    "member-order": "bysource",
}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "within_subsection_order": ExplicitOrder(
        [
            "digits_in_five_lines.py",
            "degrees.py",
            "error_against_size.py",
            "sparse_text.py",
            "neural_tangent.py",
            "learned_metric.py",
            "uncertainty.py",
            "certified_features.py",
            "kernel_system.py",
            "out_of_core.py",
            "comparison.py",
            "more_columns_than_rows.py",
        ]
    ),
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("powersketch",),
    "prefer_full_module": [r"powersketch\.(kernels|accuracy|linalg|kernel_ridge)"],
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 3600,
    "image_scrapers": ("matplotlib",),
    "plot_gallery": True,
    "download_all_examples": False,
    "show_signature": False,
    "parallel": 2,
}


def local_inventories() -> dict[str, tuple[str, str]]:
    """Return what is in the folder POWERSKETCH_INVENTORIES: links elsewhere are never needed."""
    folder = os.environ.get("POWERSKETCH_INVENTORIES")
    homes = {
        "numpy": "https://numpy.org/doc/stable/",
        "python": "https://docs.python.org/3/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
    }
    if folder is None:
        return {}
    files = {name: Path(folder).resolve() / f"{name}.inv" for name in homes}
    return {name: (homes[name], str(file)) for name, file in files.items() if file.is_file()}


intersphinx_mapping = local_inventories()

html_theme = "pydata_sphinx_theme"
html_title = "powersketch"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("search_from_files.js", {"priority": 900})]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"index": [], "install": [], "tutorial": [], "choosing": []}
html_theme_options = {
    "logo": {"text": "powersketch"},
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button-field"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}
