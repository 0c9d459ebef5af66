"""Hooks of mkdocs: build the site from the repository's own Markdown, with the README, notebooks and examples."""

import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
# Pages of the site that have another path in the repository.
RENAMED = {"index.md": "README.md", "documentation.md": "docs/README.md"}
LINK = re.compile(r"\]\(([^)\s#]*)(#[^)\s]*)?\)")
NOTEBOOKS, EXAMPLES = "notebooks", "examples"


def on_files(files: Any, config: Any) -> Any:
    """Add the README, the notebooks and the examples."""
    for name, path in RENAMED.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text(encoding="utf-8")))
    for path in (ROOT / "docs" / NOTEBOOKS).glob("*.ipynb"):
        files.append(File.generated(config, f"{NOTEBOOKS}/{path.stem}.md", content=_notebook(path)))
    for path in (ROOT / EXAMPLES).glob("*.py"):
        page = f"# {EXAMPLES}/{path.name}\n\n```python\n{path.read_text(encoding='utf-8')}```\n"
        files.append(File.generated(config, f"{EXAMPLES}/{path.stem}.md", content=page))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite links to pages of the site, and drop words after fences that only the tests read."""
    if page.file.src_uri.startswith(f"{EXAMPLES}/"):
        return markdown
    source = RENAMED.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    folder = (ROOT / source).parent
    markdown = markdown.replace("```sh long\n", "```sh\n")
    return LINK.sub(lambda match: f"]({_target(match[1], folder)}{match[2] or ''})", markdown)


def _target(link: str, folder: Path) -> str:
    """The target on the site of a link in a file of ``folder``, relative to the top of the site."""
    if not link or "://" in link:
        return link
    path = (folder / link).resolve().relative_to(ROOT).as_posix()
    for name, original in RENAMED.items():
        if path == original:
            return name
    if path == "results":
        return "reproducing.md"
    path = path.removeprefix("docs/")
    if path.startswith((f"{NOTEBOOKS}/", f"{EXAMPLES}/")):
        path = str(Path(path).with_suffix(".md"))
    return f"../{path}" if folder.name == NOTEBOOKS else path


def _notebook(path: Path) -> str:
    """A notebook as a page: text, fenced code, and what it prints."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            printed = "".join("".join(output.get("text", ())) for output in cell["outputs"])
            parts += [f"```text\n{printed}```"] if printed else []
    return "\n\n".join(parts) + "\n"
