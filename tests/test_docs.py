"""The reference names everything that is public."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lengthwise
import lengthwise.torch

API = Path(__file__).parents[1] / "docs" / "api.md"


@pytest.mark.parametrize("module", [lengthwise, lengthwise.torch])
def test_the_reference_has_every_public_name(module: object) -> None:
    if not API.is_file():
        pytest.skip("the docs are not beside the tests here")
    written = set(re.findall(r"auto\w+:: (\w+)", API.read_text(encoding="utf-8")))
    public = {name for name in vars(module)["__all__"] if not name.startswith("__")}
    assert public, module
    assert public - written == set()
