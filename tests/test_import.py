"""gemnb is light until it is used: nothing heavy is loaded for `import gemnb` or `%load_ext gemnb`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gemnb

HEAVY = (
    "pandas",
    "numpy",
    "google.genai",
    "ipywidgets",
    "anywidget",
    "altair",
    "matplotlib",
    "pyarrow",
    "markdown_it",
    "genai_prices",
)
LOAD = """
from IPython.core.interactiveshell import InteractiveShell
ip = InteractiveShell.instance()
ip.extension_manager.load_extension("gemnb")
"""


@pytest.mark.parametrize("code", ["import gemnb", "import gemnb; gemnb.open_workspace('.').sessions()", LOAD])
def test_nothing_heavy_is_loaded(code: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print([m for m in {HEAVY!r} if m in sys.modules])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip().splitlines()[-1] == "[]"


def test_loading_the_extension_opens_nothing() -> None:
    # the look at the store, which comes after in a thread of its own, is not the loading's
    quiet = "from gemnb.notebook.notice import LateNotice; LateNotice.start = lambda self: None"
    check = "import sys; assert not {'gemnb.workspace', 'gemnb.services.chat', 'msgspec'} & set(sys.modules)"
    code = f"{quiet}\n{LOAD}\n{check}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_gemnb_needs_no_ipython() -> None:
    code = "import sys, gemnb; assert 'IPython' not in sys.modules and 'msgspec' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", gemnb.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(gemnb, name)

    assert name == "__version__" or (value.__doc__ and len(value.__doc__) > 20)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        gemnb.nope  # noqa: B018
