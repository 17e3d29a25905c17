"""The system and the workload that the tests of `orrery explore` change: eight NPUs, and a transformer that is simulated in milliseconds."""


def base(memory=""):
    """Returns the CONFIG.yaml. `memory`: more keys of the local memory, such as "size: 1 GB"."""
    more = f", {memory}" if memory else ""
    return f"""system:
  network: {{dimensions: [{{shape: Switch, size: 4, bandwidth: 300 GB/s, latency: 500 ns}}, {{shape: Switch, size: 2, bandwidth: 50 GB/s, latency: 1 us}}]}}
  compute: {{model: roofline, peak: 300 TFLOPS, local-memory: {{bandwidth: 2000 GB/s{more}}}}}
workload:
  model: {{layers: 8, hidden: 1024, heads: 8, sequence: 1024, vocabulary: 32000}}
  parallel: {{dp: 8}}
"""
