"""The notebooks run from top to bottom on the sample store, without key or network.

`GEMNB_WRITE_DOCS=1 pytest tests/test_notebooks.py` saves them with the outputs of that run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from gemnb.__main__ import notebooks, prepare_tour

TOLD = {
    "compress": ("COMPRESSED", "LOSS_ABOVE_LIMIT", "still open?", "port 5433"),
    "your-own-tools": ("1233", "KeyError", "write_note({'text': 'the Rhine has 1233 km'}) was refused", "cancelled"),
    "tour": (
        "数据清洗脚本",
        "application/vnd.jupyter.widget-view+json",
        "Add a footnote about the old surveys",
        "You asked: **Which three things",
        "COMPRESSED. ",
        " facts kept: constraint 100%",
        "image/png",
        "run_shell_command",
        "older than maxAge",
    ),
    "resume": ("[timeout]", "You asked: **Which of the columns", "before-the-report"),
    "retention": (
        "older than maxAge",
        "maxAge = '90d'",
        "sessions deleted, ",
        "`%sessions retention --undo` brings them back",
        "sessions are left; ",
        "sessions are back, as they were.",
        "as long as before? True",
        "holds nothing that it can resume",
        "an empty start-up file of its own went to the trash",
        "No conversation is at risk from the terminal client.",
        "a copy is in the archive",
        "Is it back, byte for byte? True",
    ),
    "memory": (
        "docs/units.md is not imported: there is no ",
        "calibration/README.md is not imported: it lies out of ",
        "<!-- Imported from: words.md -->",
        "looks momentary: it names a line number",
        "+- The preview server listens on port 5433.</span>",
        "background-color",
        "MEMORY.md was changed.",
        "It was thrown away.",
        "by counting, since the model was of no use",
        "with scripted; new proposals: ",
        "# from session ",
        "+- We use SVG for every chart in the report.",
        "- The preview server listens on port 5433.\n--- End of Context from: ",
        "<session_context>",
    ),
    "usage": (
        "Spent by month and model",
        "answers without a price: gauges-tuned-2",
        "Without a price: ",
        "gemini-2.5-pro",
        "Flaky download in the nightly job",
        "Calls of tools, and how they ended",
        "File not found: ",
        "Context of session e5567a35",
        "Cache hit rate: 32%",
        "hit_rate",
        "COMPRESSED",
        "usd_a_prompt",
        "image/png",
    ),
}
"""What matters in the outputs of each."""

pytestmark = pytest.mark.filterwarnings("default")


def outputs(notebook: Any) -> str:
    """Everything that the cells put out, as text."""
    found = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "\n".join(str(output.get("text") or output.get("data")) for output in found)


def saved_form(notebook: Any, folder: Path) -> str:
    """The notebook as it is kept: ids that stay, and no trace of the machine that it ran on."""
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number:02}"
        cell.metadata.pop("execution", None)
    notebook.metadata.pop("widgets", None)
    text: str = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    return text.replace(str(folder), "") + "\n"


@pytest.mark.parametrize("path", sorted(notebooks().glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_runs_and_shows_what_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, environment = prepare_tour(tmp_path / "tour")
    for name, value in {**environment, "IPYTHONDIR": str(tmp_path / "ip")}.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    saved = outputs(notebook)

    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(project)}}).execute()

    streams = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if o.output_type == "stream"]
    assert not [o for o in streams if o.name == "stderr"]
    ran = outputs(notebook)
    if os.environ.get("GEMNB_WRITE_DOCS"):
        path.write_text(saved_form(notebook, tmp_path))
        saved = ran.replace(str(tmp_path), "")
    for told in ("This model answers: scripted", *TOLD[path.stem]):
        assert told in ran and told in saved
    assert "/tmp/" not in saved.replace(".gemini/tmp/", "") and "/home/" not in saved.replace("/tour/home/", "")


def test_the_saved_notebooks_are_valid() -> None:
    for path in notebooks().glob("*.ipynb"):
        nbformat.validate(nbformat.read(path, as_version=4))  # type: ignore[no-untyped-call]
