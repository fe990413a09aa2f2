"""Hold the choices that users compose. Importing this package registers every one."""

from workbench.base.loading import load

# Kernels and commands meet torch here: without looking for garbage they have it after 2.1 CPU seconds instead of 2.4.
load("torch")

from workbench.choices import architectures, data, depth, execution, objectives, optimizers, own, schedules  # noqa: E402
from workbench.choices.choice import registry  # noqa: E402

__all__ = ["architectures", "data", "depth", "execution", "objectives", "optimizers", "own", "registry", "schedules"]
