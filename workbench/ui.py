"""Tell an extension of JupyterLab that is older than the package, and asks for ``workbench.ui``, how to update it."""

raise ImportError(
    "JupyterLab's extension of workbench is older than the package: in the project's folder run `pip install "
    "--no-deps -e .` (`make lab` does), then load this page again"
)
