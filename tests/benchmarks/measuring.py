"""What the benchmarks share: stores, floors, a fair comparison, peak memory, and the one table."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import gemnb
from gemnb.store.index import Index
from gemnb.store.rows import rows_version
from gemnb.workspace import Workspace

GENERATOR = Path(__file__).parents[3] / "shared" / "tools" / "perf" / "make_store.py"
READ_BYTES = 1 << 18
PEAK = """
def peak():  # `ru_maxrss` would tell the largest of the parent, too
    with open("/proc/self/status") as told:
        return next(int(line.split()[1]) / 1024 for line in told if line.startswith("VmHWM"))
"""
"""Beginning of a program that tells its peak memory, in MB."""

Job = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Store:
    """A store to measure with: `home/` and `proj/` of one folder."""

    home: Path
    root: Path

    @property
    def chats(self) -> Path:
        """The folder of its session files."""
        found = list((self.home / ".gemini" / "tmp").glob("*/chats"))
        if len(found) != 1:
            raise SystemExit(f"{self.home} has {len(found)} folders of sessions: give a store with one project.")
        return found[0]

    @property
    def files(self) -> list[Path]:
        """Its session files."""
        return sorted(path for path in self.chats.iterdir() if path.name.startswith("session-"))

    @property
    def longest_line_mb(self) -> float:
        """Size of the largest line."""
        longest = 0
        for path in self.files:
            with path.open("rb", buffering=READ_BYTES) as file:
                longest = max(longest, *map(len, file), 0)
        return longest / 1e6

    def open(self, index: Path | None = None) -> Workspace:
        """A workspace over it, with an index of its own or without one."""
        ws = gemnb.open_workspace(self.root, home=self.home)
        ws.index = ws.store._index = Index(index or Path(os.devnull), version=rows_version())
        ws.index.on = index is not None
        return ws


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside its floor. `ratio` may be no more than `bar`; no bar is a figure to know."""

    what: str
    figure: float
    unit: str
    floor: float
    against: str
    bar: float | None = None

    @property
    def ratio(self) -> float:
        """The figure in floors."""
        return self.figure / self.floor


def least(jobs: Mapping[str, Job], rounds: int, *, before: Mapping[str, Job] | None = None) -> dict[str, float]:
    """Least CPU seconds of each job over interleaved rounds; what is to be done `before` one is not counted."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            if before and name in before:
                before[name]()
            gc.collect()
            begun = time.process_time()
            job()
            best[name] = min(best[name], time.process_time() - begun)
    return best


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run to its end."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: Path

    def cpu_seconds(self) -> float:
        """What it and its children spent."""
        with tempfile.TemporaryFile() as out:
            process = subprocess.Popen(
                self.arguments, env=dict(self.environment), cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT,
            )  # fmt: skip
            _, status, spent = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                out.seek(0)
                raise SystemExit(f"{self.arguments} failed:\n{out.read().decode(errors='replace')[-2000:]}")
        return spent.ru_utime + spent.ru_stime


def least_of_programs(commands: Mapping[str, Command], rounds: int) -> dict[str, float]:
    """Least CPU seconds of each whole program over interleaved rounds."""
    best = dict.fromkeys(commands, float("inf"))
    for _ in range(rounds):
        for name, command in commands.items():
            best[name] = min(best[name], command.cpu_seconds())
    return best


def python(program: str, *arguments: object) -> Command:
    """A Python program in a process of its own; compiled in its first round, as what is installed is."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return Command([sys.executable, "-c", program, *map(str, arguments)], environment, Path.cwd())


def told_by(program: str, *arguments: object) -> list[float]:
    """The numbers that a Python program prints; it may call `peak()`."""
    command = [sys.executable, "-c", PEAK + program, *map(str, arguments)]
    told = subprocess.run(command, capture_output=True, text=True)
    if told.returncode:
        raise SystemExit(told.stderr)
    return [float(word) for word in told.stdout.split()]


def stat_all(chats: Path) -> None:
    """Floor: what the system says of every session file."""
    for entry in os.scandir(chats):
        if entry.name.startswith("session-"):
            entry.stat()


def read_all(files: Iterable[Path]) -> None:
    """Floor: every byte."""
    for path in files:
        with path.open("rb", buffering=READ_BYTES) as file:
            while file.read(READ_BYTES):
                pass


def orjson_all(files: Iterable[Path]) -> None:
    """Floor: `orjson.loads` of every line, and nothing made of it."""
    import orjson

    for path in files:
        with path.open("rb", buffering=READ_BYTES) as file:
            for line in file:
                try:
                    orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue


@contextmanager
def store_of(arguments: Sequence[str], *, kind: str = "M") -> Iterator[Store]:
    """The store that the first of `arguments` names, else one of `kind` from the generator beside the repository."""
    if arguments:
        folder = Path(arguments[0]).absolute()
        if not (folder / "home" / ".gemini").is_dir():
            raise SystemExit(f"{folder} is no store to measure with: it has no `home/.gemini` and `proj`.")
        yield Store(folder / "home", folder / "proj")
        return
    if not GENERATOR.is_file():
        raise SystemExit(f"Give the path of a store, with `home` and `proj`: there is no {GENERATOR} to make one with.")
    with tempfile.TemporaryDirectory(prefix="gemnb-store-") as folder:
        subprocess.run([sys.executable, GENERATOR, folder, "--kind", kind], check=True, stdout=subprocess.DEVNULL)
        yield Store(Path(folder, "home"), Path(folder, "proj"))


@contextmanager
def copy_of(store: Store) -> Iterator[Store]:
    """A copy that may be written to, of the same project."""
    with tempfile.TemporaryDirectory(prefix="gemnb-copy-") as folder:
        home = Path(folder, "home")
        shutil.copytree(store.home, home)
        yield Store(home, store.root)


def show(rows: Iterable[Row]) -> bool:
    """Print the table; whether every bar was met."""
    met = True
    print(f"{'what':58} {'figure':>12}  {'floor':>12} {'of':28} {'ratio':>7} {'bar':>6}")
    for row in rows:
        figures = f"{row.figure:9.4g} {row.unit:2}  {row.floor:9.4g} {row.unit:2} {row.against:28} {row.ratio:7.3f}"
        verdict = "" if row.bar is None else f"{row.bar:6.3g} {'met' if row.ratio <= row.bar else 'NOT MET'}"
        print(f"{row.what:58} {figures} {verdict}", flush=True)
        met &= row.bar is None or row.ratio <= row.bar
    return met
