"""What each kind of evidence is called, and how to collect it; skipped rules tell users."""

from advisor.model.evidence import Evidence

_SNAPSHOT = (
    "torch.cuda.memory._record_memory_history(max_entries=100_000) at the start, "
    "torch.cuda.memory._dump_snapshot('snapshot.pickle') at the failure or after a step"
)
_TRACE = (
    "torch.profiler.profile(activities=[CPU, CUDA], record_shapes=True, "
    "schedule=schedule(wait=1, warmup=1, active=3)) around a few steps, then export_chrome_trace('trace.json')"
)

_ATTACH = "advisor.client.attach() in the training, then advisor-cli diagnose"

HOW: dict[str, tuple[str, str]] = {
    "Failure": ("a failure message", "the program's log with the whole error and traceback"),
    "LogText": ("a log", "the program's output, saved to a file"),
    "AllocatorSnapshot": ("an allocator snapshot", _SNAPSHOT),
    "MemoryLedger": ("a snapshot, or an out-of-memory message with the device's total", _SNAPSHOT),
    "AllocatorRecord": ("an allocator snapshot", _SNAPSHOT),
    "KinetoTrace": ("a profiler trace", _TRACE),
    "StepBreakdown": ("a profiler trace", _TRACE),
    "KernelMix": ("a profiler trace with device activity", _TRACE),
    "LaunchProfile": ("a profiler trace with launches", _TRACE),
    "Synchronizations": ("a profiler trace with host calls", _TRACE),
    "CopyProfile": ("a profiler trace with device activity", _TRACE),
    "InputWait": ("a profiler trace of a loop over a DataLoader", _TRACE),
    "Communication": ("a profiler trace with collectives", _TRACE),
    "StepTimes": ("a profiler trace with steps (profiler.step() in the loop)", _TRACE),
    "DriverAllocations": ("a profiler trace with host calls", _TRACE),
    "OptimizerSteps": ("a profiler trace with optimizer steps", _TRACE),
    "AttentionMix": ("a profiler trace with device activity", _TRACE),
    "OperatorCosts": ("a profiler trace with operators", _TRACE),
    "DecodeSigns": ("a profiler trace of generation", _TRACE),
    "OperatorTable": ("an operator table", "print(profiler.key_averages().table(sort_by='self_cuda_time_total'))"),
    "MemorySummary": ("a memory summary", "print(torch.cuda.memory_summary()) right after the failure"),
    "NodeReading": ("a reading of the node's GPUs", "nvidia-smi -q > nvidia-smi.txt while the job runs"),
    "KernelLog": ("the kernel's log", "sudo dmesg -T > dmesg.txt"),
    "DeviceCeilings": ("a device of the catalogue", "--device NAME, for example --device 'NVIDIA A100-SXM4-80GB'"),
    "RunSteps": ("the steps of a run", _ATTACH),
    "LoopTimes": ("the steps of a run", _ATTACH),
    "RunEnd": ("how a run ended", _ATTACH),
    "RunRecord": ("the record of a run", _ATTACH),
    "TransformerShape": ("the model's shape", "--model NAME or --model config.json"),
}

_IN_SHORT: dict[str, tuple[str, str]] = {
    HOW["Failure"][1]: ("the program's error", "its log with the whole traceback"),
    HOW["LogText"][1]: ("the program's log", "its output, saved to a file"),
    _SNAPSHOT: ("an allocator snapshot", "torch.cuda.memory._dump_snapshot"),
    _TRACE: ("a profiler trace", "torch.profiler, export_chrome_trace"),
    HOW["OperatorTable"][1]: ("an operator table", "print(prof.key_averages().table())"),
    HOW["MemorySummary"][1]: ("a memory summary", "print(torch.cuda.memory_summary())"),
    HOW["NodeReading"][1]: ("the GPUs' state", "nvidia-smi -q > nvidia-smi.txt"),
    HOW["KernelLog"][1]: ("the kernel's log", HOW["KernelLog"][1]),
    HOW["DeviceCeilings"][1]: ("the device", "--device NAME"),
    HOW["TransformerShape"][1]: ("the model's shape", "--model NAME or config.json"),
    _ATTACH: ("a watched run", "advisor.client.attach()"),
}
"""For each way of collecting, what it gives and how, short enough for one line."""


def in_short(collect_with: str) -> tuple[str, str]:
    """What a way of collecting gives and how to go it, in a few words; the way itself where it has no shorter words."""
    return _IN_SHORT.get(collect_with, (collect_with, ""))


def what_it_is(item: Evidence) -> str:
    """What a piece of evidence is called in the list of what was read."""
    name = HOW.get(type(item).__name__, (type(item).__name__, ""))[0]
    return name.removeprefix("an ").removeprefix("a ").removeprefix("the ")


def needs_in_words(kinds: tuple[str, ...], *, is_alternative: bool = False) -> tuple[tuple[str, ...], str]:
    """What the missing kinds are called, and how to collect the first of them.

    Of kinds that are collected in the same way the last is named: a rule's needs go from the general to the specific.

    Args:
        kinds: their names, at least one.
        is_alternative: any one of them will do; then one phrase names them all.
    """
    by_way = {HOW[kind][1]: HOW[kind][0] for kind in kinds}
    names = tuple(by_way.values())
    return ((" or ".join(names),) if is_alternative else names), HOW[kinds[0]][1]
