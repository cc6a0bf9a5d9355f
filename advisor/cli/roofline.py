"""`advisor-cli roofline`: compute or bandwidth, and where a change pushes the bottleneck."""

import argparse

from advisor.cli import exit_codes
from advisor.cli.number_options import LARGEST_CONTEXT_TOKENS, MODEL_HELP, batch_list, whole_number
from advisor.cli.terminal import HelpText
from advisor.model.errors import WrongUsage

DESCRIPTION = """Say what a model can reach on a device, and what sets the limit.

Two numbers decide: how many operations the device does a second, and how many
bytes it reads a second. Generating text (decode) reads all weights for each
token and is bound by reading until the batch is large; reading a prompt
(prefill) and training are bound by computing. The answer is a floor: no program
with the same algorithm and precision is faster."""

EPILOG = """examples:
  advisor-cli roofline --device H100 --model llama-3-8b
      decode at batch 1, 32, 128 and 512: time, tokens a second, what binds
  advisor-cli roofline --device H100 --model llama-3-8b --phase prefill
  advisor-cli roofline --device 500TFLOPS,2TB/s --model 70B --batch 1
      a card and a model given by their numbers
  advisor-cli roofline --device H100 --model llama-3-8b --change weights=int4
      before and after a change

changes (--change KEY=VALUE; several together; a number or a factor):
  batch=x2  context=32768  weights=int4  compute=fp8  kv=fp8
  ffn=x2  n_kv=32  layers=16  device=H200
  experts=8/2        the FFN cut into 8 experts, of which a token passes 2
  experts=8x14336/2  8 experts of that width

exit codes: 0 an answer, 2 bad usage or an unreadable configuration
"""

DEFAULT_BATCHES = {"decode": "1,32,128,512", "prefill": "1", "train": "1"}
DEFAULT_CONTEXT_TOKENS = {"decode": 0, "prefill": 4096, "train": 4096}
"""Decode with a short cache; prompts and training sequences of 4,096 tokens."""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "roofline",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=HelpText,
    )
    parser.add_argument(
        "--device",
        required=True,
        metavar="D",
        help=("the GPU: a short name (H100, A100-80GB, L40S), what nvidia-smi prints, or 500TFLOPS,2TB/s,80GB"),
    )
    parser.add_argument("--model", required=True, metavar="M", help=MODEL_HELP)
    parser.add_argument(
        "--phase",
        choices=("decode", "prefill", "train"),
        default="decode",
        help=("decode: one token for each sequence; prefill: reading prompts; train: a whole step (decode by default)"),
    )
    parser.add_argument("--batch", metavar="LIST", help="sequences at a time, several with commas: 1,32,128,512")
    parser.add_argument(
        "--context",
        metavar="N",
        help=("decode: tokens already in each sequence's cache (0: a short cache, not counted); else tokens of a sequence"),
    )
    parser.add_argument(
        "--weights",
        metavar="DTYPE",
        default="bf16",
        help="fp32, bf16, fp16, fp8, int8, int4 (bf16)",
    )
    parser.add_argument("--compute", metavar="DTYPE", help="what the products run in (bf16 for quantized weights)")
    parser.add_argument("--kv", metavar="DTYPE", help="precision of the KV cache (bf16)")
    parser.add_argument("--checkpointing", action="store_true", help="train: the forward pass is done twice")
    parser.add_argument("--change", metavar="KEY=VALUE", nargs="+", action="extend", help="compare before and after")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the answer (text by default)")


def run(arguments: argparse.Namespace) -> int:
    """Answer; 0."""
    from advisor.analysis.dtype_sizes import COMPUTE_DTYPE, dtype_named  # noqa: PLC0415 - start-up time of --help
    from advisor.analysis.roofline import Phase, Scenario  # noqa: PLC0415 - the same
    from advisor.analysis.roofline_changes import apply_change  # noqa: PLC0415 - the same
    from advisor.cli import roofline_answer, roofline_json  # noqa: PLC0415 - the same
    from advisor.cli.model_option import model_of  # noqa: PLC0415 - the same
    from advisor.hardware.catalogue import require  # noqa: PLC0415 - the same

    phase = arguments.phase
    weights = dtype_named(arguments.weights)
    least = 0 if phase == "decode" else 1
    context = DEFAULT_CONTEXT_TOKENS[phase]
    if arguments.context is not None:
        context = whole_number("--context", arguments.context, least=least, most=LARGEST_CONTEXT_TOKENS)
    before = Scenario(
        device=require(arguments.device),
        model=model_of(arguments.model),
        phase=Phase(phase),
        batches=batch_list(DEFAULT_BATCHES[phase] if arguments.batch is None else arguments.batch),
        context_tokens=context,
        weights_dtype=weights,
        compute_dtype=dtype_named(COMPUTE_DTYPE[weights] if arguments.compute is None else arguments.compute),
        kv_dtype=dtype_named("bf16" if arguments.kv is None else arguments.kv),
        recomputes=arguments.checkpointing,
    )
    if arguments.checkpointing and phase != "train":
        raise WrongUsage(f"--checkpointing has no meaning in {phase}", "add --phase train, or leave it out")
    after = None
    for change in arguments.change or ():
        key, separator, value = change.partition("=")
        if not separator:
            raise WrongUsage(f"--change {change[:40]!r}", "write KEY=VALUE, like weights=int4")
        after = apply_change(after or before, key.strip(), value)
    if arguments.format == "json":
        roofline_json.write_as_json(before, after, tuple(arguments.change or ()))
    else:
        roofline_answer.write_as_text(before, after, tuple(arguments.change or ()))
    return exit_codes.NOTHING_FOUND
