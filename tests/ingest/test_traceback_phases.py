import pytest

from advisor.ingest.traceback_phases import phase_of
from advisor.model.failure import Frame, Phase

MODULE = "/env/site-packages/torch/nn/modules/module.py"
LLAMA = "/env/site-packages/transformers/models/llama/modeling_llama.py"


def frames(*said: tuple[str, str, str]) -> list[Frame]:
    """File, function and code, outermost first."""
    return [Frame(filename=file, line=1, function=function, code=code) for file, function, code in said]


MAIN = ("/app/train.py", "main", "train(model)")
CALL = (MODULE, "_call_impl", "return forward_call(*args, **kwargs)")


@pytest.mark.parametrize(
    ("said", "phase"),
    [
        (
            [
                MAIN,
                ("/app/train.py", "train", "optimizer.step()"),
                ("/env/torch/optim/adamw.py", "_init_group", 'state["exp_avg"] = torch.zeros_like('),
            ],
            Phase.OPTIMIZER_STEP,
        ),
        ([MAIN, ("/app/train.py", "train", "scaler.step(optimizer)")], Phase.OPTIMIZER_STEP),
        (
            [
                MAIN,
                ("/env/torch/_tensor.py", "backward", "torch.autograd.backward("),
                ("/env/torch/autograd/__init__.py", "backward", "_engine_run_backward("),
            ],
            Phase.BACKWARD,
        ),
        ([MAIN, ("/env/accelerate/accelerator.py", "backward", "loss.backward(**kwargs)")], Phase.BACKWARD),
        (
            [
                MAIN,
                CALL,
                (LLAMA, "forward", "loss = self.loss_function(logits)"),
                ("/env/torch/nn/functional.py", "cross_entropy", "return torch._C._nn.cross_entropy_loss("),
            ],
            Phase.LOSS,
        ),
        ([MAIN, CALL, (LLAMA, "forward", "logits = logits.float()")], Phase.LOSS),
        (
            [
                MAIN,
                CALL,
                (LLAMA, "forward", "logits = self.lm_head(hidden_states)"),
                CALL,
                ("/env/torch/nn/modules/linear.py", "forward", "return F.linear(input, self.weight)"),
            ],
            Phase.LOSS,
        ),
        ([MAIN, CALL, (LLAMA, "forward", "attn_weights = torch.matmul(q, k)")], Phase.FORWARD),
        (
            [
                ("/app/run.py", "<module>", "m = AutoModel.from_pretrained(name)"),
                ("/env/transformers/modeling_utils.py", "from_pretrained", ""),
            ],
            Phase.LOADING,
        ),
        (
            [
                ("/app/run.py", "<module>", "model.to('cuda')"),
                (MODULE, "to", "return self._apply(convert)"),
                (MODULE, "_apply", "param_applied = fn(param)"),
                (MODULE, "convert", "return t.to("),
            ],
            Phase.LOADING,
        ),
        ([MAIN, ("/app/train.py", "train", "batch = batch.to(device)")], Phase.DATA),
        ([MAIN, ("/env/torch/utils/data/dataloader.py", "_next_data", "data = _utils.pin_memory.pin_memory(data)")], Phase.DATA),
        (
            [
                MAIN,
                ("/env/transformers/trainer.py", "_save_checkpoint", ""),
                ("/env/accelerate/accelerator.py", "get_state_dict", "state_dict = model.state_dict()"),
            ],
            Phase.CHECKPOINT,
        ),
        (
            [
                MAIN,
                ("/env/transformers/trainer.py", "evaluation_loop", "logits = self.gather_function((logits))"),
                ("/env/accelerate/operations.py", "_gpu_gather_one", "torch.empty("),
            ],
            Phase.EVALUATION,
        ),
        ([MAIN, ("/app/train.py", "validate", "out = model(x)"), CALL, (LLAMA, "forward", "h = self.mlp(h)")], Phase.EVALUATION),
        (
            [
                MAIN,
                ("/env/transformers/generation/utils.py", "generate", "result = self._sample("),
                ("/env/transformers/generation/utils.py", "_sample", "outputs = self(**inputs)"),
                CALL,
                (LLAMA, "forward", "h = self.mlp(h)"),
            ],
            Phase.GENERATION,
        ),
        (
            [
                ("/env/vllm/v1/engine/core.py", "_initialize_kv_caches", ""),
                ("/env/vllm/v1/worker/gpu_worker.py", "determine_available_memory", "self.model_runner.profile_run()"),
                CALL,
                ("/env/vllm/model.py", "forward", "x = self.mlp(x)"),
            ],
            Phase.ENGINE_START,
        ),
        ([("/app/a.py", "main", "x = torch.zeros(10**12)")], Phase.UNKNOWN),
        ([], Phase.UNKNOWN),
    ],
)
def test_the_innermost_meaningful_frame_decides(said: list[tuple[str, str, str]], phase: Phase) -> None:
    assert phase_of(frames(*said)) is phase


def test_a_checkpointed_block_that_is_run_again_is_backward() -> None:
    said = frames(
        MAIN,
        ("/app/train.py", "train", "loss.backward()"),
        ("/env/torch/autograd/__init__.py", "backward", "_engine_run_backward("),
        ("/env/torch/utils/checkpoint.py", "recompute_fn", "fn(*args, **kwargs)"),
        CALL,
        (LLAMA, "forward", "h = self.mlp(h)"),
    )

    assert phase_of(said) is Phase.BACKWARD


def test_a_step_that_calls_the_training_step_as_its_closure_is_not_stepping() -> None:
    said = frames(
        (
            "/env/lightning/pytorch/core/module.py",
            "optimizer_step",
            "optimizer.step(closure=optimizer_closure)",
        ),
        ("/env/torch/optim/adamw.py", "step", "loss = closure()"),
        (
            "/env/lightning/pytorch/strategies/strategy.py",
            "training_step",
            "return self.lightning_module.training_step(*args)",
        ),
        CALL,
        (LLAMA, "forward", "h = self.mlp(h)"),
    )

    assert phase_of(said) is Phase.FORWARD


def test_an_optimizer_stepped_inside_backward_is_the_optimizer() -> None:
    said = frames(
        ("/app/train.py", "train", "loss.backward()"),
        ("/env/torch/autograd/__init__.py", "backward", "_engine_run_backward("),
        ("/app/hooks.py", "hook", "optimizers[p].step()"),
        ("/env/torch/optim/adam.py", "_init_group", ""),
    )

    assert phase_of(said) is Phase.OPTIMIZER_STEP


def test_windows_paths_are_paths() -> None:
    said = frames(("C:\\app\\train.py", "main", "opt.step()"), ("C:\\env\\torch\\optim\\sgd.py", "step", ""))

    assert phase_of(said) is Phase.OPTIMIZER_STEP
