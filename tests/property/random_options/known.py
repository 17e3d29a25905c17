"""Faults that are known and not mended yet: failures of theirs are counted and not reported. The list is empty when all are mended."""


def network(case):
    return (case.config or {}).get("system", {}).get("network", {})


def no_endpoint_delay(failure):
    return "causality" in failure.text and "an event of LP" in failure.text and "is scheduled" in failure.text


def narrowest_link(failure):
    return failure.relation.__name__ == "capacity" and "utilisation" in failure.text and "graph" in network(failure.case)


def unlike_rates(failure):
    return "is stuck" in failure.text and "uec" in failure.configuration()


KNOWN = {
    "flows of UEC that meet links of unlike rates wait for ever": unlike_rates,
    "ASTRA-sim's rules and no endpoint delay in the congestion-aware network": no_endpoint_delay,
    "the utilisation of a dimension on a graph takes all links for as slow as the narrowest one of a route": narrowest_link,
}


def reason(failure):
    """Returns why a failure is expected; empty if it is not."""
    return next((text for text, holds in KNOWN.items() if holds(failure)), "")
