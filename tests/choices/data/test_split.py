"""The split rule may never change: a held-out document would enter training."""

from __future__ import annotations

from workbench.choices.data.split import document_hash, is_heldout


def test_hashes_are_frozen():
    assert document_hash("") == 16476032584258269876
    assert document_hash("Größe") == 1791692796669528437


def test_share():
    held = sum(is_heldout(f"document {i}", 0.05) for i in range(10_000))
    assert held == 530
    assert not any(is_heldout(f"document {i}", 1e-9) for i in range(1000))
    assert all(is_heldout(f"document {i}", 1 - 1e-9) for i in range(1000))


def test_text_that_is_not_well_formed_has_a_hash():
    assert document_hash("half a pair \ud800") == document_hash("half a pair \ud800")
