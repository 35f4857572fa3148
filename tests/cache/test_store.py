"""The store under attack: what is read was written under that key, whole, by this user, or is nothing."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import signal
import time

import pytest

from pybridge.cache import Store


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "cache")
    assert made.distrusted() is None
    return made


def test_what_is_written_is_read(store):
    content = random.Random(0).randbytes(100_000)
    assert store.read("a") is None
    assert store.write("a", content)
    assert store.read("a") == content
    assert Store(store.place).read("a") == content
    assert store.path("a").read_bytes().startswith(content)


def test_an_empty_content_is_an_entry(store):
    store.write("a", b"")
    assert store.read("a") == b""


@pytest.mark.parametrize("kept", [0, 1, 39, 40, 500, 1039])
def test_a_truncated_file_counts_as_missing_and_goes(store, kept):
    store.write("a", bytes(1000))
    path = store.path("a")
    os.truncate(path, kept)
    assert store.read("a") is None
    assert not path.exists()


def test_every_changed_byte_is_found(store):
    content = random.Random(1).randbytes(64)
    for place in range(len(content) + 40):
        store.write("a", content)
        path = store.path("a")
        whole = bytearray(path.read_bytes())
        whole[place] ^= 1 << (place % 8)
        path.write_bytes(whole)
        assert store.read("a") is None


def test_a_file_under_another_key_counts_as_missing(store):
    store.write("a", b"of a")
    store.write("b", b"of b")
    a, b = store.path("a"), store.path("b")
    os.replace(a, b)
    assert store.read("b") is None
    assert store.read("a") is None


def test_a_link_is_not_followed(store, tmp_path):
    store.write("a", b"of a")
    path = store.path("a")
    outside = tmp_path / "outside"
    os.replace(path, outside)
    path.symlink_to(outside)
    assert store.read("a") is None


def test_a_foreign_file_counts_as_missing(store):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    store.write("a", b"of a")
    os.chown(store.path("a"), 12345, -1)
    assert store.read("a") is None


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_where_others_can_write_is_not_used(store, mode):
    store.place.chmod(mode)
    assert "others" in store.distrusted()


def test_a_folder_of_another_user_is_not_used(store):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder to another user")
    os.chown(store.place, 12345, -1)
    assert "another user" in store.distrusted()


def test_a_place_that_cannot_be_made_is_not_used(tmp_path):
    (tmp_path / "file").write_text("")
    assert Store(tmp_path / "file" / "cache").distrusted() is not None


def test_what_was_not_used_for_longest_goes_first(store):
    for k in range(10):
        store.write(str(k), bytes(1000))
        os.utime(store.path(str(k)), (k, k))
    assert store.read("0") == bytes(1000)  # used now
    dropped = store.prune(6000)
    left = {k for k in range(10) if store.read(str(k)) is not None}
    assert (
        0 in left and len(left) == 10 - dropped.entries and left - {0} == set(range(10 - len(left) + 1, 10))
    )
    assert store.usage().size <= 6000


def test_the_size_stays_bounded_while_entries_are_written(tmp_path):
    store = Store(tmp_path / "cache", limit=50_000)
    for k in range(1000):
        store.write(str(k), bytes(1000))
    # it is looked at every so many writes
    assert store.usage().size < 50_000 + 70 * 1100


def test_nothing_is_dropped_below_the_limit(store):
    for k in range(10):
        store.write(str(k), bytes(1000))
    assert store.prune().entries == 0


def test_files_that_were_never_renamed_go_after_an_hour(store):
    store.write("a", b"of a")
    new, old = (store.path("a").with_name(f".new-{age}") for age in ("young", "old"))
    for path in (new, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    store.prune()
    assert new.exists() and not old.exists() and store.read("a") == b"of a"


def _limited(place, queue):
    # A file of more than 4096 bytes cannot be written, as on a full disk.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    store = Store(place)
    queue.put((store.write("small", bytes(1000)), store.write("large", bytes(100_000)), store.read("large")))


def test_a_full_disk_keeps_nothing_and_fails_nothing(store):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_limited, args=(store.place, queue))
    process.start()
    assert queue.get(timeout=60) == (True, False, None)
    process.join(60)
    assert not list(store.place.glob("*/.new-*"))


def _writer(place, seed, stop):
    store, chance = Store(place), random.Random(seed)
    while not stop.exists():
        key = str(chance.randrange(8))
        found = store.read(key)
        assert found is None or found == key.encode() * 20_000, key
        store.write(key, key.encode() * 20_000)
        if chance.random() < 0.1:
            store.prune(chance.randrange(100_000))


def test_processes_that_write_read_prune_and_die_at_once(store, tmp_path):
    context = multiprocessing.get_context("spawn")
    # A file says when to stop: a process killed while it looks at an Event keeps the Event's lock for ever.
    stop = tmp_path / "stop"
    processes = [context.Process(target=_writer, args=(store.place, seed, stop)) for seed in range(8)]
    for process in processes:
        process.start()
    time.sleep(3)
    for process in processes[:4]:  # in the middle of whatever they do
        process.kill()
    time.sleep(1)
    stop.touch()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes[4:]] == [0] * 4
    for key in map(str, range(8)):
        assert store.read(key) in (None, key.encode() * 20_000)
