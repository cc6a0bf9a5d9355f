"""Any log or traceback → what it tells: every failure in it, and words and settings that rules can use."""

from advisor.ingest.failure_context import failure_of
from advisor.ingest.failure_reading import incidents_of
from advisor.ingest.log_lines import LogLines
from advisor.ingest.log_mentions import mentions_of, scanned
from advisor.ingest.log_settings import frameworks_of, settings_of, world_size_of
from advisor.model.evidence import Evidence, Source
from advisor.model.failure import Failure, FailureKind, LogText


def read_log(text: bytes, path: str) -> tuple[Evidence, ...]:
    """One LogText, and every Failure of the log in its order.

    Any bytes are accepted: UTF-8 (what is not becomes U+FFFD) or UTF-16 with its mark, any newline, colors and launchers' prefixes.
    A failure that several places say (a logger, an outer handler, a launcher's summary) is one; the same of several ranks are several.
    The work grows linearly with the text: only lines with one of the known words are looked at, and no more of them than a bound.

    Args:
        text: the log.
        path: the file, as the user named it.
    """
    log = LogLines(text)
    incidents, gaps = incidents_of(log)
    failures: list[Failure] = []
    for incident in incidents:
        follows = any(each.kind is not FailureKind.HOST_OUT_OF_MEMORY for each in failures)
        failures.append(failure_of(log, incident, path, follows_another=follows))
    part, part_gaps = scanned(log, [incident.lines[0].start for incident in incidents])
    ranks = dict.fromkeys(failure.rank for failure in failures if failure.rank is not None)
    described = LogText(
        source=Source(path=path),
        gaps=(*gaps, *part_gaps),
        line_count=log.line_count,
        mentions=mentions_of(log, part),
        settings=settings_of(log, part),
        frameworks=frameworks_of(log, part),
        world_size=world_size_of(log, part),
        failed_ranks=tuple(ranks),
    )
    return (described, *failures)
