"""What the sample store's sessions talk about. The people, projects and figures are made up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """What a session is about: prompts and answers in turn, the tool that is used, and its file."""

    title: str | None
    talk: Sequence[tuple[str, str]]
    tool: str = "read_file"
    file: str = "README.md"


TOPICS = (
    Topic("Rivers table has duplicate rows", (("Why does rivers.csv have 44 rows and not 42?", "Two rows stand twice: the Elbe and the Oder. Their ids differ only in white space."), ("Drop them, but keep the first.", "Done: `clean.py` now strips ids before it compares them. 42 rows remain.")), file="data/rivers.csv"),
    Topic(None, (("The second test fails on Python 3.13, not on 3.12. Look into it.", "`test_parse_date` relies on the order of a set. It is sorted now."), ("Never sort in the hot path: we must keep it under 5 ms.", "Understood. The sort moved to the test itself."), ("Run the suite again.", "128 passed in 9.4 s.")), tool="run_shell_command", file="pytest -q"),
    Topic("折れ線グラフの軸", (("折れ線グラフの縦軸を対数にしてください。", "`plot.py` の軸を `log` に変更しました。"), ("凡例は日本語のままにしてください。", "はい、凡例はそのままです。")), file="plot.py"),
    Topic("数据清洗脚本", (("把缺失值改成中位数，不要用平均数。", "已经改好：`fill.py` 现在使用中位数。"), ("端口必须是 5433。", "好的，配置中的端口是 5433。")), file="fill.py"),
    Topic(None, (("Welche Städte liegen an der Donau?", "Zehn Städte der Tabelle liegen an der Donau, von Ulm bis Belgrad."),), file="data/cities.csv"),
    Topic("Flaky download in the nightly job", (("The nightly job failed with a timeout. Why?", "The mirror answers slowly between 02:00 and 02:20 UTC. The client waits 10 s and gives up."), ("Retry three times with a longer wait.", "It retries after 5, 20 and 60 s now; the job log says each attempt.")), tool="run_shell_command", file="journalctl -u nightly"),
    Topic(None, (("Explain what `merge_asof` does with our tolerances.", "It joins each reading to the last calibration before it, at most 30 minutes old. Older ones give NaN."),), file="calibrate.py"),
    Topic("Docs: install section", (("Write the install section; assume nothing but Python.", "It is three lines: make an environment, install, run the check."), ("Shorter.", "Two lines now.")), tool="write_file", file="docs/install.md"),
)  # fmt: skip
"""What the short sessions are about, in turn."""

REPORT = Topic(
    "The yearly report, step by step",
    (
        (
            "We write the yearly report on the rivers table this week. Read data/rivers.csv and tell me what is in it. Always answer in short sentences, and never change the raw file: everything goes through clean.py.",
            "The table has 42 rivers and 11 columns. Each row has a length in km, a mean discharge in m³/s, the basin's area and the year of the last survey. Seven rows have no discharge, and three have a survey year before 1990. I won't touch data/rivers.csv; what has to change goes through clean.py. The file is UTF-8 with a semicolon between the fields, and its decimal sign is a comma, so pandas has to be told both.",
        ),
        (
            "Fill the seven missing discharges. Use the median of the basin, not of the whole table.",
            "Done in clean.py: `fill_discharge()` groups by basin and takes the median of the group. Five of the seven are filled so. Two rivers are alone in their basin, the Ems and the Warnow, and there is no median to take. I left these two empty and wrote them to reports/missing.txt, so that nobody takes a guess for a measurement. The function says in its docstring where each value comes from, and a new column `discharge_source` tells `measured` or `basin median` for every row.",
        ),
        (
            "Good. Run the tests with pytest -q before you tell me that something works.",
            "Understood: `pytest -q` first, then the word. I ran it now: 128 passed in 9.4 s. One of them is new, `test_fill_uses_the_basin`, and it fails when the whole table's median is used.",
        ),
        (
            "The chart of discharge against length looks wrong. Three points are far out.",
            "The three are the Danube, the Rhine and the Elbe, and they are right: they are that much larger. On a linear axis the other 39 rivers lie in one corner. With both axes logarithmic the points follow a line with slope 1.4, and the three are no longer far out. plot.py has `scale='log'` now, and the chart says so under its title. I kept the linear one as reports/linear.png for comparison.",
        ),
        (
            "No, not as PNG. We use SVG for every chart in the report.",
            "Changed: plot.py writes reports/discharge.svg and reports/linear.svg, and the PNG is gone. `save()` refuses other endings with a clear error, so that it can't happen again. `pytest -q`: 129 passed in 9.6 s.",
        ),
        (
            "Why does the job on the server take 40 minutes? Here it takes two.",
            "The server reads the calibration files over the network one by one: 2,160 files, about a second each. Here they lie on the disk. `calibrate.py` opens each file twice, too, once for the header and once for the rows. Reading each once halves it. Reading them in parallel with eight threads brings the server to 3 minutes 10 seconds, because the time goes into waiting and not into computing. I made the number of threads a setting, `CALIBRATION_THREADS=8`, since the file server answers 429 above twelve.",
        ),
        (
            "Take eight, but the log must say when the file server refuses.",
            "It does: each refusal is one line in logs/calibration.log with the file's name, the answer (429) and the wait, which doubles from 5 to 60 seconds. After five refusals of one file the job stops with exit code 3 and names the file. `pytest -q`: 131 passed in 9.9 s; two new tests play a server that refuses.",
        ),
        (
            "Write the section on method for the report. Half a page. In German, please, our readers are German.",
            "Der Abschnitt steht in report/methode.md: 212 Wörter. Er sagt, woher die 42 Flüsse stammen, dass fehlende Abflüsse mit dem Median des Einzugsgebiets gefüllt wurden (fünf Werte), dass zwei Flüsse ohne Wert bleiben (Ems und Warnow), und dass beide Achsen logarithmisch sind. Die Quellen stehen als Fußnoten darunter. Die Zahlen kommen aus reports/facts.json und werden beim Bauen eingesetzt, damit Text und Tabelle nicht auseinanderlaufen.",
        ),
        (
            "The port of the preview server is 5433, not 8000. Please use that everywhere.",
            "Changed in four places: Makefile, docs/preview.md, .env.example and tests/test_preview.py. The preview is at port 5433 now, and nothing else in the repository mentions 8000. `pytest -q`: 131 passed in 9.8 s.",
        ),
        (
            "Does the report build from a clean checkout?",
            "Not yet. `make report` needs reports/facts.json, and that file is written by clean.py, which the Makefile does not call. I added the rule, so that facts.json is made when it is older than clean.py or the raw table. From a clean checkout `make report` now takes 2 minutes 20 seconds and gives build/report.pdf with 14 pages. It still warns about one missing font; DejaVu Serif stands in for it.",
        ),
        (
            "Leave the font for now. What is still open?",
            "Three things. First, the discharge of the Ems and the Warnow: the water board has been asked, no answer yet. Second, the font in the PDF. Third, the three surveys from before 1990: the text does not say yet that they are older than the others. All the rest is done: the filled values, the charts as SVG, the method in German, the build from a clean checkout.",
        ),
        (
            "Add a footnote about the old surveys, then stop for today.",
            "The footnote is in report/methode.md: three of the 42 surveys are from before 1990 (Eider 1984, Peene 1987, Oste 1989), and their lengths may have changed by straightening since. `make report` gives 14 pages, `pytest -q` 131 passed in 9.7 s. Open for tomorrow: Ems and Warnow, and the font.",
        ),
    ),
    file="data/rivers.csv",
)  # fmt: skip
"""One talk that is long enough to be worth a summary, with rules that a summary must not lose."""

LAKES = Topic(
    None,
    (
        (
            "Once more, but for the lakes: which columns are missing there?",
            "The lakes table has no discharge and no basin. It has depth and volume instead, for 17 lakes.",
        ),
    ),
    file="data/lakes.csv",
)
"""Where a fork of that talk went."""
