"""SentencePiece's files give SentencePiece's ids, and anything else one error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import workbench
from workbench.base.errors import DataError
from workbench.choices.data import Files
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokenizers.pretrained import PretrainedTokenizer
from workbench.choices.data.tokenizers.sentencepiece_model import read_sentencepiece

sentencepiece = pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")

CARDS = sorted((Path(workbench.__file__).parent / "choices").rglob("*.md"))[:40]
LINES = [line for card in CARDS for line in card.read_text().splitlines() if line.strip()]
SIGNS = ["ﬁ ½ \uff21 naïve é 🙂🙂 ☃ 好", "a\tb\nc\n", "  a \n \n  b ", "", "x" * 50, " \u2581 a", "  two  spaces  "]


def model_in(folder: Path, **options: object) -> Path:
    options = {"model_type": "unigram", "vocab_size": 900, "byte_fallback": True, "minloglevel": 2} | options
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_prefix=str(folder / "spiece"), **options
    )
    return folder / "spiece.model"


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"byte_fallback": False, "normalization_rule_name": "identity", "pad_id": 3},
        {"add_dummy_prefix": False, "remove_extra_whitespaces": False},
        {"unk_id": 3, "bos_id": -1, "eos_id": 0, "normalization_rule_name": "nmt_nfkc_cf"},
    ],
    ids=["as usual", "without bytes", "spaces as they are", "other numbers"],
)
def test_ids_are_those_of_sentencepiece(tmp_path: Path, model_type: str, options: dict[str, object]) -> None:
    file = model_in(tmp_path, model_type=model_type, **options)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(file))
    ours, declared = read_sentencepiece(file)
    ours.encode_special_tokens = True
    texts = [*LINES, *SIGNS, " ".join(LINES[:50])]
    found = [each.ids for each in ours.encode_batch_fast(texts, add_special_tokens=False)]
    for here, there in zip(found, theirs.encode(texts), strict=True):
        # Two ways to cut a word may score the same to the last bit; then either may win.
        tie = model_type == "unigram" and sorted(here) == sorted(there)
        assert here == there or (tie and ours.decode(here) == theirs.decode(there))
    if options.get("byte_fallback", True):
        assert [ours.decode(ids) for ids in found] == theirs.decode(found)
    special = {"unk": theirs.unk_id(), "bos": theirs.bos_id(), "eos": theirs.eos_id(), "pad": theirs.pad_id()}
    assert declared == {f"{name}_token": theirs.id_to_piece(token) for name, token in special.items() if token >= 0}
    # Names of tokens are text here as there.
    hidden = {theirs.piece_to_id(name) for name in ("<s>", "</s>", "<pad>", "<0x0A>")} - {theirs.unk_id()}
    assert not hidden & set(ours.encode("a <s></s> <pad>b<0x0A>", add_special_tokens=False).ids)


def test_a_file_or_a_folder_of_one_prepares_text(tmp_path: Path) -> None:
    file = model_in(tmp_path)
    text = tmp_path / "text.jsonl"
    text.write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES))
    found = []
    for name in (file, file.parent):
        choice = {"kind": "pretrained", "name": str(name)}
        found.append(
            prepare(Files(paths=(str(text),), tokenizer=choice, sequence_length=16, batch_size=4), lambda _: None)
        )
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(file))
    vocabulary, store = found[0].vocabulary, found[0].train
    assert (vocabulary.cls, vocabulary.sep, vocabulary.unk) == (1, 2, 0)
    assert (vocabulary.mask, vocabulary.used) == (theirs.vocab_size(), theirs.vocab_size() + 1)
    assert found[0].fingerprint["added_special_tokens"] == ["[MASK]"]
    assert [1, *theirs.encode(LINES[0]), 2] in [
        store.ids_N[low:high].tolist() for low, high in zip(store.offsets_D1[:-1], store.offsets_D1[1:], strict=True)
    ]
    assert found[0].fingerprint["tokenizer_sha256"] == found[1].fingerprint["tokenizer_sha256"]
    assert [str(each.message) for each in PretrainedTokenizer(name=str(file)).notices()] == [
        f"'{file}' has no [MASK]: added, with new ids"
    ]


def test_what_is_no_such_model_is_said(tmp_path: Path) -> None:
    file = model_in(tmp_path)
    whole = file.read_bytes()
    for damaged in (whole[:5000], b"\x0f\x00", b"IQ== 0\nIg== 1\n", b""):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"spiece\.model' (is not a SentencePiece model|has no pieces)"):
            read_sentencepiece(file)
    with pytest.raises(DataError, match="legal are SentencePiece models of type unigram or bpe"):
        read_sentencepiece(model_in(tmp_path, model_type="char", vocab_size=400, hard_vocab_limit=False))
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "NoSuchTokenizer"}')
    with pytest.raises(DataError, match=r"spiece\.model' itself, for its own ids"):
        PretrainedTokenizer(name=str(tmp_path)).make(iter(()), tmp_path / "out.json")
