"""README.md and docs/: links resolve, commands exist, and the example's output equals the README."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from documented.pages import PAGES, blocks, commands, complaint

from sqa import __version__
from sqa.core import ROOT

README = PAGES[0].read_text(encoding="utf-8")
LONGEST = 1_201  # a page of docs must have fewer words, including code and tables
README_WORDS = 900
PICTURE = 200_000  # maximum size of a picture in bytes
SCREEN = 25  # lines of the README on the first screen
MADE = ("runs", "models", "yours", "figureN", "sqa/bundled")  # created by users or by the installation

every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


# ---------------------------------------------------------------------------------------------------- reading pages


def anchors(text: str) -> set[str]:
    """Return the anchor of each heading: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def of_sqa(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words after `sqa` of every command of a page, and whether the command is complete."""
    yield from ((words[1:], complete) for words, complete in commands(text) if words[0] == "sqa")


@every_page
def test_every_command_exists_with_its_options(path: Path) -> None:
    results = [(" ".join(words), complaint(words, complete)) for words, complete in of_sqa(path.read_text("utf-8"))]
    assert not [pair for pair in results if pair[1]]


def test_commands_are_found_and_checked() -> None:
    typed = "    $ sqa run|sweep a.yaml | cut -f 1   what for\n    sqa client iwslt, sqa scorer bleu\n"
    text = f"Say `sqa view RUN --output p.html`.\n\n{typed}"
    results = [" ".join(words) for words, _ in of_sqa(text)]
    assert results == ["run a.yaml", "sweep a.yaml", "client iwslt", "scorer bleu", "view RUN --output p.html"]
    assert sum(len(list(of_sqa(path.read_text("utf-8")))) for path in PAGES) > 100
    for words, wrong in {
        "walk": "sqa has no command walk",
        "view RUN --colour": "view: No such option: --colour",
        "train buzzer A B": "buzzer takes no B",
        "train curve human-buzzes": "curve needs output",
        "board --board x serve": "",
    }.items():
        assert complaint(words.split(), complete=True) == wrong


# --------------------------------------------------------------------------------------------------------- the pages


@every_page
def test_links_resolve(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", blocks(path.read_text("utf-8"))[0]):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(linked.read_text("utf-8")), f"{path.name}: {target}"


@every_page
def test_named_files_exist(path: Path) -> None:
    prose, _ = blocks(path.read_text("utf-8"))
    rooms = "sqa|smt|guessers|buzzers|experiments|services|configs|data|tests|docs|notebooks"
    named = re.findall(rf"`((?:{rooms})/[\w/.-]+)`", prose)
    missing = [name for name in named if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()]
    assert [name for name in missing if not any(made in name for made in MADE)] == []


def test_every_docs_page_is_in_the_index_and_on_the_site() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    site = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert {name for name in pages - {"README.md"} if f"]({name})" in index} == pages - {"README.md"}
    assert set(re.findall(r": (\S+\.md)$", site, re.MULTILINE)) == pages


def test_no_page_of_docs_is_long() -> None:
    long = {path.name: len(path.read_text("utf-8").split()) for path in (ROOT / "docs").glob("*.md")}
    assert {name: words for name, words in long.items() if words >= LONGEST} == {}


def test_readme_is_short_and_begins_with_a_picture() -> None:
    assert len(README.split()) <= README_WORDS
    assert "](docs/view.png)" in "\n".join(README.splitlines()[:SCREEN])
    assert "make reproduce" in README and "make test" in README
    for name in ("figure3.png", "view.png"):
        picture = (ROOT / "docs" / name).read_bytes()
        width, height = struct.unpack(">II", picture[16:24])
        assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) < PICTURE and width >= 1200 and height >= 800


def test_example_prints_the_output_in_the_readme(tmp_path, monkeypatch, command):
    [config] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert config == (ROOT / "docs/example/mine.yaml").read_text("utf-8") and len(config.splitlines()) == 4
    [shown] = re.findall(r"^\$ sqa run docs/example/mine.yaml \| cut -f 1-4\n((?:.*\t.*\n)+)", README, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    outcome = command("run", "docs/example/mine.yaml", "--runs", str(tmp_path))
    printed = [line.split("\t")[:4] for line in outcome.out.splitlines()]
    assert printed == [line.split("\t") for line in shown.splitlines()]


def test_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__ and citation["authors"] == [{"name": "SQA maintainers"}]
    assert citation["preferred-citation"]["url"] in README
