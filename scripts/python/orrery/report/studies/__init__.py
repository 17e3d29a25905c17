"""What `orrery report`, `orrery compare` and `orrery show results` say of studies, the results of `orrery explore`.

`facts` has what is said of one study, `sensitivity` what follows from its trials, `comparison` what is said of several; `text` prints
it, `sections` makes it HTML, `series` encodes all trials for the charts, and `page` writes the page.
"""
