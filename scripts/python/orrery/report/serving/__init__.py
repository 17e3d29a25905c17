"""Shows serving runs: requests over time, the distributions of their times, and how full the KV caches are.

`facts` has what a page and a terminal say of one run, `charts` draws it, `text` prints it, and `page` writes the page.
"""
