"""Outlines of areas: the right polygon for each code, right side up, or one clear message."""

import gzip
import json

import numpy as np
import pytest

from bayes_sdc import InputError, read_shapes

LEFT = [[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]
RIGHT = [[2, 0], [4, 0], [4, 2], [2, 2], [2, 0]]
HOLE = [[0.5, 0.5], [1, 0.5], [1, 1], [0.5, 1], [0.5, 0.5]]


def feature(code, *rings, kind="Polygon", key="code"):
    coordinates = list(rings) if kind == "Polygon" else [[ring] for ring in rings]
    return {
        "type": "Feature",
        "properties": {key: code, "name": "n"},
        "geometry": {"type": kind, "coordinates": coordinates},
    }


def write(path, content) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def geojson(tmp_path):
    def make(*features):
        path = tmp_path / "areas.geojson"
        write(path, {"type": "FeatureCollection", "features": list(features)})
        return path

    return make


@pytest.fixture
def topojson(tmp_path):
    """Two squares that share a border, with another layer; in steps of a quantised grid."""
    arcs = [
        [[10, 0], [0, 10]],  # the shared border, upwards
        [[10, 10], [-10, 0], [0, -10], [10, 0]],  # the rest of the left square
        [[10, 0], [10, 0], [0, 10], [-10, 0]],  # the rest of the right one
    ]
    left = {"type": "Polygon", "id": "01", "properties": {"n": 1}, "arcs": [[0, 1]]}
    right = {"type": "MultiPolygon", "id": "02", "properties": {"n": 2}, "arcs": [[[2, -1]]]}
    both = {"type": "Polygon", "id": "x", "arcs": [[1, 2]]}
    path = tmp_path / "areas.json"
    write(
        path,
        {
            "type": "Topology",
            "transform": {"scale": [0.2, 0.2], "translate": [0, 0]},
            "arcs": arcs,
            "objects": {
                "country": {"type": "GeometryCollection", "geometries": [both]},
                "counties": {"type": "GeometryCollection", "geometries": [left, right]},
            },
        },
    )
    return path


def area(shapes, code) -> float:
    """By the shoelace formula: outer rings count positive, holes negative."""
    total = 0.0
    for polygon in shapes.outlines[code]:
        for ring in polygon:
            x, y = ring.T  # a last point that repeats the first adds nothing
            total += 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))
    return total


def corners(shapes, code) -> set[tuple[float, float]]:
    rings = [ring for polygon in shapes.outlines[code] for ring in polygon]
    return {(round(float(x), 9), round(float(y), 9)) for ring in rings for x, y in ring}


def test_topojson_and_geojson_of_the_same_areas_agree(topojson, geojson):
    path = geojson(feature("01", LEFT), feature("02", RIGHT, kind="MultiPolygon"))
    one = read_shapes(path, key="code", codes=["01", "02"])
    other = read_shapes(topojson, key="id", codes=["01", "02"])
    for code in ("01", "02"):
        assert corners(one, code) == corners(other, code)
        assert area(one, code) == pytest.approx(area(other, code)) == pytest.approx(4.0)
    assert one.geographic
    assert other.geographic


def test_layer_of_a_topology_is_the_one_that_matches(topojson):
    assert set(read_shapes(topojson, key="id", codes=["x"]).outlines) == {"x"}
    assert area(read_shapes(topojson, key="id", codes=["x"]), "x") == pytest.approx(8.0)


@pytest.mark.parametrize("turn", [1, -1])
def test_a_hole_is_no_part_of_its_area_however_it_is_turned(geojson, turn):
    # the files of many programs turn their rings the other way than the standard says
    shapes = read_shapes(geojson(feature("1", LEFT[::turn], HOLE[::turn])), key="code", codes=["1"])
    assert area(shapes, "1") == pytest.approx(3.75)


def test_features_of_one_code_are_one_area(geojson):
    path = geojson(feature("1", LEFT), feature("2", LEFT), feature("1", RIGHT))
    assert len(read_shapes(path, key="code", codes=["1", "2"]).outlines["1"]) == 2


def test_codes_without_outline_are_listed(geojson):
    line = feature("3", LEFT[:2])  # an island of which simplification left a line
    nothing = feature("4", LEFT) | {"geometry": None}
    path = geojson(feature(1, LEFT), feature("2", RIGHT), feature("5", LEFT), line, nothing)
    shapes = read_shapes(path, key="code", codes=["1", "2", "3", "4", "5", "6"])
    assert set(shapes.outlines) == {"1", "2", "5"}
    assert shapes.missing == ("3", "4", "6")


def test_pixels_are_turned_upside_down_and_metres_are_not(geojson):
    # else the north of a country stands at the bottom of its map
    def moved(factor, shift):
        return [[x * factor + shift, y * factor + shift] for x, y in LEFT[:3]]

    pixels = read_shapes(geojson(feature("1", moved(100, 200))), key="code", codes=["1"])
    assert corners(pixels, "1") == {(200, -200), (400, -200), (400, -400)}
    metres = read_shapes(geojson(feature("1", moved(1000, 4e5))), key="code", codes=["1"])
    assert corners(metres, "1") == {(4e5, 4e5), (402e3, 4e5), (402e3, 402e3)}
    assert not pixels.geographic
    assert not metres.geographic
    for shapes in (pixels, metres):
        assert area(shapes, "1") > 0


def test_codes_that_do_not_match_say_how_many_did(geojson):
    path = geojson(*(feature(str(code), LEFT) for code in (1001, 1003, "10")))
    with pytest.raises(InputError) as caught:
        read_shapes(path, key="code", codes=["01001", "01003", "10"])
    text = str(caught.value)
    assert "1 of the table's 3 codes match the property 'code'" in text
    assert "'1001', '1003', '10'" in text
    assert "'01001', '01003', '10'" in text
    assert "compared as text" in text


def test_a_property_that_no_feature_has_is_named_with_those_they_have(geojson):
    with pytest.raises(InputError, match="no feature has a property 'GEOID'; they have code, name"):
        read_shapes(geojson(feature("1", LEFT)), key="GEOID", codes=["1"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n", "no JSON file"),
        (b"[1]", "neither GeoJSON nor TopoJSON"),
        (b'{"type": "Feature"}', "its type is 'Feature'"),
        (b'{"type": "Topology", "objects": {}}', "neither a GeoJSON"),
        (b'{"type": "FeatureCollection"}', "neither a GeoJSON"),
        (b'{"type": "FeatureCollection", "features": []}', "they have none"),
        (b"\xff\xfe\x00", "no JSON file"),
        (b"PK\x03\x04", "zip archive"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "areas.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_shapes(path, key="code", codes=["1"])


@pytest.mark.parametrize(
    "rings",
    [
        [[[0, 0], [1, 1], ["a", 2]]],
        [[[0, 0], [1, 1], [float("nan"), 2]]],
        [[0, 1, 2]],
        3,
    ],
)
def test_damaged_polygons_are_named(geojson, rings):
    broken = feature("2", LEFT)
    broken["geometry"]["coordinates"] = rings
    with pytest.raises(InputError, match="feature 2, code '2': its polygon is damaged"):
        read_shapes(geojson(feature("1", LEFT), broken), key="code", codes=["1", "2"])


def test_arc_that_is_missing_is_named(topojson):
    content = json.loads(topojson.read_text(encoding="utf-8"))
    content["arcs"].pop()
    write(topojson, content)
    with pytest.raises(InputError, match="feature 2, id '02'"):
        read_shapes(topojson, key="id", codes=["01", "02"])
    write(topojson, content | {"transform": {}})
    with pytest.raises(InputError, match="arcs of this TopoJSON file are damaged"):
        read_shapes(topojson, key="id", codes=["01", "02"])


def test_missing_file_and_packed_file(topojson, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_shapes(tmp_path / "none.json", key="id", codes=["01"])
    packed = tmp_path / "areas.json.gz"
    packed.write_bytes(gzip.compress(topojson.read_bytes()))
    assert len(read_shapes(packed, key="id", codes=["01", "02"]).outlines) == 2


@pytest.mark.shared_data
def test_counties_fill_their_states_and_their_country(shared_data):
    path = shared_data / "area" / "us-atlas-3.0.1-counties-albers-10m.json"
    objects = json.loads(path.read_text(encoding="utf-8"))["objects"]
    codes = {
        name: [one["id"] for one in objects[name]["geometries"] if "id" in one]
        for name in ("counties", "states")
    }
    counties, states = (read_shapes(path, key="id", codes=codes[name]) for name in codes)
    assert len(counties.outlines) > 3000
    assert counties.missing == ("51678",)  # a city of six square kilometres, too small to be drawn
    of_state: dict[str, float] = {}
    for code in counties.outlines:
        of_state[code[:2]] = of_state.get(code[:2], 0.0) + area(counties, code)
    for state in states.outlines:
        assert of_state[state] == pytest.approx(area(states, state), rel=1e-6)
