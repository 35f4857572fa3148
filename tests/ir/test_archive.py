"""Programs in files: exact round trips, and named errors for whatever else is in a file."""

from __future__ import annotations

import hashlib
import re
import stat
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pybridge as pb
from pybridge.frontend.stored_structures import stored
from pybridge.ir import archive
from pybridge.ir.numerals import DTYPES
from pybridge.ir.program import Program, constant_ref
from pybridge.ir.types import TensorType


def _constant(array: np.ndarray, type_: TensorType) -> Program:
    """A Program that gives a constant."""
    ref = constant_ref(array, type_)
    text = f'pybridge 1\nprogram f() {{\n  %0: {type_} = constant {{ref="{ref}"}}\n  return %0\n}}\n'
    return archive.parse(text, {ref: array})


@st.composite
def constants(draw) -> tuple[np.ndarray, TensorType]:
    """Arrays of any dtype and of arbitrary bytes: NaNs of any payload, infinities, -0.0; also empty ones."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    size = int(np.prod(shape)) * DTYPES[dtype].itemsize
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype == "bool":
        data = bytes(b & 1 for b in data)
    return np.frombuffer(data, DTYPES[dtype]).reshape(shape), TensorType(dtype, shape)


@given(constants())
@settings(max_examples=200, deadline=None)
def test_constants_keep_every_bit(tmp_path_factory, constant):
    path = tmp_path_factory.mktemp("bits") / "f.pybridge"
    program = _constant(*constant)
    archive.write(path, program, None)
    again, signature = archive.read(path)
    assert signature is None and again == program and again.name == "f"
    (ref,) = program.constants
    assert again.constants[ref].tobytes() == constant[0].tobytes()
    assert again.constants[ref].dtype == constant[0].dtype and again.constants[ref].shape == constant[0].shape


def _model() -> Program:
    table = np.linspace(0, 1, 70, dtype=np.float32)
    weights = jnp.asarray(np.arange(100.0).reshape(10, 10), jnp.bfloat16)

    def model(p, x, *, scale=1.0):
        y, _ = jax.lax.scan(lambda c, _: (jnp.sin(c * table), None), x, length=3)
        z = jax.lax.cond(
            x[0] > 0, lambda: (weights @ weights).astype(jnp.float32), lambda: jnp.ones((10, 10))
        )
        return {"y": y * p["b"][0] * scale, "parts": (z, [None, p[1] if 1 in p else x.sum()])}

    return pb.trace(model)({"b": [np.float32(2)]}, np.ones(70, np.float32), scale=np.float32(3))


def _saved(folder: Path) -> bytes:
    program = _model()
    archive.write(folder / "model.pybridge", program, stored(program.structure))
    return (folder / "model.pybridge").read_bytes()


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    return _saved(tmp_path_factory.mktemp("archive"))


def _read(path: Path, content: bytes) -> str:
    """The error that reading such a file ends with."""
    path.write_bytes(content)
    with pytest.raises(pb.ArchiveError) as refused:
        archive.read(path)
    assert refused.value.path == str(path) and str(path) in str(refused.value)
    return str(refused.value)


def _sealed(content: bytes, change: bytes | None = None, **head) -> bytes:
    """The file with another text or head, and the checksum that belongs to it."""
    mark, version, needs, length, size = archive._HEAD.unpack_from(content)
    text = content[archive._START :][:length] if change is None else change
    fields = {"mark": mark, "version": version, "needs": needs, "length": len(text), "size": size, **head}
    packed = archive._HEAD.pack(*fields.values())
    checksum = hashlib.sha256(packed + text).digest()
    return packed + checksum + text + content[archive._START + length :]


def test_files_of_one_program_are_alike(content, tmp_path):
    assert _saved(tmp_path) == content


def test_every_constant_is_at_a_multiple_of_64(content):
    for array in _model().constants.values():
        assert content.find(array.tobytes()) % 64 == 0


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_changed_bytes_are_found(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "changed.pybridge"
    changed = bytearray(content)
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4, unique=True)):
        changed[at] ^= data.draw(st.integers(1, 255))
    _read(path, bytes(changed))


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_cut_and_lengthened_files_are_found(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "cut.pybridge"
    end = data.draw(st.integers(0, len(content) - 1))
    _read(path, content[:end])
    _read(path, content + data.draw(st.binary(min_size=1, max_size=200)))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_wrong_texts_under_a_right_checksum_are_refused_or_programs(content, tmp_path_factory, data):
    """What somebody else has written, rather than what a disk has changed."""
    path = tmp_path_factory.getbasetemp() / "sealed.pybridge"
    *_, length, _ = archive._HEAD.unpack_from(content)
    text = bytearray(content[archive._START :][:length])
    for at in data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=3)):
        kind = data.draw(st.sampled_from(["change", "cut", "repeat"]))
        at = min(at, len(text) - 1)
        if kind == "change":
            text[at] = data.draw(
                st.one_of(st.sampled_from(list(b'0123456789"{}[]():,\\\n<>-*')), st.integers(0, 255))
            )
        elif kind == "cut":
            del text[at : at + data.draw(st.integers(1, 20))]
        else:
            text[at:at] = text[at : at + data.draw(st.integers(1, 40))]
        text = text or bytearray(b"?")
    moved = -(-(archive._START + len(text)) // 64) * 64 - (-(-(archive._START + length) // 64) * 64)
    rest = content[-(-(archive._START + length) // 64) * 64 :]
    padding = bytes(-(archive._START + len(text)) % 64)
    sealed = _sealed(content[: archive._START + length], bytes(text), size=len(content) + moved)
    path.write_bytes(sealed + padding + rest)
    try:
        program, structure = archive.read(path)
    except pb.ArchiveError:
        return
    archive.write(path, program, structure)
    assert archive.read(path) == (program, structure)


@pytest.mark.parametrize(
    "head, message",
    [
        ({"version": 3, "needs": b"0.9.0"}, "is of version 3, .* takes pybridge 0.9.0 or newer"),
        ({"version": 3, "needs": b""}, "is of version 3, .* takes a newer pybridge"),
        ({"version": 3, "needs": b"\x1b[31m"}, "damaged: there is no version 3"),
        ({"version": 0}, "damaged: there is no version 0"),
        ({"mark": b"\x89PNG\r\n\x1a\n"}, "no archive of pybridge"),
        ({"mark": b"\x89PBA\n\x1a\n"}, "no archive of pybridge"),
        ({"size": 2**63}, "cut off after"),
        ({"size": 10}, "damaged"),
        ({"length": 2**63}, "damaged"),
    ],
)
def test_heads(head, message, content, tmp_path):
    assert _sealed(content) == content
    refused = _read(tmp_path / "f.pybridge", _sealed(content, **head))
    assert re.search(message, refused), refused


def _with_text(text: str, data: bytes = b"", version: int = archive.VERSION) -> bytes:
    encoded = text.encode()
    padding = bytes(-(archive._START + len(encoded)) % 64) if data else b""
    size = archive._START + len(encoded) + len(padding) + len(data)
    head = archive._HEAD.pack(archive.MARK, version, archive.NEEDS, len(encoded), size)
    return head + hashlib.sha256(head + encoded).digest() + encoded + padding + data


_PROGRAM = "pybridge 1\nprogram f(%0: f32[]) {\n  return %0\n}\n"
_REF = "0" * 64
_NO_TREES = [
    *[
        "0",
        "1.5",
        "NaN",
        '"x"',
        "[]",
        "{}",
        '{"tuple":0}',
        '{"tuple":["*"],"list":[]}',
        '{"tuple":["*"], "a":1}',
    ],
    *[
        '{"known":null}',
        '{"known":1.0}',
        '{"known":[]}',
        '{"known":9223372036854775808}',
        '{"known":"\\ud800"}',
    ],
    *['{"dict":[["b","*"],["a","*"]]}', '{"dict":[["a","*"],["a","*"]]}', '{"dict":[["a","*"],[1,"*"]]}'],
    *[
        '{"dict":[[true,"*"]]}',
        '{"dict":[["a"]]}',
        '{"dict":["ab"]}',
        '{"dict":{"a":"*"}}',
        '{"dict":[[null,"*"]]}',
    ],
    '{"record":"R","fields":3,"data":"","parts":["*"]}',
    '{"record":"R","fields":{"a":1},"data":"","parts":["*"]}',
    '{"record":"R","fields":["a","b"],"data":"","parts":["*"]}',
    '{"record":"R","fields":["a"],"data":"0","parts":["*"]}',
    '{"record":"R","fields":["a"],"data":"AB","parts":["*"]}',
    '{"record":"R","fields":["a"],"data":"0 0","parts":["*"]}',
    '{"record":1,"fields":["a"],"data":"","parts":["*"]}',
    '{"tuple":[' * 101 + '"*"' + "]}" * 101,
]
NO_DESCRIPTIONS = [
    *[
        " null",
        "0",
        "[]",
        '"*"',
        "true",
        '{"arguments":["*"],"result":"*"}',
        '{"arguments":0,"keywords":0,"result":0}',
    ],
    '{"arguments":["*"],"keywords":[],"result":"*"} ',
    '{"keywords":[],"arguments":["*"],"result":"*"}',
    '{"arguments":["*"],"keywords":[[1,"*"]],"result":"*"}',
    *(f'{{"arguments":[{tree}],"keywords":[],"result":"*"}}' for tree in _NO_TREES),
]
"""Lines of version 1 that describe no arguments and results; julia/test/archive/trees.jl has them too."""

_X = '["x","position","*"]'
NO_DESCRIPTIONS_OF_NAMES = [
    '{"arguments":[],"keywords":[],"result":"*"}',
    '{"arguments":0,"result":["y","*"]}',
    '{"arguments":{"x":1},"result":["y","*"]}',
    f'{{"arguments":[{_X}],"result":"*"}}',
    f'{{"arguments":[{_X}],"result":["*"]}}',
    f'{{"arguments":[{_X}],"result":["","*"]}}',
    f'{{"arguments":[{_X}],"result":[1,"*"]}}',
    f'{{"arguments":[{_X}],"result":{{"list":[]}}}}',
    f'{{"arguments":[{_X}],"result":{{"tuple":["y","*"]}}}}',
    f'{{"arguments":[{_X}], "result":["y","*"]}}',
    f'{{"result":["y","*"],"arguments":[{_X}]}}',
    f'{{"arguments":[{_X},{_X}],"result":["y","*"]}}',
    '{"arguments":["*"],"result":["y","*"]}',
    '{"arguments":[["x","*"]],"result":["y","*"]}',
    '{"arguments":[["x",false,"*"]],"result":["y","*"]}',
    '{"arguments":[["x",["keyword"],"*"]],"result":["y","*"]}',
    '{"arguments":[["","position","*"]],"result":["y","*"]}',
    '{"arguments":[[null,"position","*"]],"result":["y","*"]}',
    f'{{"arguments":[{_X}],"result":["y","*"],"more":1}}',
    '{"arguments":[],"result":' + '{"tuple":[' * 101 + '["y","*"]' + "]}" * 101 + "}",
    *(f'{{"arguments":[["x","position",{tree}]],"result":["y","*"]}}' for tree in _NO_TREES),
]
"""The same of version 2."""


@pytest.mark.parametrize(
    "text, message",
    [
        ("null", "expected 'pybridge'"),
        (f"{{}}\n{_PROGRAM}", "no description of arguments"),
        (f"{'[' * 100_000}\n{_PROGRAM}", "no description of arguments"),
        *((f"{line}\n{_PROGRAM}", "no description of arguments") for line in NO_DESCRIPTIONS_OF_NAMES),
        (f'{{"arguments":[],"result":["y","*"]}}\n{_PROGRAM}', "does not fit its Program"),
        (f'{{"arguments":[{_X}],"result":{{"tuple":[]}}}}\n{_PROGRAM}', "does not fit its Program"),
        (f"null\n{_PROGRAM}".replace("pybridge 1", "pybridge 2"), "of version 2"),
        (
            f'null\npybridge 1\nprogram f() {{\n  %0: f32[35184372088832] = constant {{ref="{_REF}"}}\n'
            "  return %0\n}\n",
            "other sizes than it has room for",
        ),
        (
            f'null\npybridge 1\nprogram f() {{\n  %0: f32[<b>] = constant {{ref="{_REF}"}}\n  return\n}}\n',
            "cannot be",
        ),
        (
            f'null\npybridge 1\nprogram f() {{\n  %0: f32[0] = constant {{ref="{_REF}"}}\n'
            f'  %1: f32[1] = constant {{ref="{_REF}"}}\n  return\n}}\n',
            "of two types",
        ),
    ],
)
def test_texts(text, message, tmp_path):
    refused = _read(tmp_path / "f.pybridge", _with_text(text))
    assert message in refused, refused


@pytest.mark.parametrize(
    "line, message",
    [
        *((line, "no description of arguments") for line in NO_DESCRIPTIONS),
        (f'{{"arguments":[{_X}],"result":["y","*"]}}', "no description of arguments"),
        ('{"arguments":[],"keywords":[],"result":"*"}', "does not fit its Program"),
        ('{"arguments":["*","*"],"keywords":[],"result":"*"}', "does not fit its Program"),
    ],
)
def test_lines_of_version_1(line, message, tmp_path):
    refused = _read(tmp_path / "f.pybridge", _with_text(f"{line}\n{_PROGRAM}", version=1))
    assert message in refused, refused


def test_a_line_of_version_1_has_names_of_variables(tmp_path):
    line, program = (
        '{"arguments":["*"],"keywords":[["x0","*"]],"result":"*"}',
        _PROGRAM.replace("f32[])", "f32[], %1: f32[])"),
    )
    (tmp_path / "f").write_bytes(_with_text(f"{line}\n{program}", version=1))
    _, structure = archive.read(tmp_path / "f")
    assert [(a.name, a.keyword) for a in structure.arguments] == [("x0_2", False), ("x0", True)]


def test_data_of_another_hash(tmp_path):
    text = f'null\npybridge 1\nprogram f() {{\n  %0: f32[1] = constant {{ref="{_REF}"}}\n  return\n}}\n'
    assert "another hash" in _read(tmp_path / "f.pybridge", _with_text(text, bytes(4)))


def test_bools_are_0_or_1(tmp_path):
    wrong = np.full(3, 2, np.uint8).view(bool)
    ref = constant_ref(wrong, TensorType("bool", (3,)))
    text = f'null\npybridge 1\nprogram f() {{\n  %0: bool[3] = constant {{ref="{ref}"}}\n  return %0\n}}\n'
    assert "neither 0 nor 1" in _read(tmp_path / "f.pybridge", _with_text(text, bytes([2, 2, 2])))


def test_data_that_are_not_at_hand(tmp_path):
    bare = archive.parse(str(_model()))
    with pytest.raises(pb.ArchiveError, match="not at hand"):
        archive.write(tmp_path / "f.pybridge", bare, None)
    assert not list(tmp_path.iterdir())


def test_a_file_stays_where_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "f.pybridge"
    archive.write(path, _model(), None)
    before = path.read_bytes()
    monkeypatch.setattr(archive.os, "replace", _no_room)
    with pytest.raises(OSError, match="no room"):
        archive.write(path, _model(), None)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def _no_room(*_):
    raise OSError("no room")


def test_links_stay_and_modes_are_those_of_new_files(tmp_path):
    path, link = tmp_path / "f.pybridge", tmp_path / "link"
    path.write_bytes(b"")
    link.symlink_to(path)
    archive.write(link, _model(), None)
    assert link.is_symlink() and archive.read(path)[0] == _model()
    (tmp_path / "plain").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_readers_see_whole_files_while_others_write(tmp_path):
    path, program = tmp_path / "f.pybridge", _model()
    archive.write(path, program, None)
    writers = [threading.Thread(target=_write_often, args=(path, program)) for _ in range(3)]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        assert archive.read(path)[0] == program
        reads += 1
    assert reads > 2 and list(tmp_path.iterdir()) == [path]


def _write_often(path: Path, program: Program) -> None:
    for _ in range(20):
        archive.write(path, program, None)


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        archive.read(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        archive.read(tmp_path)
    for content in (b"", b"\x89PBA\r\n\x1a\n", b"pybridge 1\n", b"PK\x03\x04" * 100):
        _read(tmp_path / "f.pybridge", content)
