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
    Topic("Broken links in the guide", (("Find the links in the guide that lead nowhere.", "Four of 61: two point to the old wiki, two lack the `.html`. They are in docs/guide.md, lines 14, 88, 90 and 131."), ("Fix the two without an ending, and list the other two in an issue.", "Fixed. The text of the issue is in notes/links.md.")), tool="search_file_content", file="http"),
    Topic(None, (("Welcher Farbverlauf passt für Abflüsse, auch für Farbenblinde?", "`viridis` oder `cividis`: beide werden gleichmäßig heller und bleiben in Graustufen lesbar."),), file="styles/map.css"),
    Topic(None, (("Explain what `merge_asof` does with our tolerances.", "It joins each reading to the last calibration before it, at most 30 minutes old. Older ones give NaN."),), file="calibrate.py"),
    Topic("Docs: install section", (("Write the install section; assume nothing but Python.", "It is three lines: make an environment, install, run the check."), ("Shorter.", "Two lines now.")), tool="write_file", file="docs/install.md"),
    Topic("Smaller pictures for the start page", (("The start page loads 6 MB. What is in it?", "Five photographs of 1.2 MB each, shown at 400 pixels. At that size they need 90 kB."), ("Make them smaller, as WebP, and keep the originals.", "Done: 460 kB altogether, originals in assets/full.")), tool="run_shell_command", file="du -h assets/*"),
    Topic("Datas no formato do país", (("As datas da tabela aparecem como 2024-03-01. Mostre-as como 01/03/2024.", "Mudei `format_date()`: a tabela mostra dia/mês/ano, o ficheiro CSV continua em ISO."), ("Ótimo. Não mude o CSV, nunca.", "Combinado: o CSV fica em ISO.")), tool="replace", file="table.py"),
    Topic("Which gauge stations moved", (("Some stations changed their coordinates between 2019 and 2023. Which?", "Six of 310 moved by more than 50 m; the farthest is Barby, 1.2 km upstream."), ("Write them to a table.", "stations/moved.csv has the six with both positions and the distance in metres."), ("Sort it by distance instead.", "Sorted, the farthest first.")), file="stations/2023.csv"),
    Topic(None, (("What does the warning about SettingWithCopy mean, and is ours harmless?", "A column is set on a slice that may be a copy. Ours is not harmless: `offset` was lost for 12 sensors. With `.loc` it stays."), ("Put a test on it.", "`test_offset_is_kept` fails with the old line and passes now.")), tool="run_shell_command", file="pytest -q tests/test_offset.py"),
    Topic(None, (("Welche Städte liegen an der Donau?", "Zehn Städte der Tabelle liegen an der Donau, von Ulm bis Belgrad."),), file="data/cities.csv"),
    Topic("Flaky download in the nightly job", (("The nightly job failed with a timeout. Why?", "The mirror answers slowly between 02:00 and 02:20 UTC. The client waits 10 s and gives up."), ("Retry three times, each with a longer timeout.", "It retries after 5, 20 and 60 s now; the job log says each attempt.")), tool="run_shell_command", file="journalctl -u nightly"),
    Topic("Sensor 17 drifts", (("Sensor 17 reads 0.4 m higher each spring. Is that the river or the sensor?", "The sensor: its neighbours 16 and 18 show nothing. It began with the new cable on 2023-02-11."), ("Take it out of the mean, and say so in the log.", "It is out since that day; `calibration.log` names it at every run.")), file="sensors/17.csv"),
    Topic("اتجاه النص في الجدول", (("أسماء الأنهار بالعربية تظهر مقلوبة في الجدول.", "أضفت `dir=auto` إلى خلايا الأسماء، فصارت تظهر صحيحة."),), tool="replace", file="templates/table.html"),
    Topic("Units in the column names", (("Half the columns say their unit and half don't. Suggest names.", "`length_km`, `discharge_m3s`, `area_km2`, `height_m`: the unit last, no brackets."), ("Rename them everywhere, tests too.", "27 places in 9 files. 128 passed.")), tool="search_file_content", file="discharge"),
    Topic("Make the import of 2023 faster", (("`load_2023()` takes 48 s. Where does the time go?", "Forty of the 48 s go into parsing dates, one by one. `format='%Y-%m-%d'` brings it to 3 s."), ("Do that, and keep the old one under a flag for a month.", "`--slow-dates` keeps it.")), tool="run_shell_command", file="python -m cProfile load.py"),
    Topic(None, (("Compare the median filter with Savitzky-Golay for the gauge data.", "The median keeps steps and drops spikes; Savitzky-Golay keeps peaks and smears steps. Our sluices make steps: the median, seven wide."),), file="filters.py"),
    Topic("Merge the two station lists", (("Merge stations/a.csv and stations/b.csv; b is right where they differ.", "312 stations, 41 from b alone. In 9 both had one, and b's value was taken."), ("Show me the nine.", "They are in stations/conflicts.csv, both values side by side.")), file="stations/a.csv"),
    Topic("Release notes for 2.3", (("Write the release notes from the commits since 2.2. Only what a user notices.", "Five lines: two new columns, the faster import, dates as ISO, one fix."), ("The fix first.", "It stands first now.")), tool="run_shell_command", file="git log --oneline v2.2.."),
    Topic(None, (("Is there a shorter way to write this loop over the basins?", "`df.groupby('basin')['length_km'].sum()` gives the same table in one line, sorted by name."), ("Use that.", "Done; 14 lines fewer.")), tool="replace", file="basins.py"),
    Topic("Why CI is red on Windows", (("CI is red on Windows only. Why?", "Two tests compare paths as text with `/`. `Path.as_posix()` on both sides makes them equal."), ("Fix it; no skips.", "Fixed, nothing is skipped.")), tool="run_shell_command", file="pytest -q -k path"),
    Topic("A map of the basins", (("Draw a map of the basins with the stations as dots.", "`map.py` writes reports/basins.svg: 11 basins, 312 stations."), ("Label only the five longest rivers.", "Five labels, none overlap.")), tool="write_file", file="map.py"),
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
    "The same report, for the lakes",
    (
        (
            "Once more, but for the lakes: which columns are missing there?",
            "The lakes table has no discharge and no basin. It has depth and volume instead, for 17 lakes.",
        ),
    ),
    file="data/lakes.csv",
)
"""Where a fork of that talk went."""
