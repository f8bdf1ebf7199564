from __future__ import annotations

import pytest

from errcomp import calibration
from errcomp.errors import MissingExtraError


@pytest.mark.parametrize("name", calibration.__all__)
def test_every_public_name_exists(name: str) -> None:
    try:
        found = getattr(calibration, name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    assert found is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = calibration.nothing
