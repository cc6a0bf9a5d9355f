"""A report with everything in it, for the renderers' tests."""

from dataclasses import replace

from advisor.model.case import Unreadable
from advisor.model.evidence import Source
from advisor.model.finding import Action, Finding, Impact, Observation, Prediction, RuledOut, Severity, Verification
from advisor.model.report import Diagnosis, FaultedRule, Report, SkippedRule
from advisor.model.step_time import Bound, OperatorCost
from advisor.rules.samples import GIB, a_breakdown, a_ledger

LOG = Source(path="train.log", where="line 120")


def a_finding(**fields):
    base = {
        "statement": "The fp32 copy of the logits, 3.91 GiB, did not fit.",
        "severity": Severity.ERROR,
        "confidence": 0.9,
        "observations": (Observation(statement="3.91 GiB were refused in cross_entropy", value=4202692608, unit="bytes", source=LOG),),
        "actions": (
            Action(
                title="Compute the loss in chunks",
                change="loss = fused_linear_cross_entropy(hidden, head.weight, labels)",
                cost="one more library",
                predicted=Prediction(peak_bytes=70 * GIB, fits=True),
                verified_by=Verification.ARITHMETIC,
            ),
        ),
        "settles": Action(title="Save a snapshot at the failure", change="torch.cuda.memory._dump_snapshot('snapshot.pickle')"),
        "impact": Impact(recoverable_bytes=4202692608),
        "ruled_out": (RuledOut(code="MEM401", because="only 0.2 GiB are reserved and not allocated"),),
    }
    return Finding(**(base | fields))


def a_diagnosis(**fields):
    base = {"rank": 1, "code": "MEM203", "name": "logits-upcast", "confidence": 0.9, "finding": a_finding()}
    return Diagnosis(**(base | fields))


def a_report(**fields):
    later = a_finding(severity=Severity.WARNING, statement="Something else costs a little.", actions=(), settles=None, ruled_out=())
    base = {
        "diagnoses": (
            a_diagnosis(),
            *(a_diagnosis(rank=place, code=f"MEM20{place + 3}", name="later", confidence=0.4, finding=later) for place in (2, 3, 4)),
        ),
        "memory": replace(a_ledger(weights=16 * GIB, activations=50 * GIB, unattributed=GIB), notes=("the record is complete",)),
        "time": a_breakdown(input_wait=0.3, launch=0.1),
        "operators": (OperatorCost(name="aten::mm", device_seconds=0.4, calls=210, flops=4e12, moved_bytes=2e9, bound=Bound.COMPUTE),),
        "checked_count": 40,
        "skipped": (SkippedRule(code="DEV101", needs=("a reading of the node's GPUs",), collect_with="nvidia-smi -q"),),
        "faulted": (FaultedRule(code="CMP101", because="ZeroDivisionError: no kernels"),),
        "unreadable": (Unreadable(path="noise.bin", because="it is binary; give a log"),),
        "read": ("train.log: log, failure message",),
        "gaps": ("trace.json: truncated",),
    }
    return Report(**(base | fields))
