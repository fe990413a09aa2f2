"""What users compose. Importing this package registers every choice."""

from workbench.choices import architectures, data, depth, execution, objectives, optimizers, own, schedules
from workbench.choices.choice import registry

__all__ = ["architectures", "data", "depth", "execution", "objectives", "optimizers", "own", "registry", "schedules"]
