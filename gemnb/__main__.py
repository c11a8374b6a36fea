"""`gemnb tour`: the sample store and the notebooks in JupyterLab, without a key. `gemnb doctor`: what was found."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gemnb.sample import make_sample_store
from gemnb.services.doctor import examine
from gemnb.services.genai import KEY_NAMES

PACKAGE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code tells whether all is well."""
    parser = argparse.ArgumentParser(prog="gemnb", description="Gemini sessions in the notebook.")
    commands = parser.add_subparsers(dest="command", required=True)
    tour = commands.add_parser("tour", help="open the sample store and the notebooks in JupyterLab")
    tour.add_argument("--no-browser", action="store_true", help="start the server and open nothing")
    tour.add_argument("--port", type=int, help="port of the server on this machine")
    tour.add_argument("--dir", type=Path, help="folder to put it in; by default a new one that goes at the end")
    commands.add_parser("doctor", help="say what was found here, and what to do where something is wrong")
    args = parser.parse_args(arguments)
    if args.command == "doctor":
        return _doctor()
    if args.dir:
        args.dir.mkdir(parents=True, exist_ok=True)
        return _tour(args.dir.resolve(), browser=not args.no_browser, port=args.port)
    with tempfile.TemporaryDirectory(prefix="gemnb-tour-", ignore_cleanup_errors=True) as folder:
        return _tour(Path(folder).resolve(), browser=not args.no_browser, port=args.port)


def prepare_tour(folder: Path) -> tuple[Path, dict[str, str]]:
    """Put store and notebooks below `folder`; the project to open, and the environment that it wants."""
    if (folder / "home").exists():
        home, project = folder / "home", folder / "work" / "rivers"
    else:
        home, project = make_sample_store(folder)
    for notebook in sorted(notebooks().glob("*.ipynb")):
        if not (project / notebook.name).exists():
            shutil.copy(notebook, project / notebook.name)
    environment = {"GEMINI_CLI_HOME": str(home)}
    if not any(os.environ.get(name) for name in KEY_NAMES):
        environment["GEMNB_LLM"] = "scripted"
    return project, environment


def notebooks() -> Path:
    """Where the notebooks lie: in the package, or beside it in a checkout."""
    inside = PACKAGE / "notebooks"
    return inside if inside.is_dir() else PACKAGE.parent / "notebooks"


def _tour(folder: Path, *, browser: bool, port: int | None) -> int:
    project, environment = prepare_tour(folder)
    told = "a scripted model answers, nothing leaves this machine" if "GEMNB_LLM" in environment else "your key is used"
    sys.stdout.write(f"The tour is in {project} ({told}). Stop it with Ctrl-C.\n")
    sys.stdout.flush()
    command = [sys.executable, "-m", "jupyter", "lab", "--ServerApp.ip=127.0.0.1"]
    command += ["--LabApp.default_url=/lab/tree/tour.ipynb"]
    command += ["--no-browser"] if not browser else []
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"] if port else []
    command += ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the server goes with us
    try:
        return subprocess.run(command, cwd=project, env=os.environ | environment, check=False).returncode
    except KeyboardInterrupt:
        return 0


def _doctor() -> int:
    findings = examine(Path.cwd(), os.environ)
    for finding in findings:
        sys.stdout.write(f"{finding}\n")
    return 0 if all(finding.well for finding in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
