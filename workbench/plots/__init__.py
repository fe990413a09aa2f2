"""Pictures of runs: pure functions from :class:`~workbench.store.view.RunView` to Plotly figures, PNG, HTML and text.

Explore, compare and report only: what moves while a run trains is drawn by ``ui``. No torch, no Jupyter.
"""
