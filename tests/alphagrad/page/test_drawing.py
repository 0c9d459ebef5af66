import re
from xml.etree import ElementTree

import pytest

from alphagrad.page.drawing import NEW, as_dot, as_svg

from .views import view_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["five", "MLP", "RoeFlux_1d"])
@pytest.mark.parametrize("part", [0.0, 0.5, 1.0])
def test_drawings_show_what_is_left(name, part):
    replay = view_of(name, orders=("rev",)).replays[0]
    step = round(part * len(replay.moves))
    edges = replay.edges_after(step)
    fill = edges.keys() - replay.graph.edges.keys()
    left = len(replay.graph.vertices) - step

    drawing = ElementTree.fromstring(as_svg(replay, step))
    paths = [path for path in drawing.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(paths) == len(edges)
    assert sum(path.get("stroke") == NEW for path in paths) == len(fill)
    assert len([group for group in drawing.iter(f"{SVG}g") if group.find(f"{SVG}circle") is not None]) == left
    titles = {path.find(f"{SVG}title").text for path in paths}
    assert titles == {f"{source} → {target}: {structure}" for (target, source), structure in edges.items()}

    text = as_dot(replay, step)
    assert len(re.findall(r'^  "-?\d+" -> "-?\d+" \[label="[^"]*", ', text, re.MULTILINE)) == len(edges)
    assert len(re.findall(r'^  "-?\d+" \[label=', text, re.MULTILINE)) == left
    assert text.count(NEW) == len(fill)
