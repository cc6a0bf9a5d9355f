"""Make advisor/hardware/catalogue.toml from the table of facts about GPUs.

    python scripts/build_catalogue.py GPU_CATALOG_CSV [CATALOGUE_TOML]

Numbers come from the table, words from catalogue_prose.py. Figures with structured sparsity and
with fp16 accumulation are never taken.
"""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import catalogue_prose as prose

TERA = 1e12
GIGA = 1e9
GIBIBYTE = 1024**3

PEAKS = {
    "fp32": "fp32_vec_tflops",
    "tf32": "tf32_dense_tflops",
    "fp16": "fp16_dense_fp32acc_tflops",
    "bf16": "bf16_dense_tflops",
    "fp8": "fp8_dense_fp32acc_tflops",
    "int8": "int8_dense_tops",
    "fp4": "fp4_dense_tflops",
}
"""Columns of dense peaks; fp64 is the larger of its vector and tensor columns."""

PER_MODULE = (
    "sm_or_cu",
    "mem_gb",
    "mem_bw_gbs",
    "fp64_vec_tflops",
    "fp64_tensor_tflops",
    "mamf_bf16_measured_tflops",
)
"""Columns, besides the peaks, that a module of several dies divides among them."""

PLAIN = ("memory_bytes", "sm_count")
"""Figures that are plain numbers in the catalogue."""

HEADER = """# Made by scripts/build_catalogue.py; do not edit.
# FLOP/s are dense (no structured sparsity), bandwidths bytes per second.
# memory_bytes takes the vendor's GB as GiB, which is what the runtimes report to within 2% (HBM) or
# 9% (GDDR with ECC).
# A plain number rests on its device's `source` and `verified`, unless `unverified` names it; a table
# has its own.
# verified = false: recalled, computed or contested; never a sparse figure.
"""


def catalogue_text(table: str) -> str:
    """The catalogue as TOML, from the CSV's text."""
    entries = [text for row in csv.DictReader(io.StringIO(table)) for text in _entries(row)]
    return HEADER + "".join(entries)


def _entries(row: dict[str, str]) -> Iterator[str]:
    names = prose.SPLIT.get(row["gpu"])
    if names:
        for index, name in enumerate(names):
            yield _entry(name, row["gpu"], {key: _part(cell, index, len(names)) for key, cell in row.items()})
        return
    name, die_count = prose.DIES.get(row["gpu"], (row["gpu"], 1))
    cells = dict(row)
    for column in (*PEAKS.values(), *PER_MODULE):
        if die_count > 1 and row[column]:
            cells[column] = repr(float(row[column]) / die_count)
    yield _entry(name, row["gpu"], cells)


def _part(cell: str, index: int, count: int) -> str:
    parts = cell.split("|")
    return parts[index] if len(parts) == count else cell


def _entry(name: str, row_name: str, cells: dict[str, str]) -> str:
    code = cells["verify"]
    row_is_verified = code.startswith("S")
    source = prose.SOURCES[row_name]
    exceptions = prose.UNVERIFIED.get(row_name, {})
    unverified = prose.UNVERIFIED_PLAIN.get(row_name, ()) if row_is_verified else PLAIN

    def figure(key: str, value: float, cited: str = source) -> str:
        name_of_figure, number = key.removeprefix("measured_"), f"{value:.6g}"
        if key not in exceptions and cited == source:
            return f"{name_of_figure} = {number}\n"
        text = json.dumps(exceptions.get(key, cited))
        verified = str(row_is_verified and key not in exceptions).lower()
        return f"{name_of_figure} = {{ value = {number}, source = {text}, verified = {verified} }}\n"

    lines = [
        "\n[[device]]\n",
        f"name = {json.dumps(name)}\n",
        f"runtime_names = {json.dumps([*cells['name_match_hint'].split('|'), *prose.RUNTIME_NAMES.get(name, ())])}\n",
        f"aliases = {json.dumps(list(prose.ALIASES[name]))}\n",
        f"vendor = {json.dumps(cells['vendor'])}\n",
        f"architecture = {json.dumps(cells['arch'])}\n",
        f"capability = {json.dumps(cells['cc_or_gfx'])}\n",
        f"sm_count = {int(float(cells['sm_or_cu']))}\n" if cells["sm_or_cu"] else "",
        f"memory_bytes = {int(float(cells['mem_gb']) * GIBIBYTE)}\n",
        f"memory_kind = {json.dumps(cells['mem_type'])}\n",
        f"source = {json.dumps(source)}\n",
        f"verified = {str(row_is_verified).lower()}\n",
        f"unverified = {json.dumps(list(unverified))}\n" if unverified else "",
        f"notes = {json.dumps(prose.NOTES.get(row_name, ''))}\n",
        figure("bandwidth", float(cells["mem_bw_gbs"]) * GIGA),
    ]
    if float(cells["nvlink_or_if_bidir_gbs"] or 0):
        lines.append(figure("link", float(cells["nvlink_or_if_bidir_gbs"]) * GIGA))
    if cells["tdp_w"]:
        lines.append(figure("power", float(cells["tdp_w"])))
    assumed = prose.ASSUMED.get(name, {})
    if assumed:
        lines.append("[device.assumed_aliases]\n")
        lines.extend(f"{alias} = {json.dumps(why)}\n" for alias, why in assumed.items())
    lines.append("[device.dense]\n")
    overrides = prose.OVERRIDES.get(row_name, {})
    for dtype, teraflops in _peaks(cells).items():
        value, cited = overrides.get(dtype, (teraflops, source))
        lines.append(figure(dtype, value * TERA, cited))
    lines.extend(_measured(row_name, cells, figure))
    return "".join(lines)


def _peaks(cells: dict[str, str]) -> dict[str, float]:
    doubles = [float(cells[key]) for key in ("fp64_vec_tflops", "fp64_tensor_tflops") if cells[key]]
    found = {"fp64": max(doubles)} if doubles else {}
    return found | {dtype: float(cells[column]) for dtype, column in PEAKS.items() if cells[column]}


def _measured(row_name: str, cells: dict[str, str], figure: Callable[[str, float, str], str]) -> Iterator[str]:
    best: dict[str, tuple[float, str]] = {}
    if cells["mamf_bf16_measured_tflops"]:
        best["bf16"] = (float(cells["mamf_bf16_measured_tflops"]), prose.ENGINEERING)
    for dtype, (value, cited) in prose.MEASURED.get(row_name, {}).items():
        if dtype not in best or value > best[dtype][0]:
            best[dtype] = (value, cited)
    if best:
        yield "[device.measured]\n"
    for dtype, (value, cited) in best.items():
        yield figure(f"measured_{dtype}", value * TERA, cited)


def main(arguments: list[str]) -> None:
    """Write the catalogue."""
    default = Path(__file__).parents[1] / "advisor" / "hardware" / "catalogue.toml"
    target = Path(arguments[1]) if len(arguments) > 1 else default
    target.write_text(catalogue_text(Path(arguments[0]).read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
