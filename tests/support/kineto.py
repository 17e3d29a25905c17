"""Writes small recordings as PyTorch's profiler (Kineto) does."""
import json


def event(category, name, ts, dur, **args):
    """Returns an event of these microseconds. Arguments that are not identifiers go in as **{"Group size": 2}."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def all_reduce(ts, dur, correlation, elements=2**24, ranks=None, group="0", size=2):
    """Returns the kernel of an all-reduce of floats on stream 24; without ranks, of the group of all."""
    said = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "Group size": size,
        "In msg nelems": elements,
        "Out msg nelems": elements,
    }
    if ranks is not None:
        said |= {"Process Group Name": group, "Process Group Ranks": str(ranks)}
    return event(
        "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", ts, dur, stream=24, correlation=correlation, **said
    )


def step(begin, late, number=7, wait=0, **group):
    """Returns the events of a step of 10.1 ms that begins at this time: a kernel of 3 ms, launched `late` us later than by others, an
    all-reduce that all are ready for when the last one is, and that takes 5 ms, and a synchronisation; late is at most 1000. The step is
    `wait` us longer if the last one is ready so much later."""
    at, ready = begin + late, begin + 4100 + wait
    return [
        event("user_annotation", f"ProfilerStep#{number}", begin, 10100 + wait),
        event("cuda_runtime", "cudaLaunchKernel", at + 100, 10, correlation=begin + 1),
        event("kernel", "gemm", at + 100, 3000, stream=7, correlation=begin + 1),
        event("cuda_runtime", "cudaStreamWaitEvent", at + 120, 1, correlation=begin + 2),
        event("cuda_runtime", "cudaLaunchKernelExC", at + 130, 10, correlation=begin + 3),
        all_reduce(at + 3100, ready + 5000 - (at + 3100), begin + 3, **group),
        event("cuda_runtime", "cudaDeviceSynchronize", at + 150, ready + 5000 - (at + 150), correlation=begin + 4),
    ]


def write(path, events, rank, world):
    """Writes the recording of a rank."""
    path.write_text(
        json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": world}, "traceEvents": events})
    )
    return path
