"""What a log or a traceback says: the failure, where it happened, and what else it tells."""

import enum

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence


class FailureKind(enum.Enum):
    """What kind of message it is; each has its own wording in the field."""

    DEVICE_OUT_OF_MEMORY = "device out of memory"  # CUDA, HIP, XPU, NPU, MTIA allocators of PyTorch
    UNIFIED_MEMORY_LIMIT = "unified memory limit"  # MPS
    XLA_RESOURCE_EXHAUSTED = "XLA resource exhausted"  # JAX, XLA
    TENSORFLOW_OUT_OF_MEMORY = "TensorFlow out of memory"
    LIBRARY_ALLOCATION_FAILED = "library allocation failed"  # cuBLAS, cuDNN, cuSPARSE, MIOpen handles and buffers
    COLLECTIVE_ALLOCATION_FAILED = "collective library allocation failed"  # NCCL, RCCL
    KV_CACHE_REFUSED = "KV cache refused"  # vLLM, SGLang, TensorRT-LLM: no room for the cache or the model's length
    ENGINE_OUT_OF_MEMORY = "engine out of memory"  # cumem allocator and other engines' own messages
    HOST_OUT_OF_MEMORY = "host out of memory"  # OOM killer, cgroup, MemoryError, exit 137, "Killed"
    SHARED_MEMORY_EXHAUSTED = "shared memory exhausted"  # bus error, /dev/shm
    NOT_OUT_OF_MEMORY = "not out of memory"  # looks like it, is another error


BLOCK_LIMIT = "block limit"
"""The `generation` of a message that says itself that one block is larger than the platform allows: the device need not be full."""


class Phase(enum.Enum):
    """What the program was doing, by its innermost meaningful frames."""

    LOADING = "loading"
    DATA = "data"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    OPTIMIZER_STEP = "optimizer step"
    CHECKPOINT = "checkpoint"
    EVALUATION = "evaluation"
    GENERATION = "generation"
    ENGINE_START = "engine start"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One line of a traceback, as printed."""

    filename: str
    line: int
    function: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMemory:
    """Device memory of one process, as a message or nvidia-smi printed it."""

    pid: int
    used_bytes: int | None
    name: str = ""
    device_index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Evidence):
    """One failure message. Every figure is exactly the printed one times its unit, rounded to bytes.

    Attributes:
        kind: what kind of message.
        message: its own text, one line, cut at 2,000 characters.
        line: the line of the log, from 1.
        backend: "CUDA", "HIP", "XPU", "NPU", "MPS", "XLA", "TensorFlow", "NCCL", "cuBLAS", "cuDNN", "vLLM", "SGLang", "host"...
        generation: which wording it is, for example "torch 1.x cached", "torch 1.11 reserved", "torch 2.1", "torch 2.4".
        device_index: the device; None where not said.
        requested_bytes: what was asked for and refused.
        total_bytes: the device's capacity as the runtime reports it.
        free_bytes: free on the device.
        allocated_bytes: live blocks of PyTorch's allocator.
        reserved_bytes: obtained from the driver by PyTorch's allocator, in all.
        reserved_unallocated_bytes: reserved less allocated (printed, or computed from both).
        private_pool_bytes: allocated in private pools (CUDA graphs).
        allowed_bytes: the cap on this process (a memory fraction), or MPS's limit.
        process_bytes: this process's whole use of the device, non-PyTorch memory included.
        other_allocations_bytes: MPS's "other allocations".
        other_processes: the processes that the message names; this process may be among them, see `own_pid`.
        own_pid: this process's pid where the log tells.
        resolution_bytes: half of the last printed digit's weight of the coarsest figure: sums are no surer than that.
        needed_tokens: tokens that a cache must hold (the model's length); None outside engines.
        available_tokens: tokens that it can hold.
        detail: anything else that the message itself says, in its words (allocator hint, status code, limit, cgroup).
        phase: what the program was doing.
        frames: the traceback above the message, outermost first; empty where none was printed.
        exception: the exception's class as printed.
        recovered: True where the log shows that the job went on after it.
    """

    kind: FailureKind
    message: str
    line: int
    backend: str = ""
    generation: str = ""
    device_index: int | None = None
    requested_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    reserved_unallocated_bytes: int | None = None
    private_pool_bytes: int | None = None
    allowed_bytes: int | None = None
    process_bytes: int | None = None
    other_allocations_bytes: int | None = None
    other_processes: tuple[ProcessMemory, ...] = ()
    own_pid: int | None = None
    resolution_bytes: int | None = None
    needed_tokens: int | None = None
    available_tokens: int | None = None
    detail: str = ""
    phase: Phase = Phase.UNKNOWN
    frames: tuple[Frame, ...] = ()
    exception: str = ""
    recovered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A word of the field that the log contains, with the line that it stands in.

    Attributes:
        topic: a stable lower-case key, listed in `advisor/ingest/mentions.py` ("torch.load", "evaluation", "lora", "adamw",
            "gradient-checkpointing", "no-grad", "eval-accumulation", "num-workers-0", ...).
        line: from 1.
        text: that line, cut at 200 characters.
        in_code: True where it stands in a traceback's code line or a frame, False in prose or program output.
    """

    topic: str
    line: int
    text: str
    in_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogText(Evidence):
    """What a log tells besides its failures.

    Attributes:
        line_count: lines read.
        mentions: words of the field, at most the first 8 of each topic.
        settings: environment settings and arguments that it prints: "PYTORCH_CUDA_ALLOC_CONF" → "expandable_segments:True",
            "per_device_train_batch_size" → "8", "max_model_len" → "4096".
        frameworks: "transformers", "accelerate", "deepspeed", "fsdp", "lightning", "vllm", "sglang", "jax", "tensorflow", ...
        world_size: of the distributed job, where it is said.
        failed_ranks: ranks with a failure, in the order of the log.
    """

    line_count: int
    mentions: tuple[Mention, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    frameworks: tuple[str, ...] = ()
    world_size: int | None = None
    failed_ranks: tuple[int, ...] = ()

    def mentioned(self, *topics: str) -> Mention | None:
        """The first mention of any of the topics, those in code before those in prose; None without one."""
        found = [mention for mention in self.mentions if mention.topic in topics]
        return min(found, key=lambda mention: (not mention.in_code, mention.line), default=None)

    def setting(self, name: str) -> str | None:
        """The last value that the log prints for a setting."""
        return dict(self.settings).get(name)
