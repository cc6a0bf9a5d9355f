"""One rank of two, as a process of its own: `python registry_ranks.py KIND SPREAD RANK FOLDER`; prints the moments of a step as JSON."""

import json
import os
import sys

import torch
import torch.distributed as dist
from registry_moments import moments_of
from torch.distributed.device_mesh import init_device_mesh


def wrapping(spread):
    """How a model is spread over the ranks."""
    if spread == "fsdp2":
        mesh = init_device_mesh("cpu", (2,))

        def shard(model):
            for block in model.blocks:
                dist.fsdp.fully_shard(block, mesh=mesh)
            return dist.fsdp.fully_shard(model, mesh=mesh)

        return shard
    return lambda model: torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=spread == "ddp-views")


def main(kind, spread, rank, folder):
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting-point", rank=rank, world_size=2)
    try:
        moments = moments_of(kind, "eager", wrap=wrapping(spread))
    finally:
        dist.destroy_process_group()
    answer = {
        name: {
            "roles": moment.roles,
            "untagged_ratio": moment.untagged_ratio,
            "dead_bytes": moment.dead_bytes,
            "faults": moment.walk.faults,
            "names": [one.name for one in moment.walk.largest],
        }
        for name, moment in moments.items()
    }
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
