"""Checks the documentation: links must resolve, and the flags, subcommands and ./dev commands it names must exist."""

import ast
import collections
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from installed_client import installed_client  # noqa: E402

FOLDERS = ("client", "deploy", "docs", "kernels", "models", "tests", "tools")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
# Tables of other programs' flags; tests/e2e/compatibility_test.py tests them.
NOT_OURS = {"docs/compatibility.md"}
PROGRAMS = ("saccaded", "saccade", "./dev")

FENCED = re.compile(r"^( *)```.*?^\1```[^\n]*$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n+)+")
SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+)\)")
FLAG = re.compile(r"--[a-z][a-z0-9-]*")


def shown(path):
    return path.relative_to(ROOT).as_posix()


def prose(text):
    """The page without its code blocks."""
    return INDENTED.sub("", FENCED.sub("", text))


def code(text):
    """Every line of the code blocks and every code span of a page."""
    blocks = [match.group().strip() for pattern in (FENCED, INDENTED) for match in pattern.finditer(text)]
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return lines + [" ".join(match.group(2).split()) for match in SPAN.finditer(prose(text))]


@functools.cache
def anchors(text):
    """The anchors of a page's headings, as GitHub generates them."""
    found, counts = set(), {}
    for heading in re.findall(r"^#+ +(.+?) *#*$", FENCED.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = counts.get(anchor, 0)
        counts[anchor] = count + 1
        found.add(f"{anchor}-{count}" if count else anchor)
    return found


def broken_links(page, text, root=ROOT):
    """Links of a page that lead nowhere, or out of the folder `root`."""
    found = []
    for target in LINK.findall(SPAN.sub("`code`", prose(text))):
        path, _, anchor = urllib.parse.unquote(target).partition("#")
        if urllib.parse.urlsplit(target).scheme:
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.is_relative_to(root) or not file.exists():
            found.append(f"{page.relative_to(root)}: {target}: there is no such file")
        elif anchor and anchor not in anchors(text if file == page else file.read_text()):
            found.append(f"{page.relative_to(root)}: {target}: {file.relative_to(root)} has no such heading")
    return found


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout + done.stderr


@functools.cache
def subcommands():
    """Flags of each subcommand of saccade, by name."""
    command = pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / "saccade"
    names = re.findall(r"^  (\w+) {2,}\S", run(command, "--help").partition("Subcommands:")[2], re.MULTILINE)
    assert "classify" in names, names
    return {name: of_python_package().get(name) or set(FLAG.findall(run(command, name, "--help"))) for name in names}


@functools.cache
def of_python_package():
    """Flags of the commands that the Python package has, by name."""
    package = (ROOT / "client" / "python" / "saccade" / "__main__.py").read_text()
    names = ast.literal_eval(re.search(r"^COMMANDS = (\(.*\))$", package, re.MULTILINE)[1])
    with tempfile.TemporaryDirectory() as folder:
        client = installed_client(pathlib.Path(folder) / "client")
        helps = {name: run("env", f"PYTHONPATH={client}", sys.executable, "-m", "saccade", name, "--help") for name in names}
    return {name: set(FLAG.findall(text)) for name, text in helps.items()}


@functools.cache
def daemon_flags():
    return set(FLAG.findall(run(pathlib.Path(os.environ["SACCADE_BUILD_DIR"]) / "bin" / "saccaded", "--help")))


@functools.cache
def dev_commands():
    """Flags that ./dev help lists for each command, by name. Every command accepts --cuda."""
    os.environ.setdefault("SACCADE_CACHE", str(ROOT / "build"))
    usage = re.findall(r"^\./dev (\w+)(.*)$", run(ROOT / "dev", "help"), re.MULTILINE)
    assert usage, "./dev help lists no commands"
    flags = collections.defaultdict(lambda: {"--cuda"})
    for name, rest in usage:
        flags[name].update(FLAG.findall(rest))
    return dict(flags)


def words(text):
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # an apostrophe, so probably not a command
        return text.split()


def commands(line):
    """Yields (program, words) for each command in a line; (None, words) for flags without a program."""
    for part in re.split(r"\||&&|;|\$\(", line.removeprefix("$ ")):
        said = words(part)
        while said and re.fullmatch(r"[A-Z_]+=\S*", said[0]):
            said = said[1:]
        if not said:
            continue
        name = said[0] if said[0] == "./dev" else said[0].rpartition("/")[2]
        yield (None, said) if said[0].startswith("--") else (name, said[1:])


def flags_of(said):
    return {match.group() for word in said if (match := FLAG.match(word.lstrip("[")))}


def flags_of_others(lines):
    """The flags that a page uses in commands of other programs."""
    return {flag for line in lines for program, said in commands(line)
            if program and (program not in PROGRAMS or program == "./dev") for flag in flags_of(said)}


def is_known(flag, known):
    return flag in known or flag.endswith("-") and any(one.startswith(flag) for one in known)


def wrong_in(line, others=frozenset()):
    """The names in a line of code that do not exist; `others` are flags that may stand alone, too."""
    found = []
    for program, said in commands(line):
        if program is None:
            known = daemon_flags().union(others, *subcommands().values(), *dev_commands().values())
            unknown = [flag for flag in flags_of(said) if not is_known(flag, known)]
            found += [f"{flag} is a flag of neither program" for flag in unknown]
        elif program == "saccaded":
            found += [f"saccaded has no {flag}" for flag in flags_of(said) - daemon_flags()]
        elif program in PROGRAMS:
            table = subcommands() if program == "saccade" else dev_commands()
            name = said[0] if said and re.fullmatch(r"[a-z]\w*", said[0]) else None
            if name is not None and name not in table:
                found.append(f"{program} has no command '{name}'")
            # ./dev passes flags that it does not name to its tools.
            elif name is not None and table[name] != {"--cuda"}:
                found += [f"{program} {name} has no {flag}" for flag in flags_of(said) - table[name]]
    return found


# A command that Debian's Python refuses: its packages belong to apt.
BARE_PIP = re.compile(r"^(?:pip|pip3) install .*client/python")
# The sources of the networks, in a checkout.
SOURCES_AS_REPOSITORY = re.compile(r"saccaded?\b.*--model-repository[ =]models( |$)")


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_commands_work_in_a_checkout_on_debian(page):
    lines = code(page.read_text())
    assert not [line for line in lines if BARE_PIP.match(line)], "use a virtual environment, as in docs/quickstart.md"
    named = [line for line in lines if SOURCES_AS_REPOSITORY.search(line)]
    assert not named or shown(page) == "docs/operations.md" and "`models` stands for the folder with your models" in page.read_text(), named


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_somewhere(page):
    problems = broken_links(page, page.read_text())
    assert not problems, "\n" + "\n".join(problems)


def test_links_of_installed_pages_lead_somewhere(tmp_path):
    """The pages of the Debian package, which has no other files of the repository."""
    run(ROOT / "tools" / "package" / "pages", tmp_path)
    pages = sorted(tmp_path.rglob("*.md"))
    assert {"README.md", "SECURITY.md"} < {page.name for page in pages}
    problems = [problem for page in pages for problem in broken_links(page, page.read_text(), tmp_path)]
    assert not problems, "\n" + "\n".join(problems)
    unit = (ROOT / "deploy" / "systemd" / "saccade.service").read_text()
    named = re.search(r"^Documentation=file:/usr/share/doc/saccade/(.+)$", unit, re.MULTILINE)[1]
    assert (tmp_path / named).exists(), named


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_what_is_named_exists(page):
    lines = [line for line in code(page.read_text()) if shown(page) not in NOT_OURS or not line.startswith("--")]
    others = flags_of_others(lines)
    problems = [f"{shown(page)}: `{line}`: {wrong}" for line in lines for wrong in wrong_in(line, others)]
    assert not problems, "\n" + "\n".join(problems)


def missing_tests(text):
    """The tests that a page names as `FILE::TEST` and that do not exist."""
    found = []
    for path, name in re.findall(r"`([\w/]+\.(?:py|cc))::([\w.]+)`", text):
        file = ROOT / path
        suite, _, case = name.partition(".")
        pattern = rf"^def {name}\(" if path.endswith(".py") else rf"^TEST(_[FP])?\({suite}, {case}\)"
        if not file.exists() or not re.search(pattern, file.read_text(), re.MULTILINE):
            found.append(f"{path}::{name}")
    return found


def test_the_guide_has_every_key_of_a_description():
    """saccade.json, as models/described reads it, and the defaults of numbers."""
    source = (ROOT / "models" / "described" / "read_description.cc").read_text()
    page = (ROOT / "docs" / "your-own-model.md").read_text()
    keys = set(re.findall(r'\b(?:fields|one)\.(?:Text|Numbers?|Integer|Choice|Flag|Take)\("(\w+)"', source))
    assert len(keys) > 30, keys
    assert not (missing := keys - set(re.findall(r"\w+", " ".join(match.group(2) for match in SPAN.finditer(prose(page))))))
    for key, default in re.findall(r'\.(?:Number|Integer)\("(score_threshold|max_\w+s)", ([\d.]+),', source):
        assert f"`{key}` ({default})" in page, f"{key} is {default} by default"
    assert f"`nms` ({re.search(r'ReadSuppression.fields, ([0-9.]+), head', source)[1]})" in page
    sizes = re.findall(r'"size", {?(\d+)', source)
    cells = {key: re.search(rf"^\| `{key}` \|.*\| (.*) \|$", page, re.MULTILINE)[1] for key in ("size", "max_size")}
    assert set(sizes) == set(re.findall(r"\d+", cells["size"])), "the defaults of size"
    side = int(re.search(r"kMaxInputSide = (\d+);", source)[1])
    assert cells["max_size"] == f"{side} for `shorter`, {2 * side} for `either`"
    classes = re.findall(r'^    {"(\w+)", Normalization::', (ROOT / "models/described/processor_classes.cc").read_text(), re.MULTILINE)
    said = re.search(r"\*\*: the processors (.*?), by `image_processor_type`", " ".join(page.split()))[1]
    assert set(re.split(", | and ", said)) == set(classes)


def names_of_reasons(path):
    """The names that a source gives to the reasons of a metric."""
    return set(re.findall(r'"([a-z_]{4,})"', re.sub(r"#include.*|//.*", "", (ROOT / path).read_text()))) - {"unknown"}


@pytest.mark.parametrize("source, heading", [("server/net/refusal.cc", "## Why was a connection"),
                                             ("server/core/shed_reason.cc", "## How do I watch it?")])
def test_the_page_on_watching_has_every_reason(source, heading):
    section = (ROOT / "docs" / "observability.md").read_text().partition(heading)[2].partition("\n## ")[0]
    names = names_of_reasons(source)
    assert len(names) > 8, names
    assert not (missing := [name for name in names if f"`{name}`" not in section]), f"{source}: {missing}"


def test_the_page_on_the_api_has_every_route_of_v1():
    source = (ROOT / "server" / "security" / "scopes.cc").read_text()
    routes = set(re.findall(r'"(GET|POST)", "(/v1/[^"]+)"', source))
    assert len(routes) > 8, routes
    words = {"model": "MODEL", "sample": "NAME", "number": "NUMBER"}
    page = (ROOT / "docs" / "api.md").read_text()
    shown_there = {(method, path) for methods, path in re.findall(r"^\| ((?:GET|POST)[GETPOS, ]*) `(/v1/[^`]+)`", page, re.MULTILINE)
                   for method in methods.split(", ")}
    assert {(method, re.sub(r"{(\w+)}", lambda found: words[found[1]], path)) for method, path in routes} == shown_there


@pytest.mark.parametrize("name", ["capture.md", "shadow.md"])
def test_the_tolerances_of_tasks_are_those_of_a_replay(name):
    source = (ROOT / "client" / "python" / "saccade" / "replay" / "measures.py").read_text()
    tolerances = ast.literal_eval(re.search(r"^TOLERANCES = ({.*?^})$", source, re.MULTILINE | re.DOTALL)[1])
    names = {"detection": "detections", "stereo": "disparity", "stereo, depth": "disparity", "named tensors": "tensors"}
    rows = re.findall(r"^\| ([a-z, ]+) \| [^|]+ \| (?:up to )?([\d.]+) \|$", (ROOT / "docs" / name).read_text(), re.MULTILINE)
    said = {names.get(task, task): float(tolerance) for task, tolerance in rows}
    # A shadow version's classification agrees by its best class, and its depth as disparities do.
    others = {"classification", "depth"} if name == "shadow.md" else set()
    assert set(said) >= set(tolerances) - {"error"} - others
    assert said.items() <= tolerances.items()


def test_variables_that_pages_name_are_read():
    files = [path for folder in (*FOLDERS, "server") for path in (ROOT / folder).rglob("*") if path.suffix in (".cc", ".h", ".py", ".sh")]
    sources = "\n".join(path.read_text() for path in [*files, ROOT / "dev"] if path != ROOT / "tests" / "docs_test.py")
    known = set(re.findall(r"\bSACCADE_[A-Z_]+\b", sources))
    for page in PAGES:
        assert not (unknown := set(re.findall(r"\bSACCADE_[A-Z_]+\b", page.read_text())) - known), f"{shown(page)}: {unknown}"


def test_the_guide_says_of_which_networks_nothing_is_known():
    source = (ROOT / "tools" / "verify_zoo" / "networks.py").read_text()
    compared = set(re.findall(r'^    "(\w+:\w+)",$', source, re.MULTILINE))
    page = (ROOT / "docs" / "your-own-model.md").read_text()
    assert f"imports {len(compared)} networks" in page
    rows = set(re.findall(r"^\| `(\w+:\w+)` \|", page, re.MULTILINE))
    without = re.search(r"The table has no row of (.*?): nothing is claimed", page)
    assert compared - rows == set(re.findall(r"`(\w+:\w+)`", without[1] if without else ""))


def test_the_guide_names_the_torch_that_programs_are_made_with():
    pinned = re.search(r"^torch==(\d+\.\d+)\.", (ROOT / "tools/setup/requirements/torch.in").read_text(), re.MULTILINE)[1]
    page = " ".join((ROOT / "docs/your-own-model.md").read_text().split())
    assert f"Make them with the daemon's version of torch, {pinned}." in page
    assert set(re.findall(r"once it has something that (\d+\.\d+) does not know", page)) == {pinned}
    package = (ROOT / "client" / "python" / "pyproject.toml").read_text()
    major, minor = pinned.split(".")
    assert re.search(r'^import = \["torch>=[\d.]+,<([\d.]+)"', package, re.MULTILINE)[1] == f"{major}.{int(minor) + 1}"


def test_the_tests_that_hold_security_are_there():
    page = (ROOT / "SECURITY.md").read_text()
    rows = [line for line in page.partition("## What is defended")[2].splitlines() if line.startswith("| ")]
    assert len(rows) > 15 and all("::" in row for row in rows[1:]), "a point without a test"
    assert not (missing := missing_tests(page)), missing


def test_every_row_of_the_threat_model_has_a_test():
    page = (ROOT / "docs" / "threat-model.md").read_text()
    rows = [line for line in page.partition("## What may a stranger")[2].splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| attempt |")]
    assert len(rows) > 25 and all("::" in row for row in rows), "a row without a test"
    assert not (missing := missing_tests(page)), missing


# What a page says that the log has, as in "the log: `model unavailable`" or "a line `call failed` of level error".
LOGGED = re.compile(r"\b[Ll]og(?:'s(?: line)?| of that pod)?(?: says)?:? `([a-z][^`=]*)`|"
                    r"\bline `([a-z][^`=]*)` (?:of the log|of level|later)")


@functools.cache
def literals():
    """The sources of the daemon, with string literals in one piece."""
    files = (path for folder in ("server", "models") for path in (ROOT / folder).rglob("*.cc"))
    return "\n".join(re.sub(r'"\s+"', "", path.read_text()) for path in files if not path.stem.endswith("_test"))


def not_logged(text):
    said = {one or other for one, other in LOGGED.findall(" ".join(text.split()))}
    return said, sorted(message for message in said if f'"{message}' not in literals())


def test_what_pages_say_of_the_log_is_logged():
    found = set()
    for page in PAGES:
        said, missing = not_logged(page.read_text())
        assert not missing, f"{shown(page)}: no line of the log begins with {missing}"
        found |= said
    assert len(found) > 10, found


@pytest.mark.parametrize("text", ["the log: `model is unavailable`", "The line `kores` of the log", "the log says `a pass hangs`"])
def test_a_planted_line_of_the_log_is_missed(text):
    assert len(not_logged(text)[1]) == 1


def test_the_list_of_decisions_is_whole():
    folder = ROOT / "docs" / "decisions"
    pages = {int(page.name[:4]): page.name for page in folder.glob("[0-9]*.md")}
    text = (folder / "README.md").read_text()
    assert {int(number): file for number, file in re.findall(r"^(\d+)\. \[.*\]\((.+)\)$", text, re.MULTILINE)} == pages
    unused = re.search(r"Numbers ([\d, and]+) are not used\.", " ".join(text.split()))[1]
    assert {int(number) for number in re.findall(r"\d+", unused)} == set(range(1, max(pages) + 1)) - set(pages)


def test_the_benchmarks_are_named_where_they_are_listed():
    names = set(re.findall(r"^  (\w+)\) \1 ", (ROOT / "tools" / "bench").read_text(), re.MULTILINE))
    assert "kernels" in names, names
    head = (ROOT / "docs" / "benchmarks" / "README.md").read_text().partition("For example")[0]
    assert set(re.findall(r"\./dev bench (\w+)", head)) == names
    usage = re.search(r"^\./dev bench \[NAME\] +(.+?); all of them", (ROOT / "dev").read_text(), re.MULTILINE)[1]
    assert set(re.findall(r"\w+", usage)) - {"or"} == names


@pytest.mark.parametrize("name", ["tests/docs_test.py::test_nothing", "tests/nowhere_test.py::test_x",
                                  "server/security/tokens_test.cc::TokensTest.Nothing"])
def test_a_planted_test_is_missed(name):
    assert missing_tests(f"held by `{name}`") == [name]


def test_every_page_is_found_from_the_first():
    first, todo = ROOT / "README.md", [ROOT / "README.md"]
    reached = {first}
    while todo:
        page = todo.pop()
        for target in LINK.findall(page.read_text()):
            file = (page.parent / target.partition("#")[0]).resolve()
            if file.suffix == ".md" and file not in reached and file.exists():
                reached.add(file)
                todo.append(file)
    assert not (lost := [shown(page) for page in PAGES if page not in reached]), f"no way leads to {lost}"


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("see [there](nowhere.md)", "nowhere.md: there is no such file"),
        ("see [there](#nowhere)", "has no such heading"),
        ("see [there](docs/api.md#nowhere)", "docs/api.md has no such heading"),
        ("see [out](../../etc/passwd)", "there is no such file"),
    ],
)
def test_a_planted_link_is_found(text, complaint):
    problems = broken_links(ROOT / "README.md", f"# Title\n\n{text}\n")
    assert len(problems) == 1 and complaint in problems[0], problems


def test_links_that_lead_somewhere_pass():
    text = "# A `b`: c, d\n\n[1](#a-b-c-d) [2](docs/api.md#errors) [3](https://example.org/#x) [4](docs)\n"
    text += "\n    [5](nowhere)\n"
    assert broken_links(ROOT / "README.md", text) == []


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("build/release/bin/saccaded --modle-repository models", "saccaded has no --modle-repository"),
        ("$ saccade classify --model m --pfm a.jpg | jq", "saccade classify has no --pfm"),
        ("saccade clasify --model m", "saccade has no command 'clasify'"),
        ("A=b ./dev demmo", "./dev has no command 'demmo'"),
        ("./dev demo --sty", "./dev demo has no --sty"),
        ("--grpc-prot", "--grpc-prot is a flag of neither program"),
        ("cd models && saccaded --hots=::1", "saccaded has no --hots"),
    ],
)
def test_a_planted_name_is_found(line, complaint):
    assert wrong_in(line) == [complaint]


@pytest.mark.parametrize(
    "line",
    ["saccaded --model-repository=models --grpc-port 0", "saccade stereo --pfm left.png right.png", "./dev test",
     "kubectl apply --anything", "--max-message-bytes", "--max-inflight-*", "./dev bench kernels --anything",
     "SACCADE_FAST=1 ./dev test", "./dev", "saccade", "saccaded"],
)
def test_what_exists_passes(line):
    assert wrong_in(line) == []
