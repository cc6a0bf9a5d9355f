"""Read each distinct stack once: what the allocation was for, as far as its frames tell, and how to call the place."""

import re
from collections.abc import Iterator
from functools import lru_cache

from advisor.analysis.stack_frames import (
    COMPILED_BACKWARD,
    MEANINGS,
    NOT_AN_OPTIMIZER,
    PLUMBING,
    PLUMBING_FILES,
    RECOMPUTES,
    THREAD_STARTS,
    Role,
    is_python,
    normalized,
)
from advisor.model.dataclass import dataclass
from advisor.model.failure import Frame
from advisor.model.snapshot import AllocatorSnapshot

MOST_FRAMES = 12
"""Frames of a site's stack that are kept."""

ENGINE = ("torch::autograd::Engine::", "torch::autograd::python::PythonEngine::")
"""C++ names that begin so stand below a backward pass only; other names of torch::autograd occur in forward passes too."""

GENERATED = re.compile(r"^torch::autograd::generated::(\w+?)(?:_apply_functional)?(?:::apply)?\(")
ACCUMULATES = re.compile(r"^(?:void )?torch::autograd::AccumulateGrad::")

STEP_WRAPPERS = ("wrapper", "profile_hook_step")
"""What torch.optim.Optimizer puts around every `step`, the user's own included."""

NO_STACK = "(no stack recorded)"
NO_PYTHON = "(autograd thread, no Python frames)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackReading:
    """What one stack says.

    Attributes:
        role: what the allocation was for.
        label: the place, "model.py:120 in forward".
        frames: the meaningful frames, innermost first, at most 12.
        creates_state: the frames are of a function that makes an optimizer's state.
        accumulates: the frames are of the autograd node that stores a parameter's gradient.
        on_autograd_thread: not on a thread that Python started.
        zeroes_gradients: it is `zero_grad` that ran.
        in_library: an optimizer of a library, whose states are made in known functions only; False for the user's own `step`.
    """

    role: Role
    label: str
    frames: tuple[str, ...] = ()
    creates_state: bool = False
    accumulates: bool = False
    on_autograd_thread: bool = False
    zeroes_gradients: bool = False
    in_library: bool = False


UNRECORDED = StackReading(role=Role.UNKNOWN, label=NO_STACK)


def read_stacks(snapshot: AllocatorSnapshot) -> tuple[StackReading, ...]:
    """The reading of every stack of a snapshot, by its index."""
    if snapshot.is_from_profiler:
        return tuple(_names_only([snapshot.frames[index] for index in stack]) for stack in snapshot.stacks)
    # Without any such frame (a program that embeds Python) the outermost frame tells nothing of the thread.
    has_thread_starts = any(frame.function in THREAD_STARTS for frame in snapshot.frames)
    has_python = any(is_python(frame) for frame in snapshot.frames)
    return tuple(
        _reading([snapshot.frames[index] for index in stack], judge_threads=has_thread_starts, has_python=has_python)
        for stack in snapshot.stacks
    )


def _reading(frames: list[Frame], *, judge_threads: bool, has_python: bool) -> StackReading:
    if not frames and not has_python:  # a program in C++: nothing tells its threads apart
        return UNRECORDED
    if not frames:
        return StackReading(role=Role.BACKWARD, label=NO_PYTHON, on_autograd_thread=True)
    python = [frame for frame in frames if is_python(frame)]
    in_engine = any(frame.function.startswith(ENGINE) for frame in frames if not is_python(frame))
    elsewhere = judge_threads and bool(python) and python[-1].function not in THREAD_STARTS
    on_autograd_thread = in_engine or elsewhere
    role, decisive, creates_state = _decide(python)
    inside_backward = on_autograd_thread or any(
        meaning.fits(normalized(frame), frame.function) for frame in python for meaning in (*RECOMPUTES, *COMPILED_BACKWARD)
    )
    if inside_backward:
        if role is Role.FORWARD:
            role = Role.RECOMPUTE
        elif role in (Role.UNKNOWN, Role.PYTHON, Role.CONSTRUCTION):
            role = Role.BACKWARD
    meaningful = tuple(_meaningful(python))
    return StackReading(
        role=role,
        label=_label(frames, role, decisive, meaningful),
        frames=meaningful or tuple(_place(frame) for frame in python[:MOST_FRAMES]),
        creates_state=creates_state,
        accumulates=any(ACCUMULATES.match(frame.function) for frame in frames),
        on_autograd_thread=on_autograd_thread,
        zeroes_gradients=any(frame.function == "zero_grad" for frame in python),
        in_library=role is Role.OPTIMIZER and decisive is not None and decisive.function not in STEP_WRAPPERS,
    )


def _names_only(frames: list[Frame]) -> StackReading:
    """The profiler's frames are names without files, and an empty stack of its is no thread of autograd's."""
    names = tuple(frame.function for frame in frames[:MOST_FRAMES])
    return StackReading(role=Role.UNKNOWN, label=names[0] if names else NO_STACK, frames=names)


def _decide(python: list[Frame]) -> tuple[Role, Frame | None, bool]:
    """The role of the innermost frame that decides, that frame, and whether it creates an optimizer's state."""
    for frame in python:
        found = _meaning_of(normalized(frame), frame.function)
        if found is not None:
            return found[0], frame, found[1]
    innermost = next((frame for frame in python if not _is_plumbing(frame)), None)
    if innermost is not None and innermost.function == "__init__":
        return Role.CONSTRUCTION, None, False
    return (Role.PYTHON if python else Role.UNKNOWN), None, False


@lru_cache(maxsize=4096)
def _meaning_of(path: str, function: str) -> tuple[Role, bool] | None:
    if path.endswith(f"/{NOT_AN_OPTIMIZER}"):
        return None
    for meaning in MEANINGS:
        if meaning.fits(path, function):
            return meaning.role, meaning.creates_state
    return None


def _is_plumbing(frame: Frame) -> bool:
    path = normalized(frame)
    return any(f"/{folder}" in path for folder in PLUMBING) or path.endswith(PLUMBING_FILES)


def _meaningful(python: list[Frame]) -> Iterator[str]:
    found = (frame for frame in python if not _is_plumbing(frame))
    for frame, _ in zip(found, range(MOST_FRAMES), strict=False):
        yield _place(frame)


def _label(frames: list[Frame], role: Role, decisive: Frame | None, meaningful: tuple[str, ...]) -> str:
    if role is Role.BACKWARD and not meaningful:
        return next(filter(None, map(_autograd_node, frames)), NO_PYTHON)
    if meaningful:
        return meaningful[0]
    if decisive is not None:
        return _place(decisive)
    return next((_place(frame) for frame in frames if is_python(frame)), NO_STACK)


def _autograd_node(frame: Frame) -> str:
    if ACCUMULATES.match(frame.function):
        return "autograd: AccumulateGrad"
    node = GENERATED.match(frame.function)
    return f"autograd: {node.group(1)}" if node else ""


def _place(frame: Frame) -> str:
    name = frame.filename.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{frame.line} in {frame.function}"
