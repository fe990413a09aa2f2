"""Hugging Face datasets: really through `datasets`, on local folders; and without network."""

from __future__ import annotations

import builtins
import importlib.util
import json
import time

import datasets
import pytest

from workbench.base.errors import DataError
from workbench.choices.data.files import Files
from workbench.choices.data.hugging_face import HuggingFace
from workbench.choices.data.prepare import prepare


@pytest.fixture
def records(tmp_path, monkeypatch, sentences):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hf"))
    return [{"text": text, "label": i} for i, text in enumerate(sentences(200))]


def jsonl_folder(folder, records):
    folder.mkdir()
    (folder / "train.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def parquet_folder(folder, records):
    folder.mkdir()
    datasets.Dataset.from_list(records).to_parquet(str(folder / "train.parquet"))


def saved_dataset(folder, records):
    datasets.Dataset.from_list(records).save_to_disk(str(folder))


def saved_dict(folder, records):
    datasets.DatasetDict({"train": datasets.Dataset.from_list(records)}).save_to_disk(str(folder))


def arrow_folder(folder, records):
    saved_dataset(folder.with_name("saved"), records)
    folder.mkdir()
    (found,) = folder.with_name("saved").glob("*.arrow")
    found.rename(folder / "train.arrow")
    for path in (folder, folder / "train.arrow"):
        with pytest.raises(DataError, match=r"a folder of Arrow files is read by data 'hugging_face'"):
            list(Files(paths=(str(path),)).documents())


@pytest.mark.parametrize("write", [jsonl_folder, parquet_folder, arrow_folder, saved_dataset, saved_dict])
def test_local_datasets(tmp_path, records, write, monkeypatch):
    write(tmp_path / "set", records)
    data = HuggingFace(name=str(tmp_path / "set"), max_documents=150)
    assert list(data.documents()) == [record["text"] for record in records[:150]]
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: pytest.fail("fetched again"))
    monkeypatch.setattr(datasets, "load_from_disk", lambda *a, **k: pytest.fail("fetched again"))
    assert len(list(data.documents())) == 150


@pytest.mark.parametrize("write", [jsonl_folder, parquet_folder, saved_dict])
def test_a_stream_is_opened_in_the_middle_and_not_kept(tmp_path, records, write, cache):
    write(tmp_path / "set", records)
    data = HuggingFace(name=str(tmp_path / "set"), max_documents=10, stream=20)
    assert list(data.documents()) == [record["text"] for record in records[:20]]
    before = {path: path.stat().st_size for path in cache.rglob("*")}
    assert list(data.open_stream(150)) == [record["text"] for record in records[150:]]
    assert {path: path.stat().st_size for path in cache.rglob("*")} == before
    assert data.sources()["stream"] == 20
    assert "stream" not in HuggingFace(name=str(tmp_path / "set")).sources()


def test_prepared_end_to_end(tmp_path, records):
    jsonl_folder(tmp_path / "set", records)
    tokenizer = {"kind": "trained", "vocabulary_size": 256}
    data = HuggingFace(name=str(tmp_path / "set"), tokenizer=tokenizer, sequence_length=16, batch_size=4)
    said: list[str] = []
    prepared = prepare(data, said.append)
    assert prepared.train.documents + prepared.heldout.documents == 200
    assert any("200 documents" in line for line in said)


def test_errors_of_local_datasets(tmp_path, records):
    jsonl_folder(tmp_path / "set", records)
    saved_dict(tmp_path / "saved", records)
    name = str(tmp_path / "set")
    with pytest.raises(DataError, match=r"data\.field: unknown value 'texts'; did you mean 'text'\?"):
        HuggingFace(name=name, field="texts").documents()
    with pytest.raises(DataError, match=r"record 1: field 'label' is of type number, expected text"):
        HuggingFace(name=name, field="label").documents()
    with pytest.raises(DataError, match=r"split 'test'\) cannot be opened"):
        HuggingFace(name=name, split="test").documents()
    with pytest.raises(DataError, match=r"data\.split: unknown value 'tarin'; did you mean 'train'"):
        HuggingFace(name=str(tmp_path / "saved"), split="tarin").documents()


def test_without_network_the_error_comes_soon(monkeypatch):
    """A real attempt at a port of this machine where nothing listens."""
    monkeypatch.setattr("huggingface_hub.hf_api.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    begin = time.monotonic()
    with pytest.raises(DataError, match=r"'some/dataset' is no local folder.*data 'files' with data\.paths"):
        HuggingFace(name="some/dataset").documents()
    assert time.monotonic() - begin < 60


def test_missing_package_names_the_extra(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "datasets" else real(name))
    with pytest.raises(DataError, match=r"pip install 'workbench\[hf\]'"):
        HuggingFace(name="some/dataset").documents()


def test_declaring_one_imports_nothing(monkeypatch):
    real = builtins.__import__

    def guarded(name, *rest):
        assert not name.startswith("datasets"), "importing datasets takes seconds"
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", guarded)
    assert HuggingFace(name="some/dataset").sources()["name"] == "some/dataset"
