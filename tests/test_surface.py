"""What `import lengthwise` promises: its public names, its lightness, its errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import lengthwise as lw

HEAVY = ("numpy", "torch", "pyarrow", "datasets", "polars", "pandas", "matplotlib", "click", "rich", "altair")


def test_import_leaves_the_heavy_libraries_alone() -> None:
    code = f"import sys, lengthwise; print(*[name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert loaded.stdout.split() == []


def test_every_public_name_exists_and_is_documented() -> None:
    assert lw.__all__ == sorted(lw.__all__, key=str.casefold) or lw.__all__ == sorted(lw.__all__)
    for name in lw.__all__:
        value = getattr(lw, name)
        if callable(value):
            assert value.__doc__, name


def test_no_module_hides_a_public_name() -> None:
    folder = Path(lw.__file__).parent
    modules = {path.stem for path in folder.iterdir()}
    assert "planner" in modules
    assert modules & set(lw.__all__) == set()


def test_a_wrong_name_is_an_attribute_error() -> None:
    assert set(lw.__all__) <= set(dir(lw))
    with pytest.raises(AttributeError, match="no attribute 'packs'"):
        lw.packs  # type: ignore[attr-defined]  # noqa: B018


def test_errors_are_value_errors_and_pickle() -> None:
    error = pickle.loads(pickle.dumps(lw.LengthwiseError("k is 0")))  # noqa: S301
    assert isinstance(error, ValueError)
    assert str(error) == "k is 0"
    with pytest.raises(ValueError, match="k is 0"):
        raise error


def test_the_extension_and_the_package_have_one_version() -> None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("lengthwise")
    except PackageNotFoundError:
        pytest.skip("lengthwise runs from its source folder here")
    assert lw.__version__ == installed
