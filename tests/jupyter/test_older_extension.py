"""An extension of JupyterLab of a version before is told how to be updated."""

from __future__ import annotations

import pytest


def test_what_an_older_extension_runs_says_how_to_update_it():
    # As that one has it: lab_kernel.js of the version before.
    with pytest.raises(ImportError, match=r"older than the package: in the project's folder run `pip install"):
        exec("from workbench.ui.lab.tab import lab_of_tab\nlab_of_tab()")
