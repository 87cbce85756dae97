"""How Sphinx makes the site of the pages that scripts/site lays out. It says nothing about which pages there are."""

project = "contextweaver"
author = "the contextweaver authors"
project_copyright = "Apache-2.0"

extensions = ["myst_parser"]
root_doc = "README"
source_suffix = {".md": "markdown"}
nitpicky = True

# The anchors that GitHub gives headings, so that links work in both places.
myst_heading_anchors = 6
# A block of JSON with an ellipsis is not JSON; it is shown without colours.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "text"

html_theme = "furo"
html_title = "contextweaver"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"
