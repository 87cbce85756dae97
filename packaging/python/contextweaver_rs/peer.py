"""For users of the Python package `contextweaver`: reads its files, and says what is different here.

    from contextweaver_rs import Router, peer

    catalog = peer.load_catalog("catalog.json")
    router = Router(catalog.value)
    print(catalog.notes)

Each function gives a `Loaded`: what was made of the file, the keys of the file that have no meaning here, and what differs.
Nothing of that package is imported. docs/from-contextweaver-py.md has the rest.
"""

import ipaddress
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Generic, TypeVar

from . import Catalog, InputError, Session

__all__ = ["Loaded", "load_catalog", "load_config", "load_session"]

_Path = str | PathLike[str]
T = TypeVar("T")


@dataclass(frozen=True)
class Loaded(Generic[T]):
    """What was made of a file of that package."""

    value: T
    """What is used here."""
    ignored: list[str] = field(default_factory=list)
    """The keys of the file that have no meaning here, as paths: `policy.extra`."""
    differs: list[str] = field(default_factory=list)
    """What works differently here, one sentence each."""
    ids: dict[str, str] = field(default_factory=dict)
    """Of a catalog: the id here of each id there."""

    @property
    def notes(self) -> str:
        """Both lists as text, a line each; empty where there is nothing to say."""
        return "\n".join([*(f"ignored: {key}" for key in self.ignored), *self.differs])


def load_catalog(path: _Path) -> Loaded[Catalog]:
    """Reads a catalog: a list of items, as JSON or YAML.

    Raises CatalogError where an item cannot be read.
    """
    catalog = Catalog.from_path(path)
    items = json.loads(catalog.to_json())["items"]
    ids = {item["metadata"]["id"]: item["id"] for item in items if "id" in item.get("metadata", {})}
    differs = []
    if any(old != new for old, new in ids.items()):
        differs.append("ids are made of namespace, name and arguments; `ids` maps the old ones to the new")
    if count := sum("depends_on" in item["metadata"] for item in items if "metadata" in item):
        differs.append(f"items whose `depends_on` names old ids: {count}; it is kept in the metadata and not used")
    if count := sum(item.get("metadata", {}).get("kind") == "flow" for item in items):
        differs.append(f"flows that became tools here: {count}")
    return Loaded(catalog, differs=differs, ids=ids)


def load_session(path: _Path) -> Loaded[Session]:
    """Reads a session: the JSON that `contextweaver ingest` writes, or its lines.

    Raises SessionError where an event cannot be read: an unknown type is an error here, not a user's turn.
    """
    text = Path(path).read_text(encoding="utf-8")
    session = Session.ingest(text, name=Path(path).stem, source=fspath(path))
    differs = ["prompts are in time order, and headings count towards the budget"]
    try:
        document = json.loads(text)
    except ValueError:
        document = {}
    if isinstance(document, dict) and document.get("artifacts"):
        count = len(document["artifacts"])
        differs.append(f"artifacts whose content is not in the file: {count}; they cannot be viewed until the events are ingested again")
    return Loaded(session, differs=differs)


def load_config(source: _Path | Mapping[str, Any]) -> Loaded[dict[str, Any]]:
    """Reads a configuration: that of a gateway (JSON or YAML), or a profile (`ProfileConfig.to_dict`).

    A gateway's gives `{"gateway": …}`, the content of a file for `contextweaver mcp serve --config`. A profile gives
    `{"routing": …, "context": …}`, the `config` of Router and of ContextManager.

    Raises InputError for what is neither.
    """
    document = _document(source)
    if "upstreams" in document or "catalog" in document:
        return _gateway(document)
    if document.keys() & {"budget", "policy", "scoring", "routing", "mode"}:
        return _profile(document)
    raise InputError("it has neither `upstreams` or `catalog` (a gateway) nor `budget`, `policy`, `scoring` or `routing` (a profile)")


def _document(source: _Path | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return dict(source)
    text = Path(source).read_text(encoding="utf-8")
    if Path(source).suffix in (".yaml", ".yml"):
        try:
            import yaml  # type: ignore[import-untyped, unused-ignore]
        except ModuleNotFoundError:
            raise InputError(f"{fspath(source)}: YAML needs PyYAML here; install it, or pass the loaded mapping") from None
        document = yaml.safe_load(text)
    else:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InputError(f"{fspath(source)}: not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f"{fspath(source)}: expected an object, not {type(document).__name__}")
    return document


# Keys of a gateway's file that another key replaces here, or that are flags.
_REPLACED = {
    "beam_width": "every tool is scored, so there is no beam; `routing.navigation` turns one on",
    "pin": "`pins` holds the definitions of servers against what was accepted, tool by tool; see `contextweaver mcp pins`",
    "live_refresh": "tools that a server adds or changes are picked up at once; there is no setting",
    "state_dir": "`state` and `artifacts.path` say what is kept and where",
    "redact": "`artifacts.redact_secrets` and `firewall.secrets` mask what is stored and shown",
    "quiet": "standard error has only warnings, unless RUST_LOG asks for more",
    "version": "the gateway gives its own version",
    "transport": "`mcp serve --transport http` serves HTTP; the default is standard streams",
    "host": "`http.listen` holds address and port",
    "port": "`http.listen` holds address and port",
}


def _gateway(document: dict[str, Any]) -> Loaded[dict[str, Any]]:
    replaced = {key for key in document if key in _REPLACED}
    differs = [f"`{key}`: {_REPLACED[key]}" for key in sorted(replaced)]
    schema = _schema("gateway")
    ignored: list[str] = []
    kept = _pruned({key: value for key, value in document.items() if key not in replaced}, schema, schema, "", ignored)
    # Without one of its conditions, a rule would fit other calls than it did.
    if guards := [key for key in ignored if key.startswith(("policy.", "visibility_profiles."))]:
        raise InputError(f"{', '.join(guards)}: not known here, and leaving it out would allow other calls; write it as docs/gateway.md does")
    if "host" in document or "port" in document:
        kept["http"] = {"listen": _listen(document.get("host"), document.get("port"))}
    return Loaded({"gateway": kept}, ignored=ignored, differs=differs)


def _listen(host: Any, port: Any) -> str:
    """The address to listen on, with the defaults of that package for what is None."""
    host = "127.0.0.1" if host is None or host == "localhost" else str(host)
    try:
        bare = host.strip("[]")
        is_six = ipaddress.ip_address(bare).version == 6
    except ValueError:
        raise InputError(f"`host`: `{host}` is not an address; the gateway listens on an IP address, such as 127.0.0.1") from None
    return f"{f'[{bare}]' if is_six else bare}:{8080 if port is None else port}"


def _object(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A member that is an object, or is not there."""
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"`{key}`: expected an object, not {type(value).__name__}")
    return dict(value)


def _profile(document: dict[str, Any]) -> Loaded[dict[str, Any]]:
    ignored = [key for key in document if key not in {"budget", "policy", "scoring", "routing", "mode", "seed"}]
    differs = ["tokens are counted exactly (`estimator`), where that package estimates them unless told otherwise"]
    if document.get("mode", "strict") != "strict":
        differs.append("`mode`: everything is deterministic here; there is no seed")
    context: dict[str, Any] = {}
    if budget := _object(document, "budget"):
        context["budgets"] = budget
    policy = _object(document, "policy")
    kept: dict[str, Any] = {key: policy.pop(key) for key in ("sensitivity_floor", "sensitivity_action") if key in policy}
    if limits := policy.pop("max_items_per_kind", None):
        kept["max_items_per_kind"] = max(limits.values()) if isinstance(limits, dict) else limits
        if isinstance(limits, dict) and len(set(limits.values())) > 1:
            differs.append("`policy.max_items_per_kind` is one number for all kinds here; the largest was taken")
    if kept:
        context["policy"] = kept
    ignored += [f"policy.{key}" for key, value in policy.items() if value not in (None, [], {}, False, "drop")]
    scoring = _object(document, "scoring")
    if "dedup_threshold" in scoring:
        context["dedup"] = {"threshold": scoring.pop("dedup_threshold")}
    ignored += [f"scoring.{key}" for key in scoring]
    if scoring:
        differs.append("`scoring`: what matters for a prompt is weighted differently; docs/formats.md has the fields")
    routing: dict[str, Any] = {}
    theirs = _object(document, "routing")
    if "top_k" in theirs:
        routing["top_k"] = theirs.pop("top_k")
    if "max_children" in theirs:
        routing["tree"] = {"max_children": theirs.pop("max_children")}
    if theirs.keys() & {"beam_width", "max_depth"}:
        differs.append("`routing.beam_width` and `routing.max_depth`: every tool is scored; `navigation` turns a beam on")
    if "confidence_gap" in theirs:
        differs.append("`routing.confidence_gap` is a share of the best score here, not a difference; the default was kept")
    ignored += [f"routing.{key}" for key in theirs]
    return Loaded({"routing": routing, "context": context}, ignored=sorted(ignored), differs=differs)


def _schema(kind: str) -> dict[str, Any]:
    from .__main__ import binary

    printed = subprocess.run([str(binary()), "schema", kind], capture_output=True, check=True).stdout
    schema: dict[str, Any] = json.loads(printed)
    return schema


def _takes_null(schema: Any, root: dict[str, Any]) -> bool:
    """Whether null is a value of its own there, such as no limit."""
    while isinstance(schema, dict) and "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type", [])
    forms = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    return "null" in ([kinds] if isinstance(kinds, str) else kinds) or any(_takes_null(form, root) for form in forms)


def _pruned(value: Any, schema: Any, root: dict[str, Any], place: str, ignored: list[str]) -> Any:
    """What of a value the schema knows; the places of the rest go to `ignored`. That package writes null for what is not said."""
    if not isinstance(schema, dict):
        return value
    while isinstance(schema, dict) and "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if isinstance(value, list):
        items = schema.get("items")
        return [_pruned(one, items, root, f"{place}[{number}]", ignored) for number, one in enumerate(value)]
    if not isinstance(value, dict):
        return value
    forms = [schema, *schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]
    known: dict[str, Any] = {}
    others: Any = None
    for form in forms:
        while isinstance(form, dict) and "$ref" in form:
            form = root["$defs"][form["$ref"].rsplit("/", 1)[1]]
        known |= form.get("properties", {})
        others = form.get("additionalProperties", others)
    kept = {}
    for key, member in value.items():
        if member is None and not _takes_null(known.get(key, others), root):
            continue
        here = f"{place}.{key}" if place else key
        if key in known or isinstance(others, dict):
            kept[key] = _pruned(member, known.get(key, others), root, here, ignored)
        else:
            ignored.append(here)
    return kept
