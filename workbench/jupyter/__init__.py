"""What people see in JupyterLab; the only part of the workbench that imports Jupyter."""
