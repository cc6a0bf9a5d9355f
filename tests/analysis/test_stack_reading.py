import pytest
from ingest.a_snapshot import ADAMW, ADAMW_STATES, AUTOGRAD, BATCH, FORWARD, MAIN, MOVE, STEP, a_frame, a_raw_snapshot, an_event, read

from advisor.analysis.stack_frames import Role
from advisor.analysis.stack_reading import read_stacks

CPP = a_frame("at::native::empty_cuda(c10::ArrayRef<long>)", "??", 0)
ENGINE = a_frame("torch::autograd::Engine::evaluate_function(std::shared_ptr<torch::autograd::GraphTask>&)", "??", 0)
C_SOURCE = a_frame("cfunction_call", "/usr/src/python/methodobject.c", 537)


def reading(frames):
    snapshot = read(a_raw_snapshot(traces=[[an_event(frames=frames), an_event(frames=[MAIN])]]))
    return read_stacks(snapshot)[0]


@pytest.mark.parametrize(
    ("frames", "role"),
    [
        (FORWARD, Role.FORWARD),
        (AUTOGRAD, Role.BACKWARD),
        (STEP, Role.OPTIMIZER),
        (ADAMW, Role.OPTIMIZER),
        (MOVE, Role.LOADING),
        (BATCH, Role.PYTHON),
        ([CPP, ENGINE], Role.BACKWARD),
        ([CPP, C_SOURCE, *FORWARD], Role.FORWARD),
        ([a_frame("__init__", "/app/layers.py"), *FORWARD[-1:]], Role.CONSTRUCTION),
        ([a_frame("__init__", "/env/torch/nn/modules/linear.py"), MAIN], Role.LOADING),
        ([a_frame("update", "/env/transformers/cache_utils.py"), *FORWARD], Role.CACHE),
        ([a_frame("all_reduce", "/env/torch/distributed/distributed_c10d.py"), *FORWARD], Role.COMMUNICATION),
        ([a_frame("_engine_run_backward", "/env/torch/autograd/graph.py"), MAIN], Role.BACKWARD),
        ([a_frame("backward", "/app/kernels.py"), a_frame("apply", "/env/torch/autograd/function.py")], Role.BACKWARD),
        ([a_frame("step", "/env/torch/optim/lr_scheduler.py"), MAIN], Role.PYTHON),
        (
            [
                a_frame("forward", "C:\\env\\torch\\nn\\functional.py"),
                a_frame("_call_impl", "C:\\env\\torch\\nn\\modules\\module.py"),
                MAIN,
            ],
            Role.FORWARD,
        ),
        ([a_frame("step", "/app/env.py"), MAIN], Role.PYTHON),
        ([a_frame("_call_impl", "/app/module.py"), MAIN], Role.PYTHON),
        ([a_frame("update", "/app/my_transformers/cache_utils.py"), MAIN], Role.PYTHON),
    ],
)
def test_the_innermost_frame_that_decides_decides(frames, role):
    assert reading(frames).role is role


def test_a_closure_s_forward_inside_an_optimizer_s_step_is_forward():
    assert reading([*FORWARD[:2], *STEP]).role is Role.FORWARD


def test_an_optimizer_in_a_gradient_hook_runs_on_autograd_s_thread():
    hook = reading([*ADAMW[:2], a_frame("hook", "/app/train.py")])
    assert (hook.role, hook.on_autograd_thread) == (Role.OPTIMIZER, True)


def test_functions_that_make_an_optimizer_s_state_are_known():
    assert reading(ADAMW_STATES).creates_state
    assert not reading(ADAMW).creates_state
    assert reading(ADAMW).in_library
    assert not reading(STEP).in_library


def test_the_label_is_the_innermost_frame_of_the_user_s_own():
    torch = a_frame("linear", "/env/site-packages/torch/nn/functional.py", 2900)
    assert reading([CPP, torch, *FORWARD]).label == "model.py:21 in forward"
    assert reading([CPP, torch, *FORWARD]).frames == ("model.py:21 in forward", "train.py:80 in <module>")


def test_backward_without_python_is_labelled_by_its_autograd_node():
    node = a_frame("torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)", "??", 0)
    accumulate = a_frame("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)", "??", 0)
    assert reading([CPP, node, ENGINE]).label == "autograd: MmBackward0"
    assert reading([CPP, accumulate, ENGINE]).accumulates
    assert reading([CPP, accumulate, ENGINE]).label == "autograd: AccumulateGrad"


def test_without_a_thread_start_anywhere_threads_are_not_judged():
    embedded = [a_frame("run", "/app/embedded.py")]
    (found,) = read_stacks(read(a_raw_snapshot(traces=[[an_event(frames=embedded)]])))
    assert found.role is Role.PYTHON
