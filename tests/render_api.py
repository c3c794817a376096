"""The reference of `import tacit` in docs/api.md, made from signatures, docstrings and the pages; `make rendered`.

A docstring explains a parameter by its name and a colon, at the beginning of a sentence. An example is the first
statement of the pages that calls the function: the tests run it where it stands.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.conftest import REPOSITORY
from tests.support.pages import PAGES, blocks

import tacit

PAGE = REPOSITORY / "docs" / "api.md"
BEGIN, END = "<!-- from the docstrings, by make rendered -->\n", "<!-- end -->\n"
# What the same parameter means wherever its docstring does not say more.
EVERYWHERE = {
    "progress": "gets each event in this thread; an exception that it raises stops the job.",
    "hardware": "changes the speed, never the result.",
}
LEAD = re.compile(r"(?:(?<=^)|(?<=[.;] ))(\w+(?:, \w+)*): ")
RAISES = re.compile(r"(?<!\w)Raises: ")
SIGNS = re.compile(r"([\\*_<\[\]|])")
A_PAGE = re.compile(r"docs/([\w-]+)\.md")
WIDTH = 92
# Of what needs devices, an engine or minutes.
NOT_RUN = {
    "audit_attack": 'tacit.audit_attack("caches/mine", public="caches/public")',
    "audit_run": 'tacit.audit_run("own.toml", settings=CanarySettings(canaries=500))',
    "demo": 'tacit.demo("runs/demo", quick=True, progress=print)',
    "plan_production": 'tacit.plan_production(scenario, goal, "planned", settings)',
    "publish": 'tacit.publish("web/dist", "served/operator.key")',
    "type_engine": 'tacit.type_engine("runs/demo", "./engine", "demo.dict", "caches/mine")',
    "verify_log": 'tacit.verify_log("served/runs/mine", "log.jsonl")',
}


class Explained(NamedTuple):
    """What a docstring says: of the whole, of each parameter, and of what is raised."""

    whole: list[str]
    parameters: dict[str, str]
    raises: str


def explained(doc: str, names: list[str]) -> Explained:
    """A docstring taken apart. names: of the parameters."""
    whole: list[str] = []
    parameters: dict[str, str] = {}
    raises: list[str] = []
    for paragraph in doc.split("\n\n"):
        text, *raised = RAISES.split(" ".join(paragraph.split()), maxsplit=1)
        found = [each for each in LEAD.finditer(text) if set(each[1].split(", ")) <= set(names)]
        starts = [each.start() for each in found]
        whole += [before] if (before := text[: starts[0] if starts else None].strip()) else []
        for each, end in zip(found, [*starts[1:], len(text)], strict=False):
            parameters |= dict.fromkeys(each[1].split(", "), text[each.end() : end].strip())
        raises += raised
    return Explained(whole, parameters, " ".join(raises))


class Parameter(NamedTuple):
    """One of a function, or a field of a value."""

    name: str
    typed: str
    default: str | None
    meaning: str


def reference() -> str:
    """What stands between the marks: a section for each name of the package."""
    calls = dict(reversed(sorted(examples(), key=lambda found: found[1].order)))
    return "\n".join(section(name, calls.get(name)) for name in tacit.__all__)


def section(name: str, example: "Example | None") -> str:
    """What a name is, what it takes, what it raises, and how it is used."""
    said = explained(inspect.getdoc(getattr(tacit, name)) or "", [each.name for each in parameters(name)])
    parts = [f"### `tacit.{name}`", *map(prose, said.whole), f"```text\n{call(name)}\n```"]
    if rows := [
        f"| {code(each.name)} | {code(each.typed)} | {code(each.default)} | {prose(each.meaning)} |"
        for each in parameters(name)
    ]:
        parts.append("\n".join(["| parameter | type | default | meaning |", "|---|---|---|---|", *rows]))
    if said.raises:
        parts.append(f"Raises: {prose(said.raises)}")
    if example is not None:
        parts.append(f"For example, as {example.said}:\n\n```py\n{example.text}\n```")
    return "\n\n".join(parts) + "\n"


def code(text: str | None) -> str:
    """Source in a cell of a table; nothing for none."""
    return "" if text is None else "`" + text.replace("|", "\\|") + "`"


def call(name: str) -> str:
    """The signature, without types."""
    value = getattr(tacit, name)
    listed, keyword_only = [], False
    for each in inspect.signature(value).parameters.values():
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            listed += [] if any(one.startswith("*") for one in listed) else ["*"]
        default = next(one.default for one in parameters(name) if one.name == each.name)
        listed.append(f"{stars}{each.name}" + ("" if default is None else f"={default}"))
    result = definition(value)
    gives = f" -> {plain(result.returns)}" if isinstance(result, ast.FunctionDef) else ""
    return textwrap.fill(
        f"tacit.{name}({', '.join(listed)}){gives}", WIDTH, subsequent_indent=" " * 4, break_long_words=False
    )


def parameters(name: str) -> list[Parameter]:
    """Those of a function in their order, or the fields of a value."""
    value = getattr(tacit, name)
    names = list(inspect.signature(value).parameters)
    said = explained(inspect.getdoc(value) or "", names).parameters
    types, defaults, remarks = written(value)
    return [
        Parameter(
            each, types[each], defaults.get(each), said.get(each) or remarks.get(each) or EVERYWHERE.get(each, "")
        )
        for each in names
    ]


def written(value: Any) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """By parameter: its type and its default as the source has them, and the remark behind a field."""
    node = definition(value)
    lines = inspect.getsource(value).splitlines()
    given = inspect.signature(value).parameters
    if isinstance(node, ast.ClassDef):
        fields = {each.target.id: each for each in node.body if isinstance(each, ast.AnnAssign)}
        return (
            {name: plain(each.annotation) for name, each in fields.items()},
            {name: simple(given[name].default, ast.unparse(each.value)) for name, each in fields.items() if each.value},
            {name: lines[each.end_lineno - 1].partition("  # ")[2] for name, each in fields.items()},
        )
    taken = node.args
    every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, *filter(None, (taken.vararg, taken.kwarg))]
    positional = [*taken.posonlyargs, *taken.args]
    pairs = [
        *zip(reversed(positional), reversed(taken.defaults), strict=False),
        *zip(taken.kwonlyargs, taken.kw_defaults, strict=True),
    ]
    defaults = {
        each.arg: simple(given[each.arg].default, ast.unparse(default))
        for each, default in pairs
        if default is not None
    }
    return {each.arg: plain(each.annotation) for each in every}, defaults, {}


def definition(value: Any) -> Any:
    """The statement of the source that makes it."""
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def simple(default: Any, source: str) -> str:
    """A default by its value, where that is short and plain; or as the source calls it."""
    return repr(default) if isinstance(default, str | int | float | bool | None) else source


def plain(node: Any) -> str:
    """A type without the quotes around what only type checkers know."""
    return ast.unparse(node).replace("'", "") if not isinstance(node, ast.Constant) else str(node.value)


def prose(text: str) -> str:
    """A docstring's words as Markdown: what stands between backticks stays, a page is a link."""
    pieces = text.split("`")
    pieces[::2] = [A_PAGE.sub(r"[\1](\1.md)", SIGNS.sub(r"\\\1", piece)) for piece in pieces[::2]]
    pieces[1::2] = [piece.replace("|", "\\|") for piece in pieces[1::2]]
    return "`".join(pieces)


class Example(NamedTuple):
    """A statement that calls a function, and where it stands."""

    text: str
    said: str
    order: tuple[bool, int]


def examples() -> Iterator[tuple[str, Example]]:
    """Every statement of the pages that calls a function of the package; the shortest that is no assertion is best."""
    for page in PAGES:
        if page != PAGE:
            for block in blocks(page, "python"):
                yield from examples_in(
                    block.text, f"[{page.stem}]({page.name}) has it" if page.parent == PAGE.parent else ""
                )
    for block in blocks(PAGE, "python"):
        yield from examples_in(block.text, "in [these examples](#examples)")
    for name, text in NOT_RUN.items():
        yield name, Example(text, "one would type it; no test runs this line", (True, 10**6))


def examples_in(text: str, said: str) -> Iterator[tuple[str, Example]]:
    """Those of one block."""
    for statement in ast.parse(text).body if said else []:
        source = ast.get_source_segment(text, statement) or ""
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tacit":
                yield node.attr, Example(source, said, (isinstance(statement, ast.Assert), len(source)))


def render_api() -> str:
    """The page with what is made in its place."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{reference()}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Write docs/api.md."""
    PAGE.write_text(render_api(), encoding="utf-8")


if __name__ == "__main__":
    main()
