"""Serving engines that refuse: no room for the KV cache, or not for one sequence of the model's length.

vLLM has said it in four ways: no blocks at all; the model's length against the tokens of the cache (V0); the bytes that one request
needs against those that are left (V1, first "GB", then "GiB", both 1024-based); and, before anything is loaded, less free memory than
its share of the card.
"""

from advisor.ingest.byte_sizes import SIZE, byte_size
from advisor.ingest.failure_message import FailureText, Figures, Recognizer, first_integer
from advisor.ingest.lazy_pattern import LazyPattern
from advisor.model.failure import FailureKind

_NUMBER = r"(\d{1,3}(?:,\d{3}){1,5}|\d{1,12})"

_NO_BLOCKS = LazyPattern(r"No available memory for the cache blocks")
_TOO_LONG = LazyPattern(
    rf"max seq len \({_NUMBER}\)\s{{0,8}}is larger than the maximum number of tokens that can be stored in KV cache \({_NUMBER}\)"
)
_ONE_REQUEST = LazyPattern(rf"at least one request with the models?'?s?'?s? max seq len \({_NUMBER}\)")
_NEEDED = LazyPattern(rf"{SIZE}\s{{1,4}}KV\s{{1,4}}cache is needed")
_AVAILABLE = LazyPattern(rf"available KV\s{{1,4}}cache memory\s{{1,4}}\({SIZE}\)")
_ESTIMATED = LazyPattern(rf"estimated maximum model length is\s{{1,4}}{_NUMBER}")
_STARTUP = LazyPattern(
    r"Free memory on device(?: (?:cuda|xpu|hip|"
    r"npu):(?P<device>\d{1,4}))? \((?P<free>\d{1,6}(?:\.\d{1,4})?)/(?P<total>\d{1,6}(?:\.\d{1,4})?) (?P<unit>[GM]i?B)\)"
)
_DESIRED = LazyPattern(rf"desired GPU memory utilization \((\d(?:\.\d{{1,6}})?), {SIZE}\)")
_PROFILING = LazyPattern(rf"Error in memory profiling\. Initial free memory {SIZE}, current free memory {SIZE}")

_WARM_UP = LazyPattern(r"CUDA out of memory occurred when warming up sampler with (\d{1,9}) dummy requests")

_SGLANG = LazyPattern(r"Not enough memory[.;,] Please try (?:to increase|increasing) --mem-fraction-static")
_SGLANG_VALUE = LazyPattern(r"mem_fraction_static=(\d(?:\.\d{1,6})?)")
_SGLANG_PREFILL = LazyPattern(r"(Prefill|Decode) out of memory\. Try to lower your batch size")
_SGLANG_WANTED = LazyPattern(r"Try to allocate (\d{1,12}) tokens")
_SGLANG_LEFT = LazyPattern(r"Ava(?:il|li)able (?:full )?tokens: (\d{1,12})")
_SGLANG_UNBALANCED = LazyPattern(r"The memory capacity is unbalanced\. Some GPUs may be occupied by other processes")

_TENSORRT = LazyPattern(
    r"Impossible to fit any sequence in kvCache|Executor creation failed due to insufficient GPU memory|"
    r"maxTokensInPagedKvCache[^\n]{0,80}(?:must be|should be)[^\n]{0,60}"
)
_TGI = LazyPattern(
    r"Not enough memory to handle (\d{1,9}) (prefill|total|max_batch_total)[ _]tokens|Not enough memory to handle `?max_batch_total_tokens"
)
_LLAMA_CACHE = LazyPattern(r"failed to allocate buffer for kv cache")


def recognize(text: str) -> FailureText | None:
    """An engine's refusal."""
    for reading in (
        _token_limit,
        _one_request,
        _startup,
        _no_blocks,
        _warm_up,
        _profiling,
        _sglang,
        _tensorrt,
    ):
        found = reading(text)
        if found is not None:
            return found
    return None


def _refused(backend: str, generation: str, end: int, detail: str = "") -> FailureText:
    return FailureText(
        kind=FailureKind.KV_CACHE_REFUSED,
        backend=backend,
        generation=generation,
        detail=detail,
        end=end,
    )


def _token_limit(text: str) -> FailureText | None:
    match = _TOO_LONG.search(text)
    if match is None:
        return None
    needed, available = (int(digits.replace(",", "")) for digits in match.groups())
    return FailureText(
        kind=FailureKind.KV_CACHE_REFUSED,
        backend="vLLM",
        generation="vLLM V0 length",
        needed_tokens=needed,
        available_tokens=available,
        end=match.end(),
    )


def _one_request(text: str) -> FailureText | None:
    match = _ONE_REQUEST.search(text)
    needed = _NEEDED.search(text)
    if match is None and needed is None:
        return None
    figures = Figures(text)
    figures.clause("requested_bytes", _NEEDED)
    figures.clause("allowed_bytes", _AVAILABLE)
    estimated = _ESTIMATED.search(text)
    return FailureText(
        kind=FailureKind.KV_CACHE_REFUSED,
        backend="vLLM",
        generation="vLLM V1 request",
        needed_tokens=int(match[1].replace(",", "")) if match else None,
        available_tokens=int(estimated[1].replace(",", "")) if estimated else None,
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail="requested: the cache of one request of the model's length; allowed: what is left for the cache",
        end=max(figures.end, *(each.end() for each in (match, needed, estimated) if each)),
    )


def _startup(text: str) -> FailureText | None:
    match = _STARTUP.search(text)
    if match is None:
        return None
    figures = Figures(text)
    for name in ("free", "total"):
        size = byte_size(match[name], match["unit"])
        if size is not None:
            figures.note(f"{name}_bytes", size)
    desired = _DESIRED.search(text)
    if desired is not None and (size := byte_size(desired[2], desired[3])):
        figures.note("requested_bytes", size)
    return FailureText(
        kind=FailureKind.KV_CACHE_REFUSED,
        backend="vLLM",
        generation="vLLM startup",
        device_index=int(match["device"]) if match["device"] else None,
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail=f"gpu_memory_utilization {desired[1]} of the card is wanted before loading" if desired else "",
        end=max(match.end(), desired.end() if desired else 0),
    )


def _no_blocks(text: str) -> FailureText | None:
    match = _NO_BLOCKS.search(text)
    return _refused("vLLM", "vLLM no blocks", match.end()) if match else None


def _warm_up(text: str) -> FailureText | None:
    match = _WARM_UP.search(text)
    if match is None:
        return None
    return FailureText(
        kind=FailureKind.ENGINE_OUT_OF_MEMORY,
        backend="vLLM",
        generation="vLLM sampler warm-up",
        detail=f"logits of {match[1]} requests at once",
        end=match.end(),
    )


def _profiling(text: str) -> FailureText | None:
    """Another process gave memory back while vLLM measured; that is no lack of memory."""
    match = _PROFILING.search(text)
    if match is None:
        return None
    figures = Figures(text)
    size = byte_size(match[1], match[2])
    if size is not None:
        figures.note("free_bytes", size)
    return FailureText(
        kind=FailureKind.NOT_OUT_OF_MEMORY,
        backend="vLLM",
        generation="vLLM profiling disturbed",
        figures=figures.found,
        resolution_bytes=figures.resolution_bytes,
        detail=f"free memory changed from outside during profiling, to {match[3]} {match[4]}",
        end=match.end(),
    )


def _sglang(text: str) -> FailureText | None:
    refused = _SGLANG.search(text)
    if refused is not None:
        value = _SGLANG_VALUE.search(text, refused.end())
        detail = f"mem_fraction_static={value[1]}" if value else ""
        return _refused("SGLang", "SGLang no tokens", value.end() if value else refused.end(), detail)
    full = _SGLANG_PREFILL.search(text)
    if full is not None:
        wanted, left = _SGLANG_WANTED.search(text), _SGLANG_LEFT.search(text)
        return FailureText(
            kind=FailureKind.KV_CACHE_REFUSED,
            backend="SGLang",
            generation=f"SGLang {full[1].lower()}",
            needed_tokens=int(wanted[1]) if wanted else None,
            available_tokens=int(left[1]) if left else None,
            end=max(each.end() for each in (full, wanted, left) if each),
        )
    unbalanced = _SGLANG_UNBALANCED.search(text)
    if unbalanced is None:
        return None
    return FailureText(
        kind=FailureKind.ENGINE_OUT_OF_MEMORY,
        backend="SGLang",
        generation="SGLang unbalanced",
        detail="some devices have less free memory than others before loading",
        end=unbalanced.end(),
    )


def _tensorrt(text: str) -> FailureText | None:
    match = _TENSORRT.search(text)
    if match is not None:
        return _refused("TensorRT-LLM", "TensorRT-LLM", match.end(), match[0][:160])
    match = _TGI.search(text)
    if match is not None:
        tokens = first_integer(LazyPattern(r"handle (\d{1,9})"), match[0])
        return FailureText(
            kind=FailureKind.KV_CACHE_REFUSED,
            backend="TGI",
            generation="TGI warm-up",
            needed_tokens=tokens,
            end=match.end(),
        )
    match = _LLAMA_CACHE.search(text)
    return _refused("llama.cpp", "llama.cpp cache", match.end()) if match else None


ENGINES = Recognizer(
    (
        b"memory for the cache blocks",
        b"stored in kv cache",
        b"kv cache is needed",
        b"at least one request with the model",
        b"free memory on device",
        b"error in memory profiling",
        b"warming up sampler",
        b"--mem-fraction-static",
        b"fill out of memory",
        b"decode out of memory",
        b"memory capacity is unbalanced",
        b"fit any sequence in kvcache",
        b"insufficient gpu memory",
        b"maxtokensinpagedkvcache",
        b"not enough memory to handle",
        b"buffer for kv cache",
    ),
    recognize,
    is_flowing=True,
)
