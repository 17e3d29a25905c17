"""Makes one page of the results of one or several runs, and says the same in a terminal.

`orrery report`, `orrery compare` and `orrery show results` start this package (see __main__.py). `facts` has what they say of one run,
`comparison` what they say of several, `text` prints it, and `page` writes the page.
"""
from .page import write

__all__ = ["write"]
