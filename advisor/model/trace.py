"""A torch.profiler (Kineto) trace as columns: one row an event that has a duration."""

import enum
from typing import TYPE_CHECKING, TypeAlias

from advisor.model.dataclass import dataclass
from advisor.model.evidence import Evidence

if TYPE_CHECKING:  # the model needs the standard library only; the arrays are made by ingest
    import numpy as np
    import numpy.typing as npt

    Times: TypeAlias = npt.NDArray[np.int64]
    Codes: TypeAlias = npt.NDArray[np.int32]
    Indices: TypeAlias = npt.NDArray[np.intp]
    Flags: TypeAlias = npt.NDArray[np.bool_]


class Category(enum.IntEnum):
    """What an event is, whatever the age of the trace called it; see `KinetoTrace.category`."""

    OTHER = 0
    OPERATOR = 1  # cpu_op, Operator: ATen and autograd operators on the host
    ANNOTATION = 2  # user_annotation: record_function, ProfilerStep#, Optimizer.step#, DataLoader
    PYTHON = 3  # python_function
    RUNTIME = 4  # cuda_runtime, hip_runtime, Runtime, mtia_runtime, xpu_runtime: calls of the host
    DRIVER = 5  # cuda_driver, xpu_driver: calls of the host (Triton launches through it)
    KERNEL = 6  # kernel, Kernel
    COPY = 7  # gpu_memcpy, Memcpy
    FILL = 8  # gpu_memset, Memset
    DEVICE_ANNOTATION = 9  # gpu_user_annotation: an annotation projected on a stream, no activity
    SYNCHRONIZATION = 10  # cuda_sync: recorded on the device's rows, a wait and no activity
    OVERHEAD = 11  # the profiler's own
    COUNTERS = 12  # cuda_profiler_range
    CONTROL = 13  # mtia_ccp_events: an accelerator's control processor
    SPAN = 14  # Trace: the profiler's own span


DEVICE_ACTIVITY = (Category.KERNEL, Category.COPY, Category.FILL)
"""What keeps a device busy."""

HOST_CALLS = (Category.RUNTIME, Category.DRIVER)
"""Where launches are recorded."""

Identity: TypeAlias = int | str
"""A process or thread as recorded: a number, or a text ("stream 7")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One row of the trace: a thread of the host, or a stream of a device."""

    pid: Identity
    tid: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDevice:
    """A device as `deviceProperties` describes it; None where not recorded.

    Attributes:
        index: the ordinal.
        name: as the runtime reports it; may be empty.
        total_bytes: of device memory.
        compute_major / compute_minor: (8, 0) for an A100, (9, 4) for an MI300X.
        sm_count: streaming multiprocessors or compute units.
    """

    index: int
    name: str
    total_bytes: int | None = None
    compute_major: int | None = None
    compute_minor: int | None = None
    sm_count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class KinetoTrace(Evidence):
    """A trace in columns of equal length, read-only, in the order of the file (not that of time).

    -1 in a column says that the event does not carry the value. Two traces are equal where their
    `digest` is.

    Attributes:
        start_ns: start, nanoseconds since `origin_ns`, int64.
        duration_ns: duration, nanoseconds, int64, never negative.
        name: code of the name; the text is `names[code]`, int32.
        category: a `Category`, uint8.
        thread: code of process and thread (or device and stream); see `threads`, int32.
        correlation: joins a device's activity with the host's call that issued it, int64.
        external_id: joins host calls and device activity with the innermost operator, int64; absent
            in some traces.
        device: ordinal of the device of a device's activity, int16. On a host's call -1.
        stream: stream of a device's activity, int32.
        moved_bytes: size of a copy or fill; of a collective's kernel or `record_param_comms`
            what this rank sends; int64.
        shapes: code into `shape_texts`: JSON of "Input Dims" (`[[64, 128], [128, 32], []]`), int32.
        types: code into `type_texts`: JSON of "Input type" (`["float", "float", "Scalar"]`), int32.
        inputs: code into `input_texts`: JSON of "Concrete Inputs" (`["", "", "1"]`), int32.
        sequence: autograd's "Sequence number", int64.
        forward_thread: "Fwd thread id": 0 on a forward operator, the forward thread's number on a
            backward one, int64.
        memory_time_ns: one row an allocation or free of `profile_memory`: its time since
            `origin_ns`, int64.
        memory_device: its device, -1 for the host, int16.
        memory_delta_bytes: what it changed, negative for a free, int64.
        memory_allocated_bytes / memory_reserved_bytes: the allocator's totals after it; -1
            where not recorded, int64.
        names / shape_texts / type_texts / input_texts / threads: what the codes mean.
        origin_ns: nanoseconds since the epoch (or the trace's own zero, see `is_epoch`) of time 0.
        is_epoch: whether `origin_ns` counts from 1970.
        devices: `deviceProperties`, in order.
        world_size / backend: of `distributedInfo`; None and empty where not recorded. The rank is
            `Evidence.rank`.
        options: what the profiler says it recorded: "record_shapes", "with_stack",
            "profile_memory", "with_flops", "with_modules". On-demand traces do not say, so absence
            proves nothing.
        profiler_log: lines of the profiler's own log ("INFO"), at most 20.
        out_of_memory_count: "[OutOfMemory]" marks.
        is_truncated: the file ends early; the last event, torn, is dropped.
        skipped_count: events that were not understood and are not among the rows.
    """

    start_ns: "Times"
    duration_ns: "Times"
    name: "Codes"
    category: "npt.NDArray[np.uint8]"
    thread: "Codes"
    correlation: "Times"
    external_id: "Times"
    device: "npt.NDArray[np.int16]"
    stream: "Codes"
    moved_bytes: "Times"
    shapes: "Codes"
    types: "Codes"
    inputs: "Codes"
    sequence: "Times"
    forward_thread: "Times"
    memory_time_ns: "Times"
    memory_device: "npt.NDArray[np.int16]"
    memory_delta_bytes: "Times"
    memory_allocated_bytes: "Times"
    memory_reserved_bytes: "Times"
    names: tuple[str, ...]
    shape_texts: tuple[str, ...] = ()
    type_texts: tuple[str, ...] = ()
    input_texts: tuple[str, ...] = ()
    threads: tuple[Thread, ...]
    origin_ns: int = 0
    is_epoch: bool = False
    devices: tuple[TracedDevice, ...] = ()
    world_size: int | None = None
    backend: str = ""
    options: frozenset[str] = frozenset()
    profiler_log: tuple[str, ...] = ()
    out_of_memory_count: int = 0
    is_truncated: bool = False
    skipped_count: int = 0

    @property
    def event_count(self) -> int:
        """Rows."""
        return len(self.start_ns)

    @property
    def end_ns(self) -> "Times":
        """Start plus duration, nanoseconds since `origin_ns`."""
        return self.start_ns + self.duration_ns

    def ends_ns(self, rows: "Indices | Flags") -> "Times":
        """Start plus duration of some rows only: all of them, as `end_ns`, take a hundredth of a second for a million events."""
        ends: Times = self.start_ns[rows] + self.duration_ns[rows]
        return ends

    @property
    def has_device_activity(self) -> bool:
        """Whether any kernel, copy or fill of a device is recorded."""
        return bool(self.mask_of(*DEVICE_ACTIVITY).any())

    @property
    def has_launches(self) -> bool:
        """Whether calls of the runtime or driver are recorded."""
        return bool(self.mask_of(*HOST_CALLS).any())

    @property
    def has_shapes(self) -> bool:
        """Whether any operator carries its input shapes."""
        return bool(self.shape_texts)

    @property
    def has_python(self) -> bool:
        """Whether Python frames are recorded."""
        return bool(self.mask_of(Category.PYTHON).any())

    def mask_of(self, *categories: Category) -> "Flags":
        """True at the rows of these categories (one at least); bool, as long as the columns."""
        mask: Flags = self.category == int(categories[0])
        for category in categories[1:]:
            mask |= self.category == int(category)
        return mask

    def of_category(self, *categories: Category, device: int | None = None) -> "Indices":
        """Indices of the rows of these categories, in order of their start.

        Args:
            categories: one or more.
            device: only rows of this device.
        """
        mask = self.mask_of(*categories)
        if device is not None:
            mask &= self.device == device
        return self.in_order(mask.nonzero()[0])

    def kernels(self, device: int | None = None) -> "Indices":
        """Indices of the kernels, collectives among them, in order of their start."""
        return self.of_category(Category.KERNEL, device=device)

    def activity(self, device: int | None = None) -> "Indices":
        """Indices of kernels, copies and fills, in order of their start."""
        return self.of_category(*DEVICE_ACTIVITY, device=device)

    def host_calls(self) -> "Indices":
        """Indices of runtime and driver calls, in order of their start."""
        return self.of_category(*HOST_CALLS)

    def in_order(self, rows: "Indices") -> "Indices":
        """Some rows in order of their start; of equal starts the longer, containing one first."""
        starts = self.start_ns[rows]
        if (starts[1:] > starts[:-1]).all():
            return rows
        rows = rows[(-self.duration_ns[rows]).argsort(kind="stable")]
        return rows[self.start_ns[rows].argsort(kind="stable")]

    def active_devices(self) -> tuple[int, ...]:
        """Ordinals of the devices with activity, sorted."""
        return tuple(sorted(set(self.device[self.mask_of(*DEVICE_ACTIVITY)].tolist())))

    def name_of(self, row: int) -> str:
        """The name of the event in a row."""
        return self.names[int(self.name[row])]

    def thread_of(self, row: int) -> Thread:
        """Process and thread (or device and stream) of the event in a row."""
        return self.threads[int(self.thread[row])]

    def device_properties(self, device: int) -> TracedDevice | None:
        """What is recorded about a device; None where nothing is."""
        return next((item for item in self.devices if item.index == device), None)

    def digest(self) -> str:
        """A hash of all columns, tables and attributes, hexadecimal."""
        import hashlib  # noqa: PLC0415 - only comparisons need it
        from dataclasses import fields  # noqa: PLC0415 - the same

        state = hashlib.blake2b(digest_size=16)
        for field in fields(self):
            value = getattr(self, field.name)
            state.update(field.name.encode())
            if isinstance(value, frozenset):
                value = sorted(value)
            # Arrays alone carry a buffer; all else in the record has a repr that tells it whole.
            state.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
        return state.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KinetoTrace) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash((self.source, self.event_count))
