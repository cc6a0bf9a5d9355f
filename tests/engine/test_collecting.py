"""What skipped rules tell users to collect."""

import pytest

from advisor.engine.collecting import HOW, in_short


@pytest.mark.parametrize("how", sorted({how for _, how in HOW.values()}))
def test_every_way_of_collecting_fits_on_a_line(how):
    kind, hint = in_short(how)
    assert hint
    assert len(f"  99 with {kind}: {hint}") <= 80
