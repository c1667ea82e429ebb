"""Projects of one's own in a few files: a guesser whose page is spelt by modules that import each other in some way."""

from dataclasses import dataclass, field
from pathlib import Path

from doubles import write_questions

from sqa.files.store import Store
from sqa.pipeline.config import run_from_mapping
from sqa.pipeline.engine import RunResult, run
from sqa.pipeline.parts import Parts

ROOT = """
{head}
WORD = "root-aa"
def page():
{body}

class Mine:
    def guess(self, texts, n):
        return [[(page(), 1.0)] for _ in texts]
{said}

def build():
    return Mine()
"""
MODULE = """
{head}
WORD = "{word}"
def page():
{body}
"""
CONSTANT = "    def fingerprint(self):\n        return 'always the same'"
SPEC = (
    "import importlib.util as iu; spec = iu.spec_from_file_location('{top}_x', r'{file}'); "
    "{bound} = iu.module_from_spec(spec); spec.loader.exec_module({bound})"
)
STYLES: dict[str, str] = {  # how a module is loaded: {name} dotted, {parent} and {last} of it, {top}, {file}, {folder}
    "as": "import {name} as {bound}",
    "from": "from {name} import page as {bound}_page; import {name} as {bound}",
    "importlib": "import importlib; {bound} = importlib.import_module('{name}')",
    "__import__": "{bound} = __import__('{name}', fromlist=['page'])",
    "spec": SPEC,
    "exec": "import pathlib; m = {{}}; exec(pathlib.Path(r'{file}').read_text(), m); "
    "{bound} = type('M', (), dict(page=staticmethod(m['page'])))",
}


@dataclass
class Project:
    """Files, and the order in which the modules come."""

    folder: Path
    target: str  # of the guesser
    modules: list[Path] = field(default_factory=list)  # the root first
    path: list[str] = field(default_factory=list)  # put into sys.path by the caller

    def run(self, store: Path, parts: Parts | None = None) -> tuple[str, int]:
        """The page that is guessed, and how many blocks of guesses were made for it."""
        result = played(self.folder, store, guesser={"name": self.target}, parts=parts)
        return result.traces[0].guesses[-1][0].page, result.made["guess"]  # type: ignore[index]

    def edit(self, module: int, word: str) -> None:
        """Another word in a module, of the same length."""
        file = self.modules[module]
        text = file.read_text(encoding="utf-8")
        before = text[text.index('WORD = "') :].split('"')[1]
        assert len(before) == len(word)
        file.write_text(text.replace(before, word), encoding="utf-8")


def played(folder: Path, store: Path, parts: Parts | None = None, **keys: object) -> RunResult:
    """A run of two questions, with doubles where nothing else is named."""
    questions = folder / "questions.jsonl"
    if not questions.exists():
        write_questions(questions, 2)
    mapping = {
        "name": "mine",
        "dataset": {"name": str(questions)},
        "translator": "doubles:build_translator",
        "metrics": ["accuracy"],
        **keys,
    }
    return run(run_from_mapping(mapping, folder), Store(store), parts=parts, progress=False)


def loads(style: str, name: str, file: Path, bound: str) -> str:
    """A statement that loads a module."""
    return STYLES[style].format(name=name, top=name.replace(".", "_"), file=file, bound=bound)


def project(
    folder: Path, links: list[tuple[str, str, bool, bool]], constant: bool = False, module: str = ""
) -> Project:
    """A chain of modules; a link is (style, the loaded module's name, late, in a folder put into sys.path).

    `module`: the root is that module instead of a file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = folder / (f"{module.replace('.', '/')}.py" if module else "mine.py")
    made = Project(folder, f"{module}:build" if module else f"{root}:build", [root], [str(folder)] if module else [])
    files = [root, *(_file(folder, name, far, i) for i, (_, name, _, far) in enumerate(links))]
    for i, file in enumerate(files):
        head, body = "", "    return WORD"
        if i < len(links):
            style, name, late, far = links[i]
            statement = loads(style, name, files[i + 1], "nextone")
            if far:
                folder_of_module = files[i + 1].parents[name.count(".")]
                statement = f"import sys; sys.path.insert(0, r'{folder_of_module}'); {statement}"
            head, body = ("", f"    {statement}\n") if late else (statement, "")
            body += "    return WORD + ' ' + nextone.page()"
        file.parent.mkdir(parents=True, exist_ok=True)
        if i == 0:
            text = ROOT.format(head=head, body=body, said=CONSTANT if constant else "")
        else:
            text = MODULE.format(head=head, body=body, word=f"word-{i}a")
        file.write_text(text, encoding="utf-8")
        for package in file.parents:
            if package != folder and package.name in ("pk", "mypk"):
                (package / "__init__.py").touch()
    made.modules = files
    return made


def _file(folder: Path, name: str, far: bool, index: int) -> Path:
    home = folder / f"lib{index}" if far else folder
    return home / f"{name.replace('.', '/')}.py"
