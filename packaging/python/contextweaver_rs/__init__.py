"""contextweaver for Python: which tools an agent is offered, and what of a conversation goes into its prompt.

    import contextweaver_rs as cw

    router = cw.Router([{"name": "get_oncall", "description": "Who is on call."}])
    tools = router.route("who is on call tonight").as_tools("openai")

The same engines as the command `contextweaver`, which comes with this module; `python -m contextweaver_rs` runs it.
Objects are immutable or do their own locking, so threads may share them, and the interpreter lock is released while they
work.
"""

try:
    from ._native import (
        Artifact,
        Catalog,
        CatalogError,
        Choice,
        ConfigError,
        ContextError,
        ContextManager,
        ContextweaverError,
        Envelope,
        Evaluation,
        EvaluationError,
        Firewall,
        Handoff,
        InputError,
        Memory,
        Pack,
        Route,
        RouteError,
        Router,
        Session,
        SessionError,
        Tool,
        View,
        ViewError,
        __version__,
        compact,
        consolidate,
        count_tokens,
        evaluate,
    )
except ModuleNotFoundError as _missing:
    # A static binary has no module beside it; the command works all the same.
    if _missing.name != "contextweaver_rs._native":
        raise

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(
            f"contextweaver_rs has no {name}: this wheel holds the command alone; install the wheel for glibc or macOS"
        )


__all__ = [
    "Artifact",
    "Catalog",
    "CatalogError",
    "Choice",
    "ConfigError",
    "ContextError",
    "ContextManager",
    "ContextweaverError",
    "Envelope",
    "Evaluation",
    "EvaluationError",
    "Firewall",
    "Handoff",
    "InputError",
    "Memory",
    "Pack",
    "Route",
    "RouteError",
    "Router",
    "Session",
    "SessionError",
    "Tool",
    "View",
    "ViewError",
    "__version__",
    "compact",
    "consolidate",
    "count_tokens",
    "evaluate",
]
