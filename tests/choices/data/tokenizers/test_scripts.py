"""Any script comes back exactly: bytes, characters, byte-level BPE and Unigram; words begin where spaces say so."""

from __future__ import annotations

import dataclasses
import itertools
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from tests.choices.tasks.shared_tasks import FOLDER
from workbench.choices.data import Files
from workbench.choices.data.pieces import Pieces
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokenizers import ByteTokenizer, CharacterTokenizer, TokenizerChoice, TrainedTokenizer
from workbench.choices.data.tokenizers.vocabulary import SPECIAL_TOKENS, vocabulary_of
from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.corruption import Corruption
from workbench.models.export import frames_documents

EXACT = {
    "bytes": ByteTokenizer(),
    "characters": CharacterTokenizer(vocabulary_size=400),
    "bpe": TrainedTokenizer(algorithm="bpe", vocabulary_size=400),
    "unigram": TrainedTokenizer(algorithm="unigram", vocabulary_size=400),
}
LEARNED_FROM = ["The cat sat on the mat, and the dog sat on the cat.\nThen they slept."] * 20
TEXTS = {
    "Chinese": "敏捷的棕色狐狸跳过了懒狗。“真的吗?”她问道。",
    "Hindi": "नमस्ते दुनिया, यह एक परीक्षा है। क्षत्रिय",
    "Arabic": "مرحبًا بالعالم، هذا اختبارٌ بسيط؟",
    "Thai": "สวัสดีชาวโลก นี่คือการทดสอบ",
    "Korean and Japanese": "안녕하세요 세계 こんにちは、世界。",
    "marks and joined signs": "e\u0301 naïve 👩‍👩‍👧 \U0001f1e9\U0001f1ea \u200f\u00a0\ufeff",
    "white space": "  two  spaces\tand\r\nlines \n\n  end ",
    "names of tokens": "[MASK] and [CLS]<0x0A> <s>[UNK]\u0120",
}
SAMPLES = {
    "Chinese": "more/zh/drcd_dev.json.xz",
    "Indic": "more/storybooks/storyweaver_other.jsonl.xz",
    "Arabic": "more/xquad/xquad.ar.json.xz",
    "Thai": "more/xquad/xquad.th.json.xz",
}


def made(choice: TokenizerChoice, folder: Path, documents: list[str]) -> Tokenizer:
    choice.make(iter(documents), folder / "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True
    return tokenizer


def there_and_back(tokenizer: Tokenizer, text: str) -> str:
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert not set(ids) & set(range(len(SPECIAL_TOKENS))), "text is text"
    return str(tokenizer.decode(ids, skip_special_tokens=False))


def texts_of(file: Path) -> list[str]:
    """The documents of a file: SQuAD's layout, or JSON lines."""
    with lzma.open(file, "rt", encoding="utf-8") as stream:
        if file.name.endswith(".jsonl.xz"):
            return [json.loads(line)["text"] for line in stream]
        return [part["context"] for each in json.load(stream)["data"] for part in each["paragraphs"]]


@pytest.mark.parametrize("kind", EXACT)
def test_any_script_comes_back_from_a_vocabulary_of_english(tmp_path: Path, kind: str) -> None:
    tokenizer = made(EXACT[kind], tmp_path, LEARNED_FROM)
    assert {name: there_and_back(tokenizer, text) for name, text in TEXTS.items()} == TEXTS
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == [0, 1, 2, 3, 4]
    assert frames_documents(tokenizer, vocabulary_of(tokenizer))


@pytest.mark.parametrize("name", SAMPLES)
def test_whole_samples_come_back_and_are_learned_from(tmp_path: Path, name: str) -> None:
    if not (FOLDER / SAMPLES[name]).is_file():
        pytest.skip(f"no samples of other scripts in {FOLDER}")
    documents = texts_of(FOLDER / SAMPLES[name])[:40]
    for kind, choice in EXACT.items():
        size = 320 if kind == "bytes" else 1000
        sized = choice.model_copy(update={} if kind == "bytes" else {"vocabulary_size": size})
        tokenizer = made(sized, tmp_path, documents)
        assert tokenizer.get_vocab_size() <= size
        assert [there_and_back(tokenizer, text) for text in documents] == documents, kind


def test_wordpiece_in_lower_case_loses_what_its_card_says(tmp_path: Path) -> None:
    tokenizer = made(TrainedTokenizer(vocabulary_size=300), tmp_path, LEARNED_FROM)
    assert tokenizer.decode(tokenizer.encode("The  CAT.").ids) == "the cat."


@pytest.mark.parametrize("kind", EXACT)
def test_whole_words_are_runs_between_spaces(tmp_path: Path, kind: str) -> None:
    tokenizer = made(EXACT[kind], tmp_path, LEARNED_FROM)
    pieces = Pieces.of(tmp_path / "tokenizer.json")
    ids = [2, *tokenizer.encode("the zebra sat  on\nits mat", add_special_tokens=False).ids, 3]
    vocabulary = vocabulary_of(tokenizer)
    begins = np.flatnonzero(pieces.begins(vocabulary.size)[ids][1:-1]) + 1
    bounds = [1, *begins[begins > 1].tolist(), len(ids) - 1]
    words = [tokenizer.decode(ids[low:high]) for low, high in itertools.pairwise(bounds)]
    assert words == ["the", " zebra", " sat", " ", " on", "\nits", " mat"]
    corruption = Corruption(dataclasses.replace(vocabulary, pieces=pieces), torch.device("cpu"))
    row = torch.tensor([ids])
    for sample in range(20):
        batch = Batch(row, torch.arange(len(ids))[None], torch.zeros(1, len(ids), dtype=torch.int32),
                      torch.tensor([sample]))  # fmt: skip
        seen = corruption(batch, 0.4, 0, always_mask=True, selection="whole_word").tokens_BT[0]
        masked = (seen == vocabulary.mask).tolist()
        for low, high in itertools.pairwise(bounds):
            assert len(set(masked[low:high])) == 1, "all of a word is masked, or nothing"


@pytest.mark.parametrize("kind", ["bytes", "characters"])
def test_bytes_of_text_are_counted(tmp_path: Path, kind: str) -> None:
    """Bits per byte need them: characters of several bytes and all."""
    documents = [f"{number} नमस्ते दुनिया {number * 7}, hello" for number in range(200)]
    path = tmp_path / "text.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    prepared = prepare(
        Files(paths=(str(path),), tokenizer=EXACT[kind], sequence_length=16, batch_size=4), lambda _: None
    )
    held, bytes_N = prepared.heldout, prepared.heldout.bytes_N
    assert bytes_N is not None
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    for low, high in itertools.pairwise(held.offsets_D1):
        text = tokenizer.decode(held.ids_N[low:high].tolist())
        assert int(bytes_N[low:high].sum()) == len(text.encode())
        assert text in documents
