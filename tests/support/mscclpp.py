"""Execution plans of MSCCL++."""
import json


def gather_plan(ranks, operations, **more):
    """Returns a plan for an all-gather, with `more` in it: each rank puts its chunk to each other one, signals it, and waits for the others.
    operations(rank) gives the operations of a rank's only thread block; channel and buffer k are those of its k-th peer.
    """
    ids = list(range(ranks - 1))
    gpus = []
    for rank in range(ranks):
        peers = [peer for peer in range(ranks) if peer != rank]
        gpus.append(
            {
                "id": rank,
                "input_chunks": 1,
                "output_chunks": ranks,
                "scratch_chunks": 0,
                "channels": [{"channel_type": "memory", "connected_to": peers}],
                "remote_buffers": [{"rank": peer, "type": "o", "access_channel_types": ["memory"]} for peer in peers],
                "threadblocks": [
                    {
                        "id": 0,
                        "channels": [{"channel_type": "memory", "channel_ids": ids}],
                        "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": ids}],
                        "ops": list(operations(rank)),
                    }
                ],
            }
        )
    return json.dumps(
        {"name": "gather", "collective": "allgather", "protocol": "Simple", "inplace": True, "gpus": gpus, **more}
    )
