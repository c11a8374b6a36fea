"""The magics in a real shell: values come back, mistakes are one line, hostile titles do nothing."""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from support import NOW, SID, TALK, gemini, header, user
from traitlets.config import Config

import gemnb
from gemnb.errors import GemnbWarning
from gemnb.notebook.arguments import parse
from gemnb.notebook.extension import ATTRIBUTE, workspace_of
from gemnb.notebook.magics import Gemnb
from gemnb.testing import ScriptedLlm

Write = Callable[..., Path]


@pytest.fixture
def shell(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[InteractiveShell]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    monkeypatch.chdir(root)
    config = Config()
    config.HistoryManager.enabled = False
    InteractiveShell.clear_instance()
    ip = InteractiveShell.instance(config=config)
    ip.extension_manager.load_extension("gemnb")
    ip.user_ns["Gemnb"].workspace = gemnb.open_workspace(
        root, home=home, llm=ScriptedLlm(default="Aye."), clock=lambda: NOW
    )
    yield ip
    ip.extension_manager.unload_extension("gemnb")
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, cell: str) -> tuple[Any, str]:
    """The value of a cell, and what it printed."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        result = shell.run_cell(cell)
    return result.result, out.getvalue()


def shown(shell: InteractiveShell, value: Any) -> dict[str, str]:
    assert shell.display_formatter
    data, _ = shell.display_formatter.format(value)
    return dict(data)


def test_sessions_come_back_as_a_value(shell: InteractiveShell, write_session: Write) -> None:
    write_session(header(), *TALK)

    run(shell, "s = %sessions")

    assert [row.id for row in shell.user_ns["s"]] == [SID]
    form = shown(shell, shell.user_ns["s"])
    first, how = form["text/plain"].splitlines()
    assert first == f"  1. How many rivers are in the table? (19 days ago) [{SID}]" and "%resume latest" in how
    assert f"<code>{SID}</code>" in form["text/html"]


def test_all_and_hidden(shell: InteractiveShell, write_session: Write, home: Path) -> None:
    write_session(header(), *TALK)
    write_session(header("bb22cc33-0"), name="session-2026-05-02T10-00-bb22cc33.jsonl")
    other = home / ".gemini/tmp/other/chats"
    other.mkdir(parents=True)
    (other / "session-2026-05-01T10-00-cc33dd44.jsonl").write_bytes(
        (home / ".gemini/tmp/app/chats/session-2026-05-01T10-00-aa11bb22.jsonl").read_bytes()
    )

    everything, _ = run(shell, "%sessions --all")
    hidden, _ = run(shell, "%sessions --hidden")

    assert {row.project_root for row in everything} == {str(workspace_of(shell).root), "(other)"}
    assert [row.state for row in hidden] == ["ok", "empty"] and "nothing to resume" in repr(hidden)


def test_resume_and_talk_on(shell: InteractiveShell, write_session: Write) -> None:
    write_session(header(), *TALK)

    run(shell, "chat = %resume latest")
    reply, printed = run(shell, '%%gemini\nIt\'s {1+1} and $HOME, "quoted"?\nSecond line')

    chat = shell.user_ns["chat"]
    assert chat.messages[2].text == 'It\'s {1+1} and $HOME, "quoted"?\nSecond line'
    assert "Aye." in printed and reply.text == "Aye." and "Aye." not in repr(reply)
    assert workspace_of(shell).chat is chat


def test_a_line_is_a_prompt_too_and_starts_a_session(shell: InteractiveShell) -> None:
    run(shell, "%gemini don't {stop}")

    assert workspace_of(shell).chat.messages[1].text == "don't {stop}"  # type: ignore[union-attr]


@pytest.mark.parametrize("cell", ["%gemini what's missing?", "r = %gemini what's missing?", "%gem what's missing?"])
def test_a_question_is_a_prompt_and_no_call_for_help(shell: InteractiveShell, cell: str) -> None:
    _, printed = run(shell, cell)

    assert workspace_of(shell).chat.messages[1].text == "what's missing?"  # type: ignore[union-attr]
    assert "Aye." in printed


def test_help_is_still_to_be_had(shell: InteractiveShell) -> None:
    assert "pinfo" in shell.transform_cell("%gemini?") and "pinfo" in shell.transform_cell("%sessions?")


def test_the_calls_of_resume(shell: InteractiveShell, write_session: Write) -> None:
    write_session(header(), *TALK)

    listed, _ = run(shell, "%resume")
    fork, _ = run(shell, "%chat 1 --fork")
    new, _ = run(shell, "%resume --new")

    assert [row.id for row in listed] == [SID]
    assert fork.session_id != SID and len(fork.messages) == 2 and len(new.messages) == 1


@pytest.mark.parametrize(
    ("cell", "name", "words"),
    [
        ("%resume 7", "NoSessionsError", "NO_SESSIONS_FOUND"),
        ("%sessions delete", "UsageMistake", "say which one"),
        ("%sessions --nope", "UsageMistake", "usage: %sessions"),
        ("%sessions --search", "UsageMistake", "usage: %sessions ["),
        ("%compress --pin", "UsageMistake", "usage: %compress ["),
        ("%memory --scope everywhere", "UsageMistake", "usage: %memory ["),
        ("%memory forget", "UsageMistake", "usage: %memory ["),
        ("%chat --fork=3", "UsageMistake", "usage: %chat ["),
        ("%rewind --undo=2", "UsageMistake", "usage: %rewind ["),
        ('%resume "open', "UsageMistake", "a quote is not closed"),
        ("%gemini", "UsageMistake", "write the prompt"),
    ],
)
def test_a_mistake_is_one_line(shell: InteractiveShell, cell: str, name: str, words: str) -> None:
    _, printed = run(shell, cell)

    (line,) = printed.strip().splitlines()
    assert line.startswith(f"{name}: ") and words in line


def test_without_a_key_gemini_says_what_to_do(shell: InteractiveShell) -> None:
    workspace_of(shell).llm = None  # type: ignore[assignment]

    _, printed = run(shell, "%gemini hello")

    assert printed.startswith("NoKeyError: There is no API key: set GEMINI_API_KEY")


def test_a_failing_service_is_one_line_and_leaves_no_empty_answer(shell: InteractiveShell) -> None:
    workspace_of(shell).llm = ScriptedLlm(gemnb.errors.LlmError("The service said 503. Ask again."))

    _, printed = run(shell, "%gemini hello")

    assert "LlmError: The service said 503. Ask again. [LLM_ERROR]" in printed and "Traceback" not in printed


@pytest.mark.parametrize(
    ("magic", "line", "told"),
    [
        ("sessions", "delete --purge 2", {"session": "2", "purge": True}),
        ("memory", 'add --scope global "Run pytest"', {"fact": "Run pytest", "scope": "global"}),
        ("memory", 'add "Run pytest" --force', {"fact": "Run pytest", "force": True}),
        ("resume", "share --redact talk.md", {"name": "talk.md", "redact": True}),
        ("resume", "--fork latest", {"name": "latest", "fork": True}),
    ],
)
def test_an_option_may_stand_anywhere(magic: str, line: str, told: dict[str, Any]) -> None:
    assert told.items() <= vars(parse(magic, line)).items()


@pytest.mark.parametrize(
    ("cell", "where"), [("%sessions", "in this project"), ("%sessions --all --hidden", "in any project")]
)
def test_where_nothing_is_says_where_was_looked(shell: InteractiveShell, cell: str, where: str) -> None:
    value, _ = run(shell, cell)

    told = shown(shell, value)
    assert f"No sessions yet {where}" in told["text/plain"] and f"No sessions yet {where}" in told["text/html"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%sessions --search FORTY", "There are [forty]-two."),
        ("%sessions --search There are --all", "[There are] forty-two."),
        ("%sessions --search nothing-like-it", "Nothing was found: `%sessions --search WORDS --all`"),
        ("%sessions --df", SID),
        ("%sessions usage --by month", "108"),
        ("%sessions retention", "0 of 1 sessions would go."),
        ("%sessions retention --apply", "0 sessions deleted, 1 kept"),
    ],
)
def test_what_sessions_can_tell(shell: InteractiveShell, write_session: Write, cell: str, words: str) -> None:
    write_session(header(), *TALK)

    value, _ = run(shell, cell)

    assert words in shown(shell, value)["text/plain"]


@pytest.mark.parametrize(
    ("cells", "form", "words"),
    [
        (["%resume --new"], "text/plain", "no prompt yet"),
        (["%resume --new"], "text/html", "no prompt yet<br>"),
        (["%gemini Hello", "%resume latest"], "text/plain", "3 messages"),
        (["%sessions retention"], "text/html", "<p>0 of 0 sessions would go.</p>"),
        (["%resume --new", "%compress --dry-run"], "text/html", "<p>Would be: NOOP. There is nothing to compress.</p>"),
    ],
)
def test_a_newcomer_reads_whole_sentences(shell: InteractiveShell, cells: list[str], form: str, words: str) -> None:
    for cell in cells:
        value, _ = run(shell, cell)

    assert words in shown(shell, value)[form]


def test_a_rewind_of_nothing_offers_no_number(shell: InteractiveShell) -> None:
    run(shell, "%resume --new")

    _, printed = run(shell, "%rewind 1")

    assert "No message '1' in the talk" in printed and "1 to 0" not in printed


@pytest.mark.filterwarnings("default")
def test_a_warning_is_its_message_alone(shell: InteractiveShell) -> None:
    ours, theirs = (warnings.formatwarning("Mind.", kind, "/a/file.py", 3) for kind in (GemnbWarning, UserWarning))

    assert ours == "GemnbWarning: Mind.\n" and "/a/file.py:3" in theirs
    shell.extension_manager.unload_extension("gemnb")
    assert "/a/file.py:3" in warnings.formatwarning("Mind.", GemnbWarning, "/a/file.py", 3)


def test_what_would_go_is_told_as_a_list(shell: InteractiveShell, write_session: Write, root: Path) -> None:
    write_session(header(), user("u1", "Old <b>question</b>"), gemini("g1", "Yes"))
    (root / ".gemini").mkdir()
    (root / ".gemini/settings.json").write_text('{"general": {"sessionRetention": {"enabled": true, "maxAge": "2d"}}}')

    value, _ = run(shell, "%sessions retention")

    told = shown(shell, value)["text/html"]
    assert "<ul><li>Old &lt;b&gt;question&lt;/b&gt; [" in told and "older than maxAge</li></ul>" in told


def test_suggested_facts_wait_in_the_inbox(shell: InteractiveShell, write_session: Write, root: Path) -> None:
    rule = "Always run the tests with pytest -q before a commit."
    talk = [
        line for n in range(11) for line in (user(f"u{n}", rule if n % 5 == 0 else "Go on"), gemini(f"g{n}", "Yes"))
    ]
    write_session(header(), *talk)

    waiting, _ = run(shell, "%memory suggest")
    again, _ = run(shell, "%memory suggest")

    assert "pytest -q" in shown(shell, waiting)["text/plain"] and len(again) == len(waiting) > 0
    assert not (root / "GEMINI.md").exists()


DIFF = (
    "--- {m}\n+++ {m}\n@@ -1,2 +1,3 @@\n-- old <b>\n+++ /etc/passwd\n+- <script>alert(1)</script>\u202e\n - keep\n"
    "\\ No newline at end of file\n"
)


def test_the_inbox_is_shown_as_coloured_diffs_that_run_nothing(shell: InteractiveShell, home: Path) -> None:
    memory = home / ".gemini/tmp/app/memory/MEMORY.md"
    place = memory.parent / ".inbox/private"
    place.mkdir(parents=True)
    (place / "one.patch").write_text(DIFF.replace("{m}", str(memory)))
    (place / "<i>.patch").write_bytes(b"\xff")

    value, _ = run(shell, "%memory inbox")
    form = shown(shell, value)

    html = form["text/html"]
    for kind, line in (
        ("46,160,67", "+++ /etc/passwd"),
        ("46,160,67", "+- &lt;script&gt;alert(1)&lt;/script&gt;&lt;U+202E&gt;"),
        ("248,81,73", "-- old &lt;b&gt;"),
        ("ui-font-color2", f"+++ {memory}"),
    ):
        assert re.search(rf'<span style="[^"]*{kind}[^"]*">{re.escape(line)}</span>', html)
    assert "<script" not in html and "<i>" not in html and "it is not all UTF-8" in html and "\u202e" not in html
    assert "color:black" not in html and "color:white" not in html  # each theme's own text colour
    assert "+- <script>alert(1)</script><U+202E>" in form["text/plain"] and "\u202e" not in form["text/plain"]


def test_reload_gives_the_current_talk_the_memory_as_it_is(shell: InteractiveShell, root: Path) -> None:
    llm = shell.user_ns["Gemnb"].workspace.llm = ScriptedLlm(default="Fine.")
    (root / "GEMINI.md").write_text("Old rule")
    run(shell, "%gemini One")
    run(shell, '%memory add "Tables are tab separated"')
    run(shell, "%gemini Two")
    run(shell, "%memory reload")
    run(shell, "%gemini Three")

    assert ["tab separated" in (system or "") for system in llm.systems] == [False, False, True]


def test_delete_takes_a_prefix(shell: InteractiveShell, write_session: Write) -> None:
    path = write_session(header(), *TALK)

    deleted, _ = run(shell, "%sessions delete aa11")

    assert not path.exists() and "files and folders: 1" in shown(shell, deleted)["text/html"]


HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>\x1b]0;own\x07\u202egnp.exe"


@pytest.mark.parametrize(
    "cell", ["%sessions", "%resume 1", "%resume 1 --fork", "%sessions --hidden", "%sessions --all"]
)
def test_a_hostile_title_is_text(shell: InteractiveShell, write_session: Write, cell: str) -> None:
    write_session(
        header("<b>x</b>"), user("u", HOSTILE), gemini("g", HOSTILE), name="session-2026-05-01T10-00-evil.jsonl"
    )

    value, printed = run(shell, cell)
    form = shown(shell, value)

    assert "<img" not in form["text/html"] and "<script" not in form["text/html"] and "<b>x" not in form["text/html"]
    assert not any(char in form["text/plain"] + printed + form["text/html"] for char in "\x1b\x07\u202e")


def test_a_hostile_answer_cannot_drive_the_terminal(shell: InteractiveShell) -> None:
    workspace_of(shell).llm = ScriptedLlm(HOSTILE)

    _, printed = run(shell, "%gemini hi")

    assert "<img" in printed and "\x1b" not in printed and "\u202e" not in printed


@pytest.mark.parametrize(
    ("typed", "full"),
    [
        ("s = %sess", "sessions"),
        ("%sessio", "sessions"),
        ("if True:\n    x = %sess --all", "sessions"),
        ("%%gem\nhi", "gemini"),
        ("%cha", "chat"),
    ],
)
def test_a_unique_prefix_is_enough(shell: InteractiveShell, typed: str, full: str) -> None:
    assert f"'{full}'" in shell.transform_cell(typed)


@pytest.mark.parametrize("typed", ["sess", "cha", "x = 'a %sess b'", "(10\n %n)", "%s", "7 %cha"])
def test_a_prefix_elsewhere_is_left_alone(shell: InteractiveShell, typed: str) -> None:
    for name in ("sessions", "chat"):
        assert f"'{name}'" not in shell.transform_cell(typed)


def completions(shell: InteractiveShell, line: str) -> list[str]:
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(line, len(line))]


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("%sessions ", ["delete", "--all", "--hidden"]),
        ("%resume ", ["latest", "last-used", SID, "1", "--fork"]),
        ("%chat aa", [SID]),
        ("%sessions delete ", [SID, "1"]),
        ("c = %resume --f", ["--fork"]),
        ("%resum lat", ["latest"]),
    ],
)
def test_words_complete(shell: InteractiveShell, write_session: Write, line: str, some: list[str]) -> None:
    write_session(header(), *TALK)

    found = completions(shell, line)

    assert set(some) <= set(found) and all("import" not in f for f in found)


def test_settings_tell_where_they_came_from(shell: InteractiveShell, home: Path) -> None:
    run(shell, "%config Gemnb.max_rounds = 7")

    told = {name: (value, source) for name, value, source in shell.user_ns["Gemnb"].explain().rows}

    assert told["Gemnb.max_rounds"] == (7, "%config, or IPython's configuration")
    assert told["Gemnb.progress"] == (True, "default")
    assert told["Gemnb.home"] == (str(home), "$GEMINI_CLI_HOME")
    assert told["model.maxSessionTurns"] == (-1, "default")


def test_a_bad_setting_does_not_stop_a_reload(shell: InteractiveShell) -> None:
    run(shell, "%config Gemnb.max_rounds = 0")

    with pytest.warns(GemnbWarning, match="max_rounds"):
        shell.extension_manager.reload_extension("gemnb")
    assert isinstance(shell.user_ns["Gemnb"], Gemnb)


def test_the_index_can_be_switched_off(shell: InteractiveShell) -> None:
    run(shell, "%config Gemnb.index = False")

    assert not shell.user_ns["Gemnb"].workspace.index.on


def test_changing_the_home_opens_another_store(shell: InteractiveShell, tmp_path: Path) -> None:
    run(shell, f"%config Gemnb.home = '{tmp_path}'")

    assert workspace_of(shell).home == tmp_path


def state(ip: InteractiveShell) -> tuple[Any, ...]:
    transformers = ip.input_transformer_manager
    assert ip.display_formatter
    return (
        {kind: sorted(table) for kind, table in ip.magics_manager.magics.items()},
        "Gemnb" in ip.magics_manager.registry,
        [type(c).__name__ for c in ip.configurables].count("Gemnb"),
        len(transformers.token_transformers),
        len(transformers.cleanup_transforms),
        len(ip.Completer.custom_matchers),
        {name: len(f.type_printers) for name, f in ip.display_formatter.formatters.items()},
        "Gemnb" in ip.user_ns,
    )


def test_unload_and_reload_leave_nothing_behind(shell: InteractiveShell) -> None:
    loaded = state(shell)
    shell.extension_manager.unload_extension("gemnb")
    unloaded = state(shell)

    for _ in range(3):
        shell.extension_manager.load_extension("gemnb")
        assert state(shell) == loaded
        shell.extension_manager.reload_extension("gemnb")
        assert state(shell) == loaded
        shell.extension_manager.unload_extension("gemnb")
        assert state(shell) == unloaded
    assert "Gemnb" not in shell.user_ns and "sessions" not in shell.magics_manager.magics["line"]


@pytest.mark.parametrize("name", ["sessions", "resume", "chat", "gemini"])
def test_every_magic_explains_itself_with_an_example(shell: InteractiveShell, name: str) -> None:
    doc = shell.find_line_magic(name).__doc__ or ""

    assert len(doc) > 100 and f"%{name}" in doc


@pytest.mark.parametrize("cell", ["%sessions delete 1 --search please", "%sessions delete 1 --all"])
def test_delete_with_an_option_deletes_nothing(shell: InteractiveShell, write_session: Write, cell: str) -> None:
    path = write_session(header(), *TALK)

    _, printed = run(shell, cell)

    assert path.exists() and printed.startswith("UsageMistake: %sessions delete: --")


def test_words_after_search_are_searched_and_never_a_command(shell: InteractiveShell, write_session: Write) -> None:
    path = write_session(header(), *TALK)

    _, printed = run(shell, "%sessions --search please delete 1")

    assert path.exists() and "Nothing was found" in printed


def test_an_option_out_of_place_says_where_it_belongs(shell: InteractiveShell) -> None:
    _, printed = run(shell, "%sessions --undo")

    assert "--undo goes only with `%sessions delete`, `%sessions retention`;" in printed


def test_an_interrupt_while_a_piece_is_shown_keeps_what_had_come(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    magics = shell.user_ns["Gemnb"]
    run(shell, "%gemini the first")
    magics.workspace.llm = ScriptedLlm("one two three four", default="Fine.")
    magics.workspace.chat._llm = lambda: magics.workspace.llm
    shown: list[str] = []

    def add(_screen: object, text: str) -> None:
        shown.append(text)
        if len(shown) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("gemnb.notebook.stream.TerminalScreen.add", add)
        _, printed = run(shell, "%gemini the second")

    chat = magics.workspace.chat
    assert "What had come is kept." in printed
    assert chat.last_reply.outcome == "cancelled" and chat.last_reply.text == "".join(shown)
    assert [m.type for m in chat.messages[-3:]] == ["user", "gemini", "info"]
    reply, _ = run(shell, "%gemini the third")
    assert reply.text == "Fine." and chat.messages[-2].text == "the third"


@pytest.mark.parametrize(
    "cell",
    [
        "%sessions --apply",
        "%sessions retention 3",
        "%sessions usage --hidden",
        "%resume 1 --redact",
        "%resume save a --fork",
        "%resume list a",
        "%resume --fork",
        "%resume --new 1",
        "%compress --undo --dry-run",
        "%rewind 1 --undo",
        "%memory show all",
        "%memory --force",
        "%sessions --hid",
    ],
)
def test_words_that_do_not_go_together_are_a_mistake_and_never_passed_over(
    shell: InteractiveShell, write_session: Write, cell: str
) -> None:
    write_session(header(), *TALK)

    value, printed = run(shell, cell)

    assert value is None and printed.startswith("UsageMistake: %")


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("%resume sa", ["save"]),
        ("%resume resume ", ["early", "'two words'"]),
        ("%chat delete e", ["early"]),
        ("%resume share x.md --", ["--redact"]),
        ("%sessions retention --a", ["--apply"]),
        ("%compress --u", ["--undo"]),
    ],
)
def test_sub_commands_tags_and_their_own_options_complete(
    shell: InteractiveShell, write_session: Write, line: str, some: list[str]
) -> None:
    write_session(header(), *TALK)
    for cell in ("%resume latest", "%resume save early", "%resume save 'two words'"):
        run(shell, cell)

    assert completions(shell, line) == some


def test_a_bad_setting_leaves_the_others(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    config = Config(Gemnb={"max_rounds": "many", "progress": False, "model": "gemini-2.5-pro"})
    config.HistoryManager.enabled = False
    ip = InteractiveShell.instance(config=config)

    with pytest.warns(GemnbWarning, match="Gemnb.max_rounds of the configuration is not used"):
        ip.extension_manager.load_extension("gemnb")

    ours = ip.user_ns["Gemnb"]
    assert (ours.max_rounds, ours.progress, ours.model) == (50, False, "gemini-2.5-pro")
    ip.extension_manager.unload_extension("gemnb")
    InteractiveShell.clear_instance()


def test_another_model_by_config_answers_the_next_prompt(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = workspace_of(shell)
    workspace._environ = {"GEMINI_API_KEY": "AIzaNotARealKey"}
    workspace.llm = None

    names = [workspace.llm.name]
    run(shell, "%config Gemnb.model = 'gemini-2.5-flash-lite'")
    names.append(workspace.llm.name)

    assert names[0] != names[1] == "gemini-2.5-flash-lite"


class InterruptedLlm(ScriptedLlm):
    """A model during whose answer the person interrupts."""

    def stream(self, *args: Any, **more: Any) -> Any:
        raise KeyboardInterrupt


def test_an_interrupt_while_compressing_is_one_line_and_changes_nothing(
    shell: InteractiveShell, write_session: Write
) -> None:
    write_session(header(), *TALK)
    run(shell, "%resume latest")
    for _ in range(3):
        run(shell, "%gemini " + "A long question. " * 60)
    workspace_of(shell).llm = InterruptedLlm()
    before = workspace_of(shell).attached().contents()

    _, printed = run(shell, "%compress")

    assert printed.strip() == "Cancelled: The talk was not compressed; it is as it was."
    assert workspace_of(shell).attached().contents() == before


def test_what_a_terminal_shows_is_words(shell: InteractiveShell, write_session: Write, tmp_path: Path) -> None:
    write_session(header(), *TALK)
    write_session(header("bb22cc33-0"), *TALK, name="session-2026-05-02T10-00-bb22cc33.jsonl")
    run(shell, "chat = %resume 1")

    exported, _ = run(shell, f"%resume share {tmp_path / 'talk.md'}")
    reply, _ = run(shell, "chat.send('Hello?')")
    deleted, _ = run(shell, "%sessions delete 2")

    assert shown(shell, exported)["text/plain"].startswith("Exported to ")
    assert shown(shell, reply)["text/plain"] == "Aye."
    assert shown(shell, deleted)["text/plain"].startswith("Deleted 'How many rivers")


def load(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InteractiveShell:
    """A shell of its own in which `%load_ext gemnb` was said."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    InteractiveShell.clear_instance()
    config.HistoryManager.enabled = False
    ip = InteractiveShell.instance(config=config)
    ip.extension_manager.load_extension("gemnb")
    return ip


@pytest.mark.parametrize("mode", ["notify", "apply", "off"])
def test_what_is_due_is_told_or_deleted_at_load(
    root: Path, home: Path, write_session: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: str
) -> None:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    monkeypatch.chdir(root)
    path = write_session(header(), *TALK)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    out = io.StringIO()

    with redirect_stdout(out):
        ip = load(Config(Gemnb={"cleanup_on_load": mode}), tmp_path, monkeypatch)
        if notice := getattr(ip, ATTRIBUTE).notice:
            notice.wait()
        ip.run_cell("1")
        ip.run_cell("2")

    told = out.getvalue()
    assert told.count("past the retention of your settings") == (mode == "notify")
    assert told.count("1 sessions deleted") == (mode == "apply") and path.exists() == (mode != "apply")
    ip.extension_manager.unload_extension("gemnb")
    InteractiveShell.clear_instance()


def test_a_number_means_what_was_shown_when_something_is_deleted(shell: InteractiveShell, write_session: Write) -> None:
    made = [
        write_session(
            header(f"{number:08x}-0000", startTime=f"2026-05-0{number}T10:00:00.000Z"),
            *TALK,
            name=f"session-2026-05-0{number}T10-00-{number:08x}.jsonl",
        )
        for number in (1, 2, 3)
    ]
    run(shell, "%sessions")
    away = made[0].rename(made[0].with_suffix(".away"))

    _, printed = run(shell, "%sessions delete 1 --purge")

    assert made[1].exists() and "1 is 'How many rivers" in printed and "[00000002-0000] now" in printed
    away.rename(made[0])
    run(shell, "%sessions delete 1")
    _, printed = run(shell, "%sessions delete 2")
    assert not made[0].exists() and made[1].exists() and made[2].exists() and "The list has changed" in printed
    run(shell, "%sessions")
    run(shell, "%sessions delete 2")
    assert made[1].exists() and not made[2].exists()


@pytest.mark.parametrize(
    ("retention", "words"),
    [
        ({"maxAge": 30}, ["Nothing is cleaned", "maxAge is 30", "settings.json", "`%sessions retention`"]),
        ({"enabled": False}, ["Cleaning is off in your settings"]),
        ({}, ["1 of 1 sessions would go", "`%sessions retention --apply`"]),
    ],
)
def test_a_plan_says_what_to_do_next(
    shell: InteractiveShell, write_session: Write, home: Path, retention: Any, words: list[str]
) -> None:
    path = write_session(header(startTime="2026-01-01T10:00:00Z", lastUpdated="2026-01-01T10:00:00Z"), *TALK)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    (home / ".gemini/settings.json").write_text(json.dumps({"general": {"sessionRetention": retention}}))

    told = str(run(shell, "%sessions retention")[0])

    assert all(word in told for word in words)
    if retention.get("maxAge"):
        assert "Nothing is cleaned" in str(run(shell, "%sessions retention --apply")[0]) and path.exists()
    assert str(run(shell, "%sessions rescue --restore")[0]).startswith("Nothing was brought back")


def test_deleting_and_retention_are_undone_by_the_magic(shell: InteractiveShell, write_session: Write) -> None:
    path = write_session(header(), *TALK)
    os.utime(path, (1_700_000_000, 1_700_000_000))

    run(shell, "%sessions delete 1")
    assert not path.exists()
    run(shell, "%sessions delete --undo")
    assert path.exists()
    run(shell, "%sessions rescue")
    run(shell, "%sessions delete 1 --purge")
    _, printed = run(shell, "%sessions retention --undo")
    assert not path.exists() and printed.startswith("TrashError: There is no deletion to undo")
