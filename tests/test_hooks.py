"""Methods whose work is done by an upper layer find it."""

import importlib

import pytest

from bothworlds._hooks import PROVIDERS, provided


@pytest.mark.parametrize("name", PROVIDERS)
def test_every_function_is_provided(name: str) -> None:
    assert provided(name) is getattr(importlib.import_module(PROVIDERS[name]), name)
    assert provided(name).__name__ == name
