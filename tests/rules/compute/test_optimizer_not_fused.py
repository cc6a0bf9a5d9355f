import pytest

from advisor.model.tables import OperatorRow
from advisor.rules.compute.optimizer_not_fused import optimizer_not_fused
from advisor.rules.samples import a_breakdown
from advisor.rules.samples_time import a_log_that_mentions, a_table, an_optimizer

LOOP = {"kernel_count": 5_000, "multi_tensor_count": 0, "fused_count": 0}


def check(breakdown=None, optimizer=None, table=None, log=None):
    return optimizer_not_fused.check(breakdown, optimizer, None, table, log, None)


def with_optimizer(**fields):
    return check(a_breakdown(), an_optimizer(**(LOOP | fields)))


@pytest.mark.parametrize(("exposed", "fires"), [(0.029, False), (0.031, True)])
def test_its_kernels_and_the_idle_time_between_them_count_together(exposed, fires):
    found = with_optimizer(device_seconds=0.02, exposed_seconds=exposed)
    assert (found is not None) is fires


@pytest.mark.parametrize(("count", "fires"), [(999, False), (1_001, True)])
def test_a_hundred_kernels_an_update_are_many(count, fires):
    found = with_optimizer(kernel_count=count, exposed_seconds=0.2)
    assert (found is not None) is fires


@pytest.mark.parametrize(("many", "fires"), [(2_501, False), (2_499, True)])
def test_an_optimizer_that_handles_many_tensors_at_once_is_fused_enough(many, fires):
    found = with_optimizer(multi_tensor_count=many, exposed_seconds=0.2)
    assert (found is not None) is fires


def test_without_joined_launches_it_does_not_judge():
    assert with_optimizer(device_seconds=None, exposed_seconds=None) is None


@pytest.mark.parametrize(("seconds", "fires"), [(0.149, False), (0.151, True)])
def test_a_table_fires_by_the_optimizers_own_cpu_time(seconds, fires):
    row = OperatorRow(name="Optimizer.step#AdamW.step", calls=9, self_cpu_seconds=seconds)
    assert (check(table=a_table(row, self_cpu_total_seconds=1.0)) is not None) is fires


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("~138 ms CPU per step vs ~13 ms GPU; fused=True 43 ms", True),
        ("AdamW takes 33% of the step", True),
        ("optimizer = torch.optim.AdamW(params, lr=1e-4, fused=True)", False),
    ],
)
def test_a_log_must_give_figures_of_time_and_not_only_name_an_optimizer(text, fires):
    topic = "adamw" if "AdamW" in text else "fused-optimizer"
    assert (check(log=a_log_that_mentions(topic, text)) is not None) is fires


@pytest.mark.parametrize("name", ["aten::_foreach_addcdiv_", "aten::_fused_adamw_"])
def test_a_table_with_operators_for_many_tensors_does_not_fire(name):
    rows = (OperatorRow(name="Optimizer.step#AdamW.step", self_cpu_seconds=0.4), OperatorRow(name=name, self_cpu_seconds=0.1))
    assert check(table=a_table(*rows, self_cpu_total_seconds=1.0)) is None


def test_a_table_alone_is_a_weak_witness_since_other_work_may_run_inside_the_mark():
    row = OperatorRow(name="Optimizer.step#AdamW.step", self_cpu_seconds=0.4)
    found = check(table=a_table(row, self_cpu_total_seconds=1.0))
    assert found.confidence <= 0.4
    assert found.settles is not None


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("88% of the step is matmul, 3% copies, 2% optimizer (fused AdamW), 3% idle", False),
        ("61% of the step is matmul, 24% optimizer, 3% idle", True),
        ("AdamW 2.5% of step with FSDP1, 33% with FSDP2", True),
        ("AdamW takes 4.9% of the step", False),
        ("AdamW takes 5.1% of the step", True),
        ("the optimizer needs 140 ms of CPU in each step", True),
    ],
)
def test_a_log_must_give_the_optimizer_a_share_that_matters(text, fires):
    assert (check(log=a_log_that_mentions("adamw", text)) is not None) is fires
