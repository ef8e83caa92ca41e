"""What is read back from storage is never executed: no loader that could, and files made to try it."""

from __future__ import annotations

from pathlib import Path

from tests.support.processes import printed

OBJECTS = """
    import pickle, sys
    from pathlib import Path

    import pyarrow as pa
    import ray.data
    from pyarrow import parquet
    from trainers import Channel, DataError

    class Attack:
        def __reduce__(self):
            return Path.touch, (Path(sys.argv[1]),)

    kinds = {
        "ray.data.arrow_pickled_object": pa.binary(),
        "arrow.py_extension_type": pa.binary(),
        "ray.data.arrow_tensor": pa.list_(pa.binary()),
        "ray.data.arrow_tensor_v2": pa.binary(),
    }
    for number, (name, storage) in enumerate(kinds.items()):
        raw = pickle.dumps(Attack())
        value = [raw] if pa.types.is_list(storage) else raw
        field = pa.field(
            "x", storage, metadata={"ARROW:extension:name": name, "ARROW:extension:metadata": raw}
        )
        columns = [pa.array([value, value], storage), pa.array([0.0, 1.0])]
        table = pa.table(columns, schema=pa.schema([field, ("y", pa.float64())]))
        path = sys.argv[2] + f"/{number}.parquet"
        parquet.write_table(table, path)
        try:
            channel = Channel.of(path, target="y", name="train")
            channel.read_whole()
        except DataError as error:
            print(name, "->", str(error).splitlines()[0])
        assert not Path(sys.argv[1]).exists(), name
"""


def test_a_parquet_file_s_own_types_run_nothing(tmp_path: Path) -> None:
    assert printed(OBJECTS, str(tmp_path / "ran"), str(tmp_path)).count("->") == 4
    assert not (tmp_path / "ran").exists()
