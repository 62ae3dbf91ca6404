"""Finished groups on disk: equal when they come back, private, and tied to one call."""

import json
import stat

import numpy as np
import pytest

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.checkpoint import Checkpoint, Part

CALL = {"input_sha256": "ab", "seed": 1, "sampler": "gibbs"}


def part(*groups: int, seed: int = 0) -> Part:
    rng = np.random.default_rng(seed)
    return Part(
        np.array(groups),
        {"alpha": rng.normal(size=(2, 5, len(groups))), "beta": rng.normal(size=(2, 5, 7))},
        {"diverging": rng.random((2, 5, 1)) < 0.5, "n_steps": rng.integers(9, size=(2, 5, 1))},
    )


def assert_equal(ours: Part, theirs: Part) -> None:
    np.testing.assert_array_equal(ours.groups, theirs.groups)
    for kind in ("posterior", "statistics"):
        left, right = getattr(ours, kind), getattr(theirs, kind)
        assert left.keys() == right.keys()
        for name in left:
            assert left[name].dtype == right[name].dtype, name
            np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_parts_come_back_bit_for_bit_in_a_later_call(tmp_path):
    # else a resumed run differs from one that was not interrupted
    folder = tmp_path / "deep" / "resume"
    first = Checkpoint(folder, CALL)
    assert list(first.finished()) == []
    parts = [part(10, seed=1), part(2, 3, seed=2)]
    for one in parts:
        first.save(one)
    later = list(Checkpoint(folder, dict(CALL)).finished())
    assert [p.groups.tolist() for p in later] == [[2, 3], [10]]  # by first group
    assert_equal(later[0], parts[1])
    assert_equal(later[1], parts[0])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 2}, "differs in seed"),
        ({"seed": 2, "sampler": "nuts"}, "differs in sampler, seed"),
        ({"model_version": "2"}, "differs in model_version"),
    ],
)
def test_another_call_is_refused(tmp_path, changed, words):
    # else draws of two models or two tables are mixed
    Checkpoint(tmp_path, CALL).save(part(0))
    with pytest.raises(InputError, match=words):
        Checkpoint(tmp_path, CALL | changed)
    Checkpoint(tmp_path / "bound", CALL | {"epsilon": 1.0})
    with pytest.raises(InputError, match="differs in epsilon"):  # a later call without it
        Checkpoint(tmp_path / "bound", CALL)
    assert len(list(Checkpoint(tmp_path, CALL).finished())) == 1  # and nothing is lost


def test_draws_are_readable_by_their_owner_alone(tmp_path):
    # draws of the effects are as confidential as the counts
    folder = tmp_path / "resume"
    Checkpoint(folder, CALL).save(part(0))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(path.name for path in folder.iterdir())
    assert files == ["call.json", "part-000000.npz"]
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    assert json.loads((folder / "call.json").read_text(encoding="utf-8")) == CALL


def test_pickled_objects_are_not_loaded(tmp_path):
    # a pickle in the folder would run code of whoever put it there
    store = Checkpoint(tmp_path, CALL)
    np.savez(tmp_path / "part-000000.npz", groups=np.array([{"a": 1}], dtype=object))
    with pytest.raises((ValueError, InputError), match="pickle"):
        list(store.finished())


def test_interrupted_save_leaves_no_part(tmp_path, monkeypatch):
    # half a file would be taken for finished draws, or break the next run
    store = Checkpoint(tmp_path, CALL)

    def broken(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", broken)
    with pytest.raises(KeyboardInterrupt):
        store.save(part(0))
    assert [path.name for path in tmp_path.iterdir()] == ["call.json"]
    assert list(store.finished()) == []


def test_without_a_folder_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Checkpoint(None, CALL)
    store.save(part(0))
    assert list(store.finished()) == []
    assert list(tmp_path.iterdir()) == []


def test_draws_without_their_call_are_refused(tmp_path):
    # else the draws of another seed or table are taken for those of this call
    Checkpoint(tmp_path, CALL).save(part(0))
    (tmp_path / "call.json").unlink()
    with pytest.raises(InputError, match="but the record of their call"):
        Checkpoint(tmp_path, CALL | {"seed": 2})


def test_a_folder_that_cannot_be_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="file/resume: cannot keep the draws"):
        Checkpoint(tmp_path / "file" / "resume", CALL)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_damaged_part_is_one_clear_error(tmp_path, share):
    Checkpoint(tmp_path, CALL).save(part(0))
    path = tmp_path / "part-000000.npz"
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"part-000000\.npz: is not what was saved"):
        list(Checkpoint(tmp_path, CALL).finished())


def chain_of_three_blocks(folder) -> Checkpoint:
    store = Checkpoint(folder, CALL)
    for start in (0, 4, 8):
        block = {"alpha": np.arange(start, start + 4.0)}
        store.save_draws(0, 1, start, block, {"done": np.array(10 + start + 4)})
    return store


@pytest.mark.parametrize("lost", [0, 4, 8])
def test_a_lost_block_of_draws_is_one_clear_error(tmp_path, lost):
    # else numbers that were never drawn stand among the draws
    store = chain_of_three_blocks(tmp_path)
    values, chain = store.load_draws(0, 1, tune=10, draws=12)
    assert values["alpha"].tolist() == list(range(12))
    assert int(chain["done"]) == 22
    (tmp_path / f"chain-000000-001-draw-{lost:06d}.npz").unlink()
    with pytest.raises(InputError, match=f"draws from {lost} on of chain 1 are missing"):
        store.load_draws(0, 1, tune=10, draws=12)


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"seed": 1'])
def test_a_damaged_call_is_one_clear_error(tmp_path, text):
    (tmp_path / "call.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"call\.json: is not what was saved"):
        Checkpoint(tmp_path, CALL)


def test_a_folder_in_place_of_the_call_is_one_clear_error(tmp_path):
    (tmp_path / "call.json").mkdir()
    with pytest.raises(InputError, match=r"call\.json: is not what was saved"):
        Checkpoint(tmp_path, CALL)
