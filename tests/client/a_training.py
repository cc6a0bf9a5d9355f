"""Small real trainings, as scripts that a test runs in a process of their own: `python a_training.py KIND STEPS ATTACH`."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "client"))


def losses(kind: str, steps: int, *, attached: bool) -> dict[str, object]:
    """Train; gives every loss in hexadecimal, the run's folder, and what the compiler counted."""
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    torch.set_num_threads(1)
    attachment = None
    if attached:
        import advisor.client

        attachment = advisor.client.attach(strict=True)
    model: nn.Module = nn.Sequential(nn.Embedding(32, 16), nn.Flatten(), nn.Linear(16 * 8, 64), nn.GELU(), nn.Linear(64, 32))
    step_model = torch.compile(model, backend="aot_eager") if kind == "compiled" else model
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.randint(32, (8 * steps, 8)), torch.randint(32, (8 * steps,))), batch_size=8)
    found = []
    for tokens, wanted in loader:
        loss = nn.functional.cross_entropy(step_model(tokens), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()).hex())
        if attachment is not None:
            attachment.log(loss=loss.detach())
        if kind == "evaluates" and len(found) % 10 == 0:
            model.eval()
            for batch in DataLoader(TensorDataset(torch.randint(32, (16, 8))), batch_size=8):
                model(batch[0])
            model.train()
            torch.save(model.state_dict(), "/dev/null")
        if kind == "raises" and len(found) == steps // 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    compiled = sys.modules.get("torch._dynamo.utils")
    counters = {name: dict(counts) for name, counts in compiled.counters.items()} if compiled else {}
    return {
        "losses": found,
        "folder": str(attachment.folder) if attachment else None,
        "graphs": counters.get("stats", {}).get("unique_graphs", 0),
        "breaks": sum(counters.get("graph_break", {}).values()),
        "faults": attachment.hooks.fault_count if attachment else 0,
        "seconds": time.monotonic(),
    }


if __name__ == "__main__":
    print(json.dumps(losses(sys.argv[1], int(sys.argv[2]), attached=sys.argv[3] == "attached")))
