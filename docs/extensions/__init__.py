"""What the site is made of beyond its pages: extensions of Sphinx, each for one kind of page."""
