"""A comparison as one page of HTML."""

from powersketch.comparison.page.render import page_text, write_page

__all__ = ["page_text", "write_page"]
