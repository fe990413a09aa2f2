# For JupyterHub: one image per learner, with the packages of binder/postBuild and nothing else. `docker build -t workbench .`
# The base brings JupyterLab's server for hubs (jupyterhub-singleuser) and a C++ compiler is added, which torch compiles with.
FROM quay.io/jupyter/base-notebook:python-3.12

USER root
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY --chown=${NB_UID}:${NB_GID} . /srv/workbench

USER ${NB_UID}
WORKDIR /srv/workbench
RUN bash binder/postBuild

# Runs lie in the learner's home, which the hub keeps; notebooks are copied there by the hub's own means, or opened here.
ENV WORKBENCH_RUNS=${HOME}/runs
WORKDIR ${HOME}
