"""Inputs of jobs that run well, through the whole program: nothing of them is a problem."""

import json

import pytest
from analysis.hand_made_trace import HandMadeTrace
from healthy_texts import TEXTS

from advisor.cli.intake import gather
from advisor.engine.advise import advise
from advisor.model.finding import Severity

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"


def problems(path):
    report = advise(gather([str(path)]).case)
    assert report.faulted == ()
    return [(item.code, item.finding.statement) for item in report.diagnoses if item.finding.severity > Severity.INFO]


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_of_a_healthy_job_names_no_problem(name, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS[name], "utf-8")
    assert problems(path) == []


def busy_steps(beside):
    """Six steps of 60 kernels of 0.4 ms, launched far ahead, each ended by a wait while the device computes."""
    trace = HandMadeTrace()
    start = 0
    for number in range(6):
        end = start + 20 + 60 * 402
        for kernel in range(60):
            trace.operator("aten::mm", start + 10 * kernel, 8)
            trace.kernel(GEMM, start + 20 + 402 * kernel, 400, launched=start + 10 * kernel + 1)
        beside(trace, start)
        trace.call("cudaStreamSynchronize", start + 5_000, end - start - 5_000)
        trace.step(number, start, end + 5 - start)
        start = end + 5
    return trace


def with_allocations(trace, start):
    for number in range(5):
        trace.call("cudaMalloc", start + 700 + 200 * number, 150)


HIDDEN = {
    "nothing beside": lambda *_: None,
    "a loader's wait": lambda trace, start: trace.annotation(LOADER, start + 2_000, 2_500),
    "a pinned copy": lambda trace, start: trace.copy(
        "Memcpy HtoD (Pinned -> Device)", start + 3_000, 2_000, 50_000_000, launched=start + 620, stream=9
    ),
    "a pageable copy": lambda trace, start: trace.copy(
        "Memcpy HtoD (Pageable -> Device)", start + 3_000, 900, 5_000_000, launched=start + 1_000, launch_duration=2_900, stream=9
    ),
    "driver allocations": with_allocations,
}


@pytest.mark.parametrize("beside", HIDDEN)
def test_what_a_busy_device_hides_is_no_problem(beside, tmp_path):
    trace = busy_steps(HIDDEN[beside])
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"deviceProperties": trace.devices, "traceEvents": trace.events}), "utf-8")
    assert problems(path) == []
