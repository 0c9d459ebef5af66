"""A page as one file: data, style and scripts, with nothing to load from elsewhere."""

import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

STYLE = "page.css"
# In this order: later scripts use earlier ones.
SCRIPTS = ("state.js", "graph.js", "chart.js", "details.js", "tables.js", "page.js")


def as_html(targets: Sequence[dict[str, Any]], title: str, step: int = 0) -> str:
    """The page for the data of one or more functions. ``step`` is the step at which it opens."""
    data = json.dumps({"title": title, "step": step, "targets": list(targets)}, ensure_ascii=False, allow_nan=False,
                      separators=(",", ":"))  # fmt: skip
    scripts = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "TITLE": escape(title),
        "STYLE": _asset(STYLE),
        # Nothing inside the data may end the element that contains it.
        "DATA": data.replace("<", "\\u003c"),
        "SCRIPT": f'"use strict";\n(() => {{\n{scripts}\n}})();',
    }
    before, *rest = _asset("page.html").split("{{")
    return before + "".join(parts[name] + text for name, text in (part.split("}}", 1) for part in rest))


def _asset(name: str) -> str:
    return (resources.files("alphagrad.page") / "assets" / name).read_text(encoding="utf-8")
