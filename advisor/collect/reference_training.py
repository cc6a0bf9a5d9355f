"""The reference training of the demo: a GPT of under a million parameters on the CPU, with one planted fault.

It runs in a process of its own and saves only what PyTorch itself can save: a profiler trace, an operator table and its log.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset

VOCABULARY = 128
HIDDEN = 128
HEADS = 4
LAYERS = 4
POSITIONS = 128
SEQUENCE = 64
BATCH = 8
PLANTED_SECONDS_PER_SAMPLE = 0.012
"""What the planted fault costs a sample: reading and decoding done one sample at a time in the training process."""


class Block(nn.Module):
    """One pre-norm transformer layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(HIDDEN)
        self.query_key_value = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.projection = nn.Linear(HIDDEN, HIDDEN)
        self.norm_feed_forward = nn.LayerNorm(HIDDEN)
        self.feed_forward = nn.Sequential(nn.Linear(HIDDEN, 4 * HIDDEN), nn.GELU(), nn.Linear(4 * HIDDEN, HIDDEN))

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (batch, sequence, hidden) to the same shape."""
        batch, length, _ = hidden.shape
        query, key, value = self.query_key_value(self.norm_attention(hidden)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = hidden + self.projection(attended.transpose(1, 2).reshape(batch, length, HIDDEN))
        return hidden + self.feed_forward(self.norm_feed_forward(hidden))  # type: ignore[no-any-return]  # nn.Module calls are Any


class TinyGPT(nn.Module):
    """The reference model."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map token ids (batch, sequence) to logits (batch, sequence, vocabulary)."""
        places = torch.arange(tokens.shape[1])
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(places))))  # type: ignore[no-any-return]  # the same


class Text(Dataset[Tensor]):
    """Random text; with the fault planted, each sample is prepared slowly."""

    def __init__(self, *, samples: int, slow: bool) -> None:
        self.samples = samples
        self.slow = slow

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Tensor:
        if self.slow:
            time.sleep(PLANTED_SECONDS_PER_SAMPLE)  # stands for a read from slow storage: the fault that the demo plants
        return torch.randint(VOCABULARY, (SEQUENCE + 1,), generator=torch.Generator().manual_seed(index))


def train(folder: Path, *, steps: int, slow: bool, seed: int = 0) -> float:
    """Train, profile the last steps but two, and save trace.json and operators.txt to the folder.

    Returns:
        The last loss; the same seed gives the same on one machine.
    """
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    model = TinyGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    batches: Iterator[Tensor] = iter(DataLoader(Text(samples=BATCH * (steps + 1), slow=slow), batch_size=BATCH, num_workers=0))
    loss = torch.zeros(())
    profiled = schedule(wait=max(steps - 8, 0), warmup=2, active=6, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=profiled, record_shapes=True) as profiler:
        for step in range(steps):
            started = time.perf_counter()
            text = next(batches)
            logits = model(text[:, :-1])
            loss = nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), text[:, 1:].reshape(-1))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if step % 10 == 0:
                print(f"step {step} loss {loss.item():.4f} {time.perf_counter() - started:.4f} s", flush=True)  # noqa: T201 - the log
            profiler.step()
    profiler.export_chrome_trace(str(folder / "trace.json"))
    table = profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=30)
    (folder / "operators.txt").write_text(table, encoding="utf-8")
    return float(loss.detach())


def main() -> None:
    """Train as the command line says; the output is the log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--healthy", action="store_true", help="plant no fault")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    parameters = sum(weights.numel() for weights in TinyGPT().parameters())
    print(f"tiny GPT, {parameters / 1e6:.2f} M parameters, batch {BATCH} x {SEQUENCE}, num_workers=0", flush=True)  # noqa: T201 - the log
    train(arguments.out, steps=arguments.steps, slow=not arguments.healthy)


if __name__ == "__main__":
    main()
