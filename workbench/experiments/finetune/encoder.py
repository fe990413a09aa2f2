"""The encoder that a fine-tuning begins with: a checkpoint of a run, an exported folder, or a model of transformers."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.base.errors import RecipeError, RunError
from workbench.client.run import Run
from workbench.store.checkpoints import checkpoints, duplicate, problem_with, state_of, step_of
from workbench.store.folder import RunFolder, read_object, write_json
from workbench.store.labels import name_of

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

OURS = "workbench"
"""Model type of our exports (:mod:`workbench.transformers`)."""


class Parts(NamedTuple):
    """The parts of a recipe that an encoder decides, as JSON has them.

    Attributes:
        longest: tokens of its longest row. causal: whether a token sees only those before it.
    """

    architecture: dict[str, Any]
    tokenizer: dict[str, Any]
    longest: int
    causal: bool
    execution: dict[str, Any]


@dataclass(frozen=True)
class Encoder:
    """A checkpoint of a run, or a model's folder.

    Attributes:
        folder: of the run, or of the model. step: of the checkpoint; None for a folder of a model.
    """

    folder: str
    step: int | None = None

    @classmethod
    def of(cls, which: Any, step: int | None = None, runs_dir: str | Path | None = None) -> Encoder:
        """Find an encoder.

        Args:
            which: a run, its id, name or folder; or a folder of a model.
            step: of the checkpoint; None for the newest.

        Raises:
            RunError: no such run, it has no such checkpoint, or that one is damaged.
        """
        if not isinstance(which, Run) and (Path(which).expanduser() / "config.json").is_file():
            if step is not None:
                raise RunError(f"'{which}' is a model and has no steps; leave out step")
            return cls(str(Path(which).expanduser().absolute()))
        folder = (which if isinstance(which, Run) else Run(which, runs_dir)).folder
        have = {step_of(path): path for path in checkpoints(folder.checkpoints)}
        if not have:
            raise RunError(
                f"run '{folder.id}' has no checkpoint to fine-tune; `workbench checkpoint {folder.id}` saves one"
            )
        chosen = max(have) if step is None else step
        if chosen not in have:
            names = ", ".join(map(str, have))
            raise RunError(f"run '{folder.id}' has no checkpoint of step {step}; it has those of {names}")
        if problem := problem_with(have[chosen]):
            raise RunError(f"checkpoint step-{chosen} of run '{folder.id}' is damaged: {problem}")
        return cls(str(folder.path), chosen)

    @property
    def name(self) -> str:
        """Its name for people."""
        return Path(self.folder).name if self.run is None else f"{name_of(self.run)} step {self.step}"

    @property
    def described(self) -> str:
        """Folder of the model, or id of the run and step: what the recipe of a fine-tuned run keeps."""
        return self.folder if self.run is None else f"{self.run.id} step {self.step}"

    @property
    def run(self) -> RunFolder | None:
        """The run that it is of."""
        return None if self.step is None else RunFolder(Path(self.folder))

    @property
    def checkpoint(self) -> Path:
        """The folder of its checkpoint."""
        return RunFolder(Path(self.folder)).checkpoints / f"step-{self.step}"

    def parts(self, trained: bool = True) -> Parts:
        """Return what a recipe takes over.

        Args:
            trained: False for a twin that begins with fresh weights.

        Raises:
            RunError: the checkpoint is of a model that had not grown up. RecipeError: it cannot be read.
        """
        if self.run is None:
            return self._parts_of_model(trained)
        from workbench.recipes.recipe import Recipe

        recipe = Recipe.load(self.run.recipe)
        recipe.check_whole(self.run.id)
        stage = (state_of(self.checkpoint).get("growth") or {}).get("stage", 0)
        layers = recipe.depth.layers_at(recipe.architecture.layers, stage)
        if layers < recipe.architecture.layers:
            raise RunError(
                f"{self.name} has {layers} of {recipe.architecture.layers} layers: too young; take a later step"
            )
        architecture = recipe.depth.architecture_at(recipe.architecture, stage).model_dump(mode="json")
        # Of pre-training alone.
        architecture.pop("notes", None)
        fields = recipe.to_dict()
        execution = recipe.execution.eager()
        return Parts(architecture, fields["data"]["tokenizer"], recipe.data.longest, recipe.objective.causal, execution)

    def _parts_of_model(self, trained: bool) -> Parts:
        from workbench.recipes.recipe import Recipe

        config = read_object(Path(self.folder) / "config.json")
        names = " ".join(map(str, config.get("architectures") or ()))
        causal = bool(config.get("causal") or config.get("is_decoder")) or "CausalLM" in names or "LMHead" in names
        architecture = {"kind": "transformers", "model": self.folder, "pretrained": trained, "new_head": trained}
        if config.get("model_type") == OURS:
            architecture = config["architecture"]
        longest = int(config.get("max_position_embeddings") or 512)
        tokenizer = {"kind": "pretrained", "name": self.folder}
        return Parts(architecture, tokenizer, longest, causal, Recipe().execution.eager())

    def put_into(self, draft: RunFolder, recipe: Recipe) -> Recipe:
        """Put tokenizer, vocabulary and, except for the twin, weights into the draft of a run; returns the recipe.

        Raises:
            RecipeError: the checkpoint is gone or damaged.
        """
        trained = bool(recipe.objective.encoder)  # type: ignore[attr-defined]
        vocabulary: Any
        if self.run is None:
            vocabulary = self._from_model(draft, trained)
        else:
            if trained:
                self._copy_weights(draft)
            draft.initial.mkdir(exist_ok=True)
            shutil.copyfile(self.run.tokenizer, draft.tokenizer)
            vocabulary = (read_object(self.run.environment).get("data") or {}).get("vocabulary")
        data = {"vocabulary": vocabulary, "tokenizer_sha256": hashlib.sha256(draft.tokenizer.read_bytes()).hexdigest()}
        origin = {"run": self.run.id if self.run else self.folder, "step": self.step, "data": data}
        write_json(draft.initial / "origin.json", origin)
        return recipe

    def _copy_weights(self, draft: RunFolder) -> None:
        try:
            duplicate(self.checkpoint, draft.initial)
            problem = problem_with(draft.initial)
        except (FileNotFoundError, PermissionError) as error:
            problem = str(error)
        if problem:
            raise RecipeError(f"'{self.checkpoint}' cannot be fine-tuned any more: {problem}")

    def _from_model(self, draft: RunFolder, trained: bool) -> dict[str, int]:
        """Write the tokenizer of a model's folder, and the weights of one of ours; returns the vocabulary."""
        from tokenizers import Tokenizer

        from workbench.choices.data.tokenizers.pretrained import PretrainedTokenizer
        from workbench.choices.data.tokenizers.vocabulary import complete, vocabulary_of

        config = read_object(Path(self.folder) / "config.json")
        declared = PretrainedTokenizer(name=self.folder).make(iter(()), draft.tokenizer)
        tokenizer = Tokenizer.from_file(str(draft.tokenizer))
        if complete(tokenizer, declared):
            draft.tokenizer.write_text(tokenizer.to_str(), encoding="utf-8")
        found = vocabulary_of(tokenizer, int(config.get("vocab_size") or 0), declared).ids()
        ours = config.get("model_type") == OURS
        if ours and trained:
            _as_checkpoint(Path(self.folder), draft.initial)
        else:
            draft.initial.mkdir()
        # The size of ours may be more than the tokenizer needs.
        return found | {"size": int(config["vocab_size"])} if ours else found


def _as_checkpoint(folder: Path, target: Path) -> None:
    """Write the weights of an exported model as a checkpoint."""
    from safetensors.torch import load_file

    from workbench.training.checkpoint import save

    tensors: dict[str, Any] = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(path)
    aside = target.with_name("exported")
    save(aside, 0, {"model": tensors}, {"tied": {}, "tokens": 0, "seconds": 0.0}).rename(target)
    shutil.rmtree(aside)
