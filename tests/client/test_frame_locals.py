import sys
import weakref

import pytest

from advisor.client.frame_locals import DEEPEST_FRAME_COUNT, PROXY_VERSION, callers, variables_of

traced = pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool holds the variables of functions")


class Thing:
    pass


def names_of_the_caller():
    return [name for name, _ in variables_of(sys._getframe(1))]


@traced
def test_a_functions_variables_are_found_with_their_names():
    model, step = Thing(), 3
    assert {"model", "step"} <= set(names_of_the_caller())
    del model, step


@traced
def test_a_variable_that_the_function_deletes_is_gone_after_it_was_read():
    thing = Thing()
    alive = weakref.ref(thing)
    assert "thing" in names_of_the_caller()
    del thing
    assert alive() is None


def test_a_dictionary_that_the_function_had_from_locals_is_left_as_it_was():
    rate = 0.1
    settings = locals()
    before = set(settings) - {"settings"}
    later = Thing()
    names_of_the_caller()
    assert set(settings) - {"settings"} == before
    del later, rate


@pytest.mark.skipif(sys.version_info >= PROXY_VERSION, reason="from 3.13 on locals() is a snapshot, and all functions are read")
def test_a_function_that_may_hold_its_namespace_is_not_read_before_python_3_13():
    thing = Thing()
    assert names_of_the_caller() == []
    del thing
    vars()


def test_functions_that_only_look_as_if_they_held_their_namespace_are_read():
    def reads_options(options):
        settings, model = vars(options), Thing()
        model.eval = settings
        return names_of_the_caller()

    assert reads_options(Thing()) == ["options", "settings", "model"]


def test_variables_hold_their_values_after_a_read():
    first, second = [1], {"two": 2}
    names_of_the_caller()
    second["three"] = first
    assert (first, second) == ([1], {"two": 2, "three": [1]})


def test_the_frame_of_a_module_has_no_variables_of_its_own():
    namespace = {"names": names_of_the_caller, "found": None}
    exec("value = 1\nfound = names()", namespace)
    assert namespace["found"] == []


def test_a_recursion_does_not_make_a_scan_longer():
    def deep(level):
        return deep(level - 1) if level else sum(1 for _ in callers(sys._getframe()))

    assert deep(3 * DEEPEST_FRAME_COUNT) == DEEPEST_FRAME_COUNT


def test_no_frame_has_no_callers():
    assert list(callers(None)) == []
