"""Faults that are known and not mended yet: failures of theirs are counted and not reported. The list is empty when all are mended."""


def network(case):
    return (case.config or {}).get("system", {}).get("network", {})


def narrowest_link(failure):
    return failure.relation.__name__ == "capacity" and "utilisation" in failure.text and "graph" in network(failure.case)


KNOWN = {
    "the utilisation of a dimension on a graph takes all links for as slow as the narrowest one of a route": narrowest_link,
}


def reason(failure):
    """Returns why a failure is expected; empty if it is not."""
    return next((text for text, holds in KNOWN.items() if holds(failure)), "")
