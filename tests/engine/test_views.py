from advisor.engine.views import views
from advisor.model.evidence import Source
from advisor.model.node import KernelLog
from advisor.rules.samples import a_case, a_failure, a_log

A, B, C = (Source(path=name) for name in ("a.log", "b.log", "c.log"))


def kinds(view):
    return [(type(item).__name__, item.source.path) for item in view.evidence]


def test_a_case_of_one_subject_is_one_view():
    case = a_case(a_failure(source=A), a_log(source=A), a_log(source=B))
    assert list(views(case)) == [case]


def test_two_files_of_a_subject_are_two_views_each_with_its_own_log():
    case = a_case(a_failure(source=A), a_log(source=A), a_failure(source=B), a_log(source=B))
    assert [kinds(view) for view in views(case)] == [
        [("Failure", "a.log"), ("LogText", "a.log")],
        [("Failure", "b.log"), ("LogText", "b.log")],
    ]


def test_every_kernel_log_is_looked_at():
    logs = [KernelLog(source=source, events=(), line_count=1, counts={}) for source in (A, B)]
    assert [kinds(view) for view in views(a_case(*logs))] == [[("KernelLog", "a.log")], [("KernelLog", "b.log")]]


def test_context_is_part_of_every_view():
    case = a_case(a_failure(source=A, rank=0), a_failure(source=A, rank=1), a_log(source=C))
    assert [len(view.evidence) for view in views(case)] == [2, 2]
    assert all(("LogText", "c.log") in kinds(view) for view in views(case))
