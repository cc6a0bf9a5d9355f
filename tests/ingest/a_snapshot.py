"""Builders of snapshots as PyTorch writes them: single pieces, and whole ones from a model of the caching allocator."""

import pickle

from advisor.ingest.snapshot import read_snapshot

MIB = 1024**2


def a_frame(name="forward", filename="/app/model.py", line=10):
    return {"filename": filename, "line": line, "name": name}


MODULE_CALL = a_frame("_call_impl", "/env/site-packages/torch/nn/modules/module.py", 1700)
MAIN = a_frame("<module>", "/app/train.py", 80)
FORWARD = [a_frame("forward", line=21), MODULE_CALL, MAIN]
LOSS = [a_frame("loss", line=40), MAIN]
AUTOGRAD = []
STEP = [
    a_frame("step", "/app/my_optimizer.py", 31),
    a_frame("wrapper", "/env/site-packages/torch/optim/optimizer.py", 500),
    MAIN,
]
ADAMW = [a_frame("_multi_tensor_adamw", "/env/site-packages/torch/optim/adamw.py", 600), *STEP[1:]]
ADAMW_STATES = [a_frame("_init_group", "/env/site-packages/torch/optim/adamw.py", 150), *STEP[1:]]
MOVE = [
    a_frame("convert", "/env/site-packages/torch/nn/modules/module.py", 1300),
    a_frame("_apply", "/env/site-packages/torch/nn/modules/module.py", 900),
    MAIN,
]
ZERO_GRAD = [a_frame("zero_grad", "/env/site-packages/torch/optim/optimizer.py", 900), MAIN]
BATCH = [a_frame("get_batch", "/app/data.py", 12), MAIN]


def an_event(action="alloc", addr=0x7F0000000000, size=2 * MIB, **fields):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": 1_700_000_000_000_000, **fields}


def a_block(size=2 * MIB, state="active_allocated", address=0x7F0000000000, **fields):
    requested = 0 if state == "inactive" else size
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": [], **fields}


def a_segment(*blocks, device=0, address=0x7F0000000000, **fields):
    total = sum(block["size"] for block in blocks)
    return {
        "device": device,
        "address": address,
        "total_size": total,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": list(blocks),
        **fields,
    }


def a_raw_snapshot(segments=None, traces=((),), **fields):
    if segments is None:
        segments = [a_segment(a_block())]
    return {"segments": segments, "device_traces": [list(trace) for trace in traces], **fields}


def read(raw, path="snapshot.pickle"):
    return read_snapshot(pickle.dumps(raw), path)


class Allocator:
    """The caching allocator for one stream: best fit, splitting, coalescing; records what PyTorch records.

    Attributes:
        events: the history.
        truth: allocated and reserved bytes after each event.
    """

    SMALL_REQUEST = 1 * MIB
    SMALL_SEGMENT = 2 * MIB
    LARGE_SEGMENT = 20 * MIB
    LARGE_REQUEST = 10 * MIB

    def __init__(self, device=0):
        self.device = device
        self.events = []
        self.truth = []
        self.segments = {}  # address -> list of [address, size, requested or None, frames, is_pending]
        self.small = set()
        self._top = 0x7F0000000000
        self._clock = 1_700_000_000_000_000
        self.recording = True

    def allocated(self):
        return sum(b[1] for blocks in self.segments.values() for b in blocks if b[2] is not None and not b[4])

    def reserved(self):
        return sum(b[1] for blocks in self.segments.values() for b in blocks)

    def record(self, action, addr, size, frames=None, **fields):
        if not self.recording:
            return
        self._clock += 7
        event = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self._clock}
        if action == "oom":
            del event["addr"]
        if frames is not None:
            event["frames"] = list(frames)
        self.events.append(event | fields)
        self.truth.append((self.allocated(), self.reserved()))

    def alloc(self, size, frames=None):
        rounded = max(512, -(-size // 512) * 512)
        is_small = rounded <= self.SMALL_REQUEST
        best = None
        for start, blocks in self.segments.items():
            if (start in self.small) != is_small:
                continue
            for block in blocks:
                if block[2] is None and block[1] >= rounded and (best is None or (block[1], block[0]) < (best[1][1], best[1][0])):
                    best = (start, block)
        if best is None:
            total = self._segment_size(rounded, is_small)
            start = self._top
            self._top += total + (0 if total % (4 * MIB) else 2 * MIB)  # some segments are neighbors, some are not
            self.segments[start] = [[start, total, None, None, False]]
            if is_small:
                self.small.add(start)
            self.record("segment_alloc", start, total, frames)
            best = (start, self.segments[start][0])
        start, block = best
        rest = block[1] - rounded
        if rest >= 512 if is_small else rest > MIB:
            at = self.segments[start].index(block)
            self.segments[start].insert(at + 1, [block[0] + rounded, rest, None, None, False])
            block[1] = rounded
        block[2], block[3] = size, frames
        self.record("alloc", block[0], size, frames)
        return block[0]

    def _segment_size(self, rounded, is_small):
        if is_small:
            return self.SMALL_SEGMENT
        return self.LARGE_SEGMENT if rounded < self.LARGE_REQUEST else -(-rounded // (2 * MIB)) * 2 * MIB

    def free(self, address, frames=None, *, completes=True):
        _, block = self._find(address)
        block[4] = True
        self.record("free_requested", address, block[2], frames)
        if completes:
            self.complete(address, frames)

    def complete(self, address, frames=None):
        start, block = self._find(address)
        size, block[2], block[3], block[4] = block[2], None, None, False
        blocks = self.segments[start]
        at = blocks.index(block)
        if at + 1 < len(blocks) and blocks[at + 1][2] is None:
            block[1] += blocks.pop(at + 1)[1]
        if at and blocks[at - 1][2] is None:
            blocks[at - 1][1] += blocks.pop(at)[1]
        self.record("free_completed", address, size, frames)

    def release_cached(self):
        for start in [start for start, blocks in self.segments.items() if len(blocks) == 1 and blocks[0][2] is None]:
            total = self.segments.pop(start)[0][1]
            self.small.discard(start)
            self.record("segment_free", start, total)

    def fail(self, size, device_free):
        self.record("oom", 0, size, device_free=device_free)

    def _find(self, address):
        for start, blocks in self.segments.items():
            for block in blocks:
                if block[0] == address and block[2] is not None:
                    return start, block
        raise KeyError(address)

    def forget_history(self):
        """As if the recording began now."""
        self.events.clear()
        self.truth.clear()
        for blocks in self.segments.values():
            for block in blocks:
                block[3] = None

    def raw_segments(self):
        return [
            a_segment(
                *(
                    a_block(
                        size=size,
                        address=address,
                        state="inactive" if requested is None else "active_pending_free" if pending else "active_allocated",
                        requested_size=requested or 0,
                        frames=list(frames or []),
                    )
                    for address, size, requested, frames, pending in blocks
                ),
                device=self.device,
                address=start,
                segment_type="small" if start in self.small else "large",
            )
            for start, blocks in sorted(self.segments.items())
        ]

    def raw(self, **fields):
        traces = [[] for _ in range(self.device)] + [self.events]
        return a_raw_snapshot(self.raw_segments(), traces, **fields)
