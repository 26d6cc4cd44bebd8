"""What a bulk job takes as its inputs, and in which order."""

import errno
import io
import json
import os
import tarfile

import pyarrow
import pyarrow.parquet
import pytest

from contents import write_parquet, write_tar
from saccade.bulk import sources
from saccade.bulk.failures import BulkError


def read_all(inputs, shard_items=3, columns=sources.Columns()):
    """All items of the inputs, through the form in which shards are stored."""
    found = []
    for shard in sources.shards([str(given) for given in inputs], shard_items, columns):
        items = list(sources.read(json.loads(json.dumps(shard))))
        assert [item.index for item in items] == list(range(shard["first"], shard["first"] + shard["items"]))
        found += items
    assert [item.index for item in found] == list(range(len(found)))
    return found


def test_a_folder_is_read_by_name_with_its_folders_tar_and_parquet_files(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    for name in ("z.jpg", "a.PNG", "b/c.webp", "notes.md", ".hidden/x.jpg"):
        (tmp_path / name).write_bytes(name.encode())
    write_tar(tmp_path / "t.tar", [("1.jpg", b"one"), ("1.json", b"{}"), ("2.jpg", b"two")])
    write_parquet(tmp_path / "p.parquet", {"image": [b"three", b"four"], "label": [1, 2]}, 1)
    found = [(item.key, item.data) for item in read_all([tmp_path])]
    loose = [("a.PNG", b"a.PNG"), ("b/c.webp", b"b/c.webp"), ("z.jpg", b"z.jpg")]
    assert found == loose + [("p.parquet/0", b"three"), ("p.parquet/1", b"four"), ("t.tar/1.jpg", b"one"), ("t.tar/2.jpg", b"two")]


def test_a_list_names_files_beside_it_and_a_missing_one_is_an_error_of_its_own(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"a")
    (tmp_path / "list.txt").write_text("a.jpg\n\nmissing.jpg\na.jpg\n")
    first, missing, again = read_all([tmp_path / "list.txt"])
    assert first.data == again.data == b"a"
    assert missing.data is None and "No such file" in missing.error


def test_a_name_with_a_nul_is_an_error_of_its_own(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"a")
    (tmp_path / "list.txt").write_bytes(b"a\0.jpg\na.jpg\n")
    wrong, right = read_all([tmp_path / "list.txt"])
    assert (wrong.data, wrong.error) == (None, "the name is not a path: embedded null byte")
    assert right.data == b"a"


def test_a_folder_that_links_to_itself_is_read_once(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"a")
    (tmp_path / "again").symlink_to(tmp_path)
    assert [item.key for item in read_all([tmp_path])] == ["a.jpg"]


class BadSector(io.BytesIO):
    """A file whose bytes from the second member on cannot be read."""

    def read(self, size=-1):
        if self.tell() >= 1024:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


def test_a_tar_file_that_cannot_be_read_at_a_place_costs_the_members_there(tmp_path):
    path = write_tar(tmp_path / "t.tar", [("1.jpg", b"one"), ("2.jpg", b"two")])
    (shard,) = sources.shards([str(path)], 9, sources.Columns())
    first, second = sources._read_tar(shard, BadSector(path.read_bytes()))
    assert first.data == b"one"
    assert (second.data, second.error) == (None, "t.tar cannot be read: Input/output error")


def test_parquet_columns_may_be_structs_and_have_keys_and_gaps(tmp_path):
    kind = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
    pictures = pyarrow.array([{"bytes": b"x", "path": "p"}, {"bytes": None, "path": "q"}, None], kind)
    path = write_parquet(tmp_path / "p.parquet", {"image": pictures, "name": ["n1", "n2", "n3"]}, 2)
    found = read_all([path], columns=sources.Columns(key="name"))
    assert [(item.key, item.data, item.error) for item in found] == [
        ("n1", b"x", None), ("n2", None, "the row has no bytes"), ("n3", None, "the row has no bytes")]


def test_large_rows_of_parquet_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    taken = []

    class Watched(pyarrow.parquet.ParquetFile):
        def iter_batches(self, *given, **named):
            for batch in super().iter_batches(*given, **named):
                taken.append(batch.num_rows)
                yield batch

    monkeypatch.setattr(pyarrow.parquet, "ParquetFile", Watched)
    monkeypatch.setattr(sources, "_BYTES_AT_ONCE", 10_000)
    rows = [os.urandom(4000) for _ in range(9)]
    path = write_parquet(tmp_path / "p.parquet", {"image": rows}, 9)
    (shard,) = sources.shards([str(path)], 9, sources.Columns())
    read = sources.read(shard)
    assert next(read).data == rows[0] and taken == [2]
    assert [item.data for item in read] == rows[1:] and taken == [2, 2, 2, 2, 1]


def test_a_damaged_page_of_parquet_costs_its_rows_not_the_job(tmp_path):
    path = write_parquet(tmp_path / "p.parquet", {"image": [bytes([n]) * 5000 for n in range(20)]}, 20)
    shards = list(sources.shards([str(path)], 5, sources.Columns()))
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    found = [item for shard in shards for item in sources.read(shard)]
    assert [item.index for item in found] == list(range(20))
    assert any(item.error and "is damaged" in item.error for item in found)


def test_names_that_are_no_utf_8_are_shown_with_their_bytes(tmp_path):
    (tmp_path / "in").mkdir()
    name = os.fsencode(tmp_path / "in") + b"/caf\xe9.jpg"
    with open(name, "wb") as file:
        file.write(b"one")
    (tmp_path / "list.txt").write_bytes(b"in/caf\xe9.jpg\n")
    with tarfile.open(tmp_path / "t.tar", "w") as archive:
        archive.add(os.fsdecode(name), "caf\udce9.jpg")
    for given, key in (("in", "caf\\xe9.jpg"), ("list.txt", "in/caf\\xe9.jpg"), ("t.tar", "t.tar/caf\\xe9.jpg")):
        (found,) = read_all([tmp_path / given])
        assert (found.key, found.data, found.error) == (key, b"one", None)
        found.key.encode()


def test_a_tar_file_that_tarfile_does_not_read_to_its_end_is_refused(tmp_path):
    path = write_tar(tmp_path / "t.tar", [("1.jpg", b"1" * 600), ("2.jpg", b"2" * 600)])
    whole = path.read_bytes()
    for damaged, said in (
        (whole[:1536] + b"\x01" * 512 + whole[2048:], "is damaged at byte 1,536"),
        (whole + whole, "goes on behind its end"),
        (whole[:3072], "has no end mark"),
        (whole[:1536], "has no end mark"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(BulkError, match=said):
            read_all([path])
    path.write_bytes(whole + bytes(10240))
    assert [item.data for item in read_all([path])] == [b"1" * 600, b"2" * 600]


def test_links_of_a_tar_file_have_the_bytes_of_their_targets(tmp_path):
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w") as archive:
        for kind, name, given in (
            (tarfile.SYMTYPE, "d/forward.jpg", "../blob"),
            (tarfile.REGTYPE, "./1.jpg", b"one"),
            (tarfile.LNKTYPE, "d/hard.jpg", "./1.jpg"),
            (tarfile.SYMTYPE, "d/chain.jpg", "hard.jpg"),
            (tarfile.REGTYPE, "1.jpg", b"later"),
            (tarfile.REGTYPE, "blob", b"blob"),
            (tarfile.SYMTYPE, "gone.jpg", "/elsewhere/x.jpg"),
            (tarfile.SYMTYPE, "circle.jpg", "circle.jpg"),
            (tarfile.SYMTYPE, "notes.md", "1.jpg"),
        ):
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind == tarfile.REGTYPE:
                member.size = len(given)
                archive.addfile(member, io.BytesIO(given))
            else:
                member.linkname = given
                archive.addfile(member)
    found = [(item.key, item.data) for item in read_all([path])]
    assert found == [
        ("t.tar/./1.jpg", b"one"), ("t.tar/1.jpg", b"later"), ("t.tar/d/forward.jpg", b"blob"), ("t.tar/d/hard.jpg", b"one"),
        ("t.tar/d/chain.jpg", b"one"), ("t.tar/gone.jpg", None), ("t.tar/circle.jpg", None)]
    gone = read_all([path])[5]
    assert gone.error.startswith("is a link to /elsewhere/x.jpg, which is no file of the archive")


def test_a_sparse_member_of_a_tar_file_is_an_error_of_its_own(tmp_path):
    path = tmp_path / "t.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, headers in (("sparse.jpg", {"GNU.sparse.map": "0,3", "GNU.sparse.size": "1000"}), ("whole.jpg", {})):
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = 3, headers
            archive.addfile(member, io.BytesIO(b"abc"))
    sparse, whole = read_all([path])
    assert sparse.data is None and sparse.error.startswith("is stored as a sparse file")
    assert whole.data == b"abc"


def test_a_tar_file_that_was_cut_says_so_for_each_member(tmp_path):
    path = write_tar(tmp_path / "t.tar", [("1.jpg", b"1" * 600), ("2.jpg", b"2" * 600)])
    (shard,) = sources.shards([str(path)], 5, sources.Columns())
    path.write_bytes(path.read_bytes()[:2000])
    first, second = sources.read(shard)
    assert first.data == b"1" * 600
    assert second.data is None and "ends in the middle" in second.error


def test_an_item_that_fits_no_message_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_ITEM_BYTES", 10)
    (tmp_path / "a.jpg").write_bytes(b"x" * 11)
    (tmp_path / "b.jpg").write_bytes(b"x" * 10)
    large, small = read_all([tmp_path])
    assert large.data is None and "expected at most 10" in large.error
    assert small.data == b"x" * 10


@pytest.mark.parametrize(
    ("name", "content", "columns", "said"),
    [
        ("nothing.jpg", None, {}, "is not there"),
        ("a.zip", b"PK", {}, "of a kind that is not known"),
        ("empty.txt", b"\n", {}, "has no inputs"),
        ("wide.txt", "a.jpg\n".encode("utf-16"), {}, "is UTF-16; expected UTF-8"),
        ("broken.tar", b"not a tar file" * 99, {}, "not a readable, uncompressed tar"),
        ("broken.parquet", b"PAR1 nothing", {}, "not a readable Parquet file"),
        ("two.parquet", {"a": [b"1"], "b": [b"2"]}, {}, "its columns of bytes are: a, b"),
        ("none.parquet", {"a": [1]}, {}, "its columns of bytes are: none"),
        ("wrong.parquet", {"a": [b"1"]}, {"data": "c"}, "expected a column c of bytes"),
        ("keyless.parquet", {"a": [b"1"]}, {"key": "c"}, "has no column c"),
    ],
)
def test_what_cannot_be_listed_ends_the_job_and_says_why(tmp_path, name, content, columns, said):
    path = tmp_path / name
    if isinstance(content, dict):
        write_parquet(path, content, 1)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(BulkError, match=said):
        read_all([path], columns=sources.Columns(**columns))
