"""Outlines of areas from a GeoJSON or TopoJSON file, for maps.

GeoJSON is RFC 7946; TopoJSON, where neighbours share their border lines, is the specification of
M. Bostock, version 1. Only polygons are used.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bayes_sdc.arguments import PathLike, checked
from bayes_sdc.errors import InputError
from bayes_sdc.io.text import read_bytes, unpack
from bayes_sdc.results import Fact, Result

SCREEN = 10_000  # projected coordinates up to here are pixels, where y grows downwards
EXAMPLES = 3

Ring = np.ndarray  # (point, 2) of x and y
Polygon = list[Ring]  # the outer ring, then its holes


@dataclass(frozen=True, eq=False)
class Shapes(Result):
    """Outlines of the areas of a table; made by `read_shapes`.

    Parameters
    ----------
    outlines : dict of list
        By code, the polygons of the area: outer ring anticlockwise and holes clockwise, in the
        units of the file, y upwards.
    missing : tuple of str
        Codes of the table that have no outline.
    geographic : bool
        Whether the units are degrees of longitude and latitude.
    """

    outlines: dict[str, list[Polygon]] = field(repr=False)
    missing: tuple[str, ...]
    geographic: bool

    def _title(self) -> str:
        return "Outlines of areas"

    def _facts(self) -> list[Fact]:
        units = "degrees of longitude and latitude" if self.geographic else "projected"
        return [
            ("areas", f"{len(self.outlines):,}", "with an outline"),
            ("missing", f"{len(self.missing):,}", ", ".join(self.missing[:EXAMPLES])),
            ("units", units, "of the outlines"),
        ]


@checked
def read_shapes(path: PathLike, *, key: str, codes: Iterable[str]) -> Shapes:
    """Read the outlines of the areas of a table.

    Parameters
    ----------
    path : path
        GeoJSON or TopoJSON, also gzipped. Coordinates outside +-180 and +-90 are taken as
        projected; those up to 10,000 as pixels of a screen, where y grows downwards.
    key : str
        Property of the features that holds the code; ``id`` also finds the member ``id``.
    codes : iterable of str
        Codes of the table, which are compared as text.

    Returns
    -------
    Shapes
        The outlines of the codes that are in the file.

    Raises
    ------
    InputError
        If the file is neither, no feature has the property, a polygon is damaged, or fewer than
        half of the codes match.

    See Also
    --------
    bayes_sdc.plot_map

    Examples
    --------
    >>> import json, tempfile
    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    >>> feature = {"type": "Feature", "properties": {"code": "01"}, "geometry": square}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "areas.json")
    ...     _ = path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    ...     read_shapes(path, key="code", codes=["01", "02"])
    Shapes(missing=('02',), geographic=True)
    """
    wanted = sorted(set(codes))
    path = Path(path)
    content = _load(path)
    layers = _layers(path, content)
    named = [(layer, _codes(layer, key)) for layer in layers]
    if not any(code is not None for _, found in named for code in found):
        seen = sorted({name for layer in layers for one in layer for name in _properties(one)})
        raise InputError(
            f"{path}: no feature has a property {key!r}; they have {', '.join(seen) or 'none'}"
        )
    # a TopoJSON file may hold states beside counties, so take the layer that matches best
    layer, found = max(named, key=lambda one: len(set(wanted) & set(one[1])))
    matched = set(wanted) & set(found)
    if 2 * len(matched) < len(wanted):
        theirs = [code for code in found if code is not None]
        raise InputError(
            f"{path}: {len(matched)} of the table's {len(wanted)} codes match the property {key!r} "
            f"(there {_some(theirs)}; in the table {_some(wanted)}). Remedy: name another "
            "property, or write the codes alike, because they are compared as text"
        )
    arcs = _arcs(path, content)
    outlines: dict[str, list[Polygon]] = {}
    for place, (one, code) in enumerate(zip(layer, found, strict=True), start=1):
        if code in matched:
            try:
                polygons = list(_polygons(one.get("geometry", one), arcs))
            except (
                AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError,
                ValueError,
            ) as error:  # fmt: skip
                raise InputError(
                    f"{path}: feature {place}, {key} {code!r}: its polygon is damaged ({error})"
                ) from error
            if polygons:
                outlines.setdefault(str(code), []).extend(polygons)
    if not outlines:
        raise InputError(
            f"{path}: the features of the table's codes have no area: they are points, lines or "
            "empty; give polygons"
        )
    return _upwards(outlines, tuple(code for code in wanted if code not in outlines))


def _load(path: Path) -> dict[str, Any]:
    data, _ = unpack(read_bytes(path), str(path))
    try:
        content = json.loads(data.decode("utf-8").lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise InputError(f"{path}: no JSON file ({error})") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: neither GeoJSON nor TopoJSON")
    return content


def _layers(path: Path, content: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Features of a GeoJSON file, or geometries of each object of a TopoJSON file."""
    kind = content.get("type")
    layers = []
    if kind == "Topology" and isinstance(content.get("objects"), dict):
        layers = [
            one.get("geometries", [one])
            for one in content["objects"].values()
            if isinstance(one, dict)
        ]
    elif kind == "FeatureCollection":
        layers = [content.get("features")]
    if not layers or not all(isinstance(one, list) for one in layers):
        raise InputError(
            f"{path}: neither a GeoJSON FeatureCollection nor a TopoJSON Topology; its type is "
            f"{kind!r}"
        )
    return [[one for one in layer if isinstance(one, dict)] for layer in layers]


def _properties(feature: dict[str, Any]) -> dict[str, Any]:
    properties = feature.get("properties")
    return properties if isinstance(properties, dict) else {}


def _codes(layer: Sequence[dict[str, Any]], key: str) -> list[str | None]:
    """Return the code of each feature as text; None where there is none."""
    values = [_properties(one).get(key, one.get("id") if key == "id" else None) for one in layer]
    return [None if value is None else str(value) for value in values]


def _some(codes: Sequence[str]) -> str:
    more = ", ..." if len(codes) > EXAMPLES else ""
    return ", ".join(repr(code) for code in codes[:EXAMPLES]) + more


def _arcs(path: Path, content: dict[str, Any]) -> list[np.ndarray]:
    """Border lines of a TopoJSON file in its units; none of a GeoJSON file."""
    try:
        arcs = [_points(arc) for arc in content.get("arcs") or []]
        if "transform" in content:  # whole numbers, each the difference to the one before
            scale = np.asarray(content["transform"]["scale"], dtype=float)
            shift = np.asarray(content["transform"]["translate"], dtype=float)
            arcs = [np.cumsum(arc, axis=0) * scale + shift for arc in arcs]
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{path}: the arcs of this TopoJSON file are damaged ({error})") from error
    return arcs


def _points(values: Any) -> np.ndarray:
    points = np.array([point[:2] for point in values], dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or not np.isfinite(points).all():
        raise ValueError("points must be pairs of numbers")
    return points


def _polygons(geometry: Any, arcs: Sequence[np.ndarray]) -> Iterator[Polygon]:
    """Polygons of a geometry, outer rings anticlockwise and holes clockwise."""
    kind = None if geometry is None else geometry["type"]
    if kind == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _polygons(one, arcs)
    elif kind in ("Polygon", "MultiPolygon"):
        nested = geometry["arcs"] if "arcs" in geometry else geometry["coordinates"]
        for rings in [nested] if kind == "Polygon" else nested:
            found = [_joined(ring, arcs) if "arcs" in geometry else _points(ring) for ring in rings]
            polygon = [
                _turned(ring, outer=place == 0)
                for place, ring in enumerate(found)
                if len(ring) > 2  # simplifying an outline leaves islands without area
            ]
            if found and len(found[0]) > 2:
                yield polygon


def _joined(ring: Sequence[int], arcs: Sequence[np.ndarray]) -> Ring:
    """Put the arcs of a ring end to end; ~i is arc i backwards."""
    parts = [arcs[i] if i >= 0 else arcs[~i][::-1] for i in ring]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


def _turned(ring: Ring, *, outer: bool) -> Ring:
    """Turn an outer ring anticlockwise and a hole clockwise, so that the hole stays empty."""
    x, y = ring[:, 0], ring[:, 1]
    anticlockwise = np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) > 0
    return ring if anticlockwise == outer else ring[::-1]


def _upwards(outlines: dict[str, list[Polygon]], missing: tuple[str, ...]) -> Shapes:
    """Tell degrees from projected units, and turn pixels upside down."""
    points = np.concatenate([r for area in outlines.values() for p in area for r in p])
    largest = np.abs(points).max(axis=0)
    geographic = bool(largest[0] <= 180.0 and largest[1] <= 90.0)
    if not geographic and largest.max() <= SCREEN:
        outlines = {
            code: [[(ring * [1.0, -1.0])[::-1] for ring in polygon] for polygon in area]
            for code, area in outlines.items()
        }
    return Shapes(outlines, missing, geographic)
