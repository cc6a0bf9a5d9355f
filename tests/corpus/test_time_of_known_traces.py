"""Traces whose answer their source gives, and traces that prove nothing, through the whole engine."""

import pytest
from corpus_location import corpus

from advisor.cli.intake import gather
from advisor.engine.advise import advise
from advisor.model.finding import Severity

INPUT = {"input-bound", "synchronous-data-loader"}
KNOWN = "traces/pytorch+kineto/*resnet50_num_workers_{}__*.gz"


def report_of(path):
    return advise(gather([str(path)]).case)


def costs(report):
    return [item for item in report.diagnoses if item.finding.severity > Severity.INFO]


def files(pattern):
    found = sorted(corpus().glob(pattern))
    assert found, pattern
    return found


def test_a_loader_in_the_training_process_is_the_first_diagnosis():
    for path in files(KNOWN.format(0)):
        report = report_of(path)
        assert costs(report)[0].name in INPUT, path.name
        assert report.faulted == ()


def test_the_same_job_with_workers_is_not_called_input_bound():
    for path in files(KNOWN.format(4)):
        report = report_of(path)
        assert not INPUT & {item.name for item in costs(report)}, path.name


def test_a_window_full_of_warm_up_is_said_to_be_one_behind_what_the_later_steps_lose():
    (without_workers,) = files("traces/pytorch+kineto/*autograd_api_num_workers_0*.gz")
    assert [item.name for item in costs(report_of(without_workers))] == ["synchronous-data-loader", "warm-up-in-window"]
    (with_workers,) = files("traces/pytorch+kineto/*autograd_api_num_workers_4*.gz")
    assert [item.name for item in costs(report_of(with_workers))] == ["warm-up-in-window"]


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*/tests__traces__h100__facebook_timesformer*.gz", "attention-not-fused"),
        ("*/941dea2__*train_resnet18.json.gz", "allocator-stalls"),
        ("*/et_replay__tests__inputs__resnet_kineto.json.gz", "input-bound"),
        ("*/tests__data__df_index_resolver*.gz", "launch-bound"),
        ("*/tests__data__timeline_analysis*.gz", "exposed-communication"),
        ("*/tests__data__negative_queue_length*.gz", "exposed-communication"),
    ],
)
def test_other_jobs_have_the_bottleneck_that_their_figures_show(pattern, name):
    (path,) = files(f"traces/{pattern}")
    assert costs(report_of(path))[0].name == name


@pytest.mark.parametrize(
    "pattern",
    [
        "*/*__docs__traces__*_fix_trace.json",
        "*/*triton_example*.gz",
        "*/*trace_compare*.gz",
        "*/*cuda_event_sync*.gz",
        "*/*simple_add*.gz",
        "*/*alexnet*.gz",
        "*/*large_integer_trace*.gz",
        "*/*backward_thread.json",
        "*/*trace_file_list*.gz",
        "*/*normalization_layer_test*.gz",
        "*/*gaunernst_bert-small*.gz",
        "*/*minitoy*.gz",
        "*/*step_based_trace*.gz",
        "*/*torch_compile_triton*.gz",
        "*/*gpu_only_trace*.gz",
    ],
)
def test_fragments_and_fixtures_prove_nothing(pattern):
    for path in files(f"traces/{pattern}"):
        report = report_of(path)
        assert report.faulted == ()
        assert all(item.confidence <= 0.5 for item in report.diagnoses), path.name


@pytest.mark.parametrize("pattern", ["*/*cpu_only*.gz", "*/*rank_non_gpu*.gz", "*/*cupti_profiler*.gz", "*/*mtia*.gz"])
def test_without_device_activity_no_rule_speaks_of_an_idle_device(pattern):
    for path in files(f"traces/{pattern}"):
        assert report_of(path).diagnoses == (), path.name


def test_generation_out_of_graphs_is_bound_by_memory_and_not_by_launches():
    for path in files("traces/*/*inference__*decode*.gz"):
        names = {item.name for item in report_of(path).diagnoses}
        assert "decode-memory-bound" in names, path.name
        assert "launch-bound" not in names, path.name


def test_no_gain_is_larger_than_the_step():
    for path in files("traces/*/*.gz"):
        if "_et.json" in path.name or "Straggler" in str(path):
            continue
        report = report_of(path)
        for item in report.diagnoses:
            impact = item.finding.impact
            assert impact.step_ratio is None or 0 <= impact.step_ratio <= 1
            if impact.recoverable_seconds_per_step is not None:
                assert impact.recoverable_seconds_per_step <= report.time.step_seconds
