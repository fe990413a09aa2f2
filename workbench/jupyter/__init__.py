"""The widgets and pages in JupyterLab; the only part of the workbench that imports Jupyter."""
