"""`advisor-cli estimate`: will it fit, by block, and what would make it fit."""

import argparse

from advisor.cli import exit_codes
from advisor.cli.number_options import MODEL_HELP
from advisor.cli.terminal import HelpText

DESCRIPTION = """Say whether a training step, or generation, fits the memory of a device, by
arithmetic, without running anything.

Memory has four blocks: weights; gradients and optimizer states (training only);
activations kept for backward; and the KV cache (generation only). Each is given
as counted ("about") and as the most that plain implementations hold ("at
most"). The verdict is "fits" or "does not fit" only where both ends agree, and
"too near to say" otherwise."""

EPILOG = """examples:
  advisor-cli estimate --device H100 --model llama-3-8b --sequence 4096
      full fine-tuning in mixed precision with AdamW
  advisor-cli estimate --device RTX-4090 --model llama-3-8b \\
      --lora 16 --qlora --checkpointing
  advisor-cli estimate --device H100 --model llama-3-70b \\
      --sharding fsdp --gpus 8
  advisor-cli estimate --device H100 --model llama-3-8b \\
      --inference --batch 64 --sequence 8192
  advisor-cli estimate --capacity 79.1 --model path/to/config.json --batch 4

exit codes: 0 an answer (also when it does not fit), 2 bad usage or an
unreadable configuration
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "estimate",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=HelpText,
    )
    parser.add_argument(
        "--device",
        metavar="D",
        help="the GPU: a short name (H100, A100-80GB) or what nvidia-smi prints",
    )
    parser.add_argument(
        "--capacity",
        metavar="GIB",
        help="its memory in GiB as torch reports it, instead of the catalogue's",
    )
    parser.add_argument("--model", required=True, metavar="M", help=MODEL_HELP)
    parser.add_argument("--batch", metavar="N", default="1", help="sequences at a time on one device (1)")
    parser.add_argument("--sequence", metavar="N", default="2048", help="tokens of a sequence (2048)")
    parser.add_argument("--gpus", metavar="N", default="1", help="devices that share the job (1)")
    training = parser.add_argument_group("training")
    training.add_argument("--optimizer", metavar="O", help="adamw (by default), sgd, adamw-8bit, adafactor, lion, ...")
    training.add_argument("--precision", metavar="P", help="mixed (by default), autocast, bf16 or fp32")
    training.add_argument("--lora", metavar="R", help="train LoRA adapters of this rank on all linear layers")
    training.add_argument("--qlora", action="store_true", help="with --lora: the frozen base in 4 bits")
    training.add_argument("--checkpointing", action="store_true", help="keep only the layers' inputs for backward")
    training.add_argument("--accumulate", action="store_true", help="gradients stay over several micro-batches")
    training.add_argument(
        "--eager-attention",
        action="store_true",
        help="attention that materializes its T × T scores",
    )
    training.add_argument("--sharding", metavar="S", help="with --gpus: ddp, zero1, zero2, zero3 or fsdp")
    inference = parser.add_argument_group("generation")
    inference.add_argument("--inference", action="store_true", help="generation instead of training")
    inference.add_argument("--weights", metavar="DTYPE", help="bf16 (by default), fp16, fp8, int8, int4")
    inference.add_argument("--kv", metavar="DTYPE", help="precision of the KV cache (bf16)")
    inference.add_argument(
        "--prefill-tokens",
        metavar="N",
        help="prompt tokens that pass a layer at a time (one sequence)",
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the answer (text by default)")


def run(arguments: argparse.Namespace) -> int:
    """Answer; 0, whether it fits or not."""
    from advisor.cli import estimate_answer  # noqa: PLC0415 - start-up time of --help
    from advisor.cli.estimate_question import question_of  # noqa: PLC0415 - the same

    question = question_of(arguments)
    if arguments.format == "json":
        estimate_answer.write_as_json(question)
    else:
        estimate_answer.write_as_text(question)
    return exit_codes.NOTHING_FOUND
