"""The reference of docs/python.md: the signatures of the stubs, with what the module says about each.

    python reference.py --write
"""

import ast
import inspect
import pathlib
import re
import sys

import contextweaver_rs as cw

ROOT = pathlib.Path(__file__).resolve().parents[3]
STUB = ROOT / "packaging/python/contextweaver_rs/_native.pyi"
PAGE = ROOT / "docs/python.md"
BEGIN, END = "<!-- reference:begin -->", "<!-- reference:end -->"


def prose(text):
    """Paragraphs as lines of a page; single line breaks are white space."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n")]
    return "\n\n".join(paragraphs)


def signature(function, name, bound):
    """What a caller writes, with the types of what it takes and gives."""
    arguments = ast.unparse(function.args)
    if bound:
        arguments = re.sub(r"^(self|cls)(, /)?(, )?", "", arguments)
        arguments = re.sub(r"^/(, )?", "", arguments)
    returns = "" if name == "__new__" else f" -> {ast.unparse(function.returns)}"
    # Names that are only shorthands of the stubs.
    return re.sub(r"\b_(Path|Config|Tools|Day|Form|Estimator|Phase|Kind|Audience|Sensitivity)\b", r"\1", f"({arguments}){returns}")


def entry(title, what):
    return f"- `{title}`: {' '.join(prose(what).split())}"


def of_class(node):
    kind = getattr(cw, node.name)
    parts = [f"### {node.name}", prose(kind.__doc__)]
    new = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__new__"]
    if new:
        parts.append(f"```text\n{node.name}{signature(new[0], '__new__', True)}\n```")
    rows = []
    for one in node.body:
        if not isinstance(one, ast.FunctionDef) or one.name.startswith("_"):
            continue
        decorators = [ast.unparse(decorator) for decorator in one.decorator_list]
        said = getattr(kind, one.name).__doc__
        if "property" in decorators:
            rows.append(entry(f"{one.name}: {signature(one, one.name, True).removeprefix('() -> ')}", said))
        else:
            owner = f"{node.name}." if "staticmethod" in decorators else ""
            rows.append(entry(f"{owner}{one.name}{signature(one, one.name, not owner)}", said))
    return "\n\n".join([*parts, "\n".join(rows)] if rows else parts)


def alternatives(node):
    """What a shorthand stands for, as words: a bar would end the cell of a table."""
    if isinstance(node, ast.BinOp):
        return f"{alternatives(node.left)} or {alternatives(node.right)}"
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
        return ", ".join(f"`{ast.unparse(one)}`" for one in node.slice.elts)
    return f"`{ast.unparse(node).removeprefix('_')}`"


def reference():
    """The whole reference, as it stands between the markers of the page."""
    tree = ast.parse(STUB.read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    aliases = [node for node in tree.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"]
    errors = [node for node in classes if node.name.endswith("Error")]
    parts = ["### Functions"]
    parts.append("\n".join(entry(f"{one.name}{signature(one, one.name, False)}", getattr(cw, one.name).__doc__) for one in functions))
    parts += [of_class(node) for node in classes if node not in errors]
    rows = [f"| `{one.name}` | {prose(getattr(cw, one.name).__doc__)} |" for one in errors]
    parts += ["### Exceptions", "\n".join(["| exception | when |", "|---|---|", *rows])]
    values = [f"| `{one.target.id.removeprefix('_')}` | {alternatives(one.value)} |" for one in aliases]
    parts += ["### Types", "\n".join(["| in signatures | is |", "|---|---|", *values])]
    return "\n\n".join(parts)


def written(page):
    """The page with the reference in it."""
    begin, end = page.index(BEGIN), page.index(END)
    return f"{page[:begin]}{BEGIN}\n\n{reference()}\n\n{page[end:]}"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(written(PAGE.read_text()))
