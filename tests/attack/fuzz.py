"""Coverage-guided fuzzing of the readers: `python tests/attack/fuzz.py TARGET|all --seconds 300 --corpus FOLDER`.

Prints, as one JSON line for each target, how many inputs were tried and what was found; a finding is kept in
the corpus folder as `crash-…`, and belongs into `tests/data/fuzz/TARGET/` once it is mended.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FOUND = HERE.parent / "data" / "fuzz"
SHARED = HERE.parents[2] / "shared" / "corpus"
LARGEST_SEED = 40_000
PATTERNS = {
    "journal": "*.jsonl",
    "fold": "session-*.jsonl",
    "projection": "session-*.jsonl",
    "settings": "settings.json",
    "imports": "GEMINI.md",
    "registry": "projects.json",
    "patches": "*.patch",
}


def seed(target: str, folder: Path) -> None:
    """Put the seeds of `target` into `folder`: written ones, earlier findings, files of the real client."""
    from fuzz_targets import SEEDS

    for number, data in enumerate(SEEDS[target]):
        (folder / f"seed-{number}").write_bytes(data)
    kept = [*(FOUND / target).glob("*"), *SHARED.rglob(PATTERNS[target])]
    for number, path in enumerate(path for path in kept if path.is_file() and path.stat().st_size < LARGEST_SEED):
        (folder / f"kept-{number}").write_bytes(path.read_bytes())


def fuzz(target: str) -> None:
    """Fuzz in this process; the arguments after the target are libFuzzer's. Does not return."""
    import atheris

    sys.path.insert(0, str(HERE.parents[1]))
    with atheris.instrument_imports(include=["gemnb"]):
        from fuzz_targets import TARGETS

    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atheris.Setup([sys.argv[0], *sys.argv[3:]], lambda data: TARGETS[target](data, folder))
    atheris.Fuzz()


def run(target: str, *, seconds: float, corpus: Path) -> dict[str, object]:
    """Fuzz `target` in a process of its own, again after each finding, until the time is over."""
    import time

    folder = corpus / target
    folder.mkdir(parents=True, exist_ok=True)
    seed(target, folder)
    end = time.monotonic() + seconds
    executions, findings, errors = 0, [], []
    while (left := int(end - time.monotonic())) > 0 and len(findings) < 20:
        options = [
            f"-max_total_time={left}",
            "-timeout=20",
            "-rss_limit_mb=3000",
            "-print_final_stats=1",
            "-verbosity=1",
        ]
        command = [sys.executable, __file__, "--inside", target, str(folder), f"-artifact_prefix={folder}/", *options]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd=corpus)
        told = re.search(r"number_of_executed_units:\s*(\d+)", done.stderr)
        executions += int(told[1]) if told else 0
        if not done.returncode:
            break
        wrote = re.search(r"Test unit written to (\S+)", done.stderr)
        findings.append(wrote[1] if wrote else done.stderr[-2000:])
        errors.append(done.stdout[-1500:])
        if not wrote:
            break
        Path(wrote[1]).rename(corpus / f"{target}-{Path(wrote[1]).name}")  # else the next run begins with it
    return {"target": target, "executions": executions, "findings": findings, "errors": errors}


def main() -> int:
    """Fuzz what the command line says; 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=[*PATTERNS, "all"])
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--corpus", type=Path, default=None, help="a folder that is kept; by default one that is not")
    told = parser.parse_args()
    found = False
    for target in PATTERNS if told.target == "all" else [told.target]:
        with tempfile.TemporaryDirectory() as scratch:
            result = run(target, seconds=told.seconds, corpus=(told.corpus or Path(scratch)).absolute())
        print(json.dumps(result), flush=True)  # noqa: T201 - a program
        found = found or bool(result["findings"])
    return int(found)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        fuzz(sys.argv[2])
    sys.exit(main())
