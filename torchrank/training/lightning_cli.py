"""Lightning's fit, validate, test and predict on the command line."""

import logging
import re
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytorch_lightning as pl
import yaml
from lightning_fabric.plugins import TorchCheckpointIO
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy

from torchrank.errors import DataError, TorchRankError
from torchrank.parser import HelpfulParser, summary
from torchrank.training.chain import ChainModule
from torchrank.training.checkpoint import load, read_checkpoint
from torchrank.training.checkpoint_io import WholeCheckpointIO
from torchrank.training.config_checks import check_options, check_trainer, is_theirs, module_of, one_line, spell
from torchrank.training.label_writer import LabelWriter
from torchrank.training.launching import end_with_launcher
from torchrank.training.listwise import ListwiseModule
from torchrank.training.parts_data import PARTS_OF_STAGES
from torchrank.training.perceptron import PerceptronModule
from torchrank.training.query_data import QueryDataModule
from torchrank.training.run_writer import RunWriter
from torchrank.training.sequence_data import SequenceDataModule

_NOISE = (
    ".*does not have many workers.*",
    ".*Total length of `list` across ranks is zero.*",  # no validation part
    ".*Using ModelCheckpoint with manual optimization.*",
    ".*LeafSpec.*",
    ".*Couldn't infer the batch indices fetched from your dataloader.*",
    ".*Checkpoint directory .* exists and is not empty.*",
    ".*Experiment logs directory .* exists and is not empty.*",
)


class LightningParser(HelpfulParser, LightningArgumentParser):
    """Lightning's parser with torchrank's errors."""

    def add_class_arguments(self, *args: Any, **kwargs: Any) -> list[str]:
        """Add a class's options; a path given where a path may stand stays a path."""
        added = super().add_class_arguments(*args, **kwargs)
        for action in self._actions:
            # jsonargparse would read the file and take its lines as the list of paths.
            if str in get_args(getattr(action, "_typehint", None)):
                action._enable_path = False  # type: ignore[attr-defined] # of jsonargparse's own actions
        return added


class SaveConfig(SaveConfigCallback):
    """Save the config of a training run beside its logs."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Save where there are logs and training."""
        if stage == "fit" and trainer.loggers:
            super().setup(trainer, pl_module, stage)


class TorchRankCLI(LightningCLI):
    """LightningCLI for one of its commands, with a model that a checkpoint alone describes where none is given.

    Args:
        words: the command and its options.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self.command = words[0]
        self.failures: list[Exception] = []
        self.made: list[tuple[type, dict[str, Any]]] = []
        super().__init__(
            model_class=pl.LightningModule,
            datamodule_class=pl.LightningDataModule,
            subclass_mode_model=True,
            subclass_mode_data=True,
            save_config_callback=SaveConfig,
            save_config_kwargs={"overwrite": True},
            seed_everything_default=0,
            parser_class=LightningParser,
            parser_kwargs={"prog": "torchrank"},
            auto_configure_optimizers=False,
            load_from_checkpoint_support=False,
            args=list(words),
        )

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse the words given to :func:`run`, whatever the process was called with."""
        self.config = parser.parse_args(args)
        chosen = self.config[self.command]
        check_trainer(chosen.trainer)
        check_options("", None, {name: chosen.get(name) for name in ("model", "data")})

    def _set_seed(self) -> None:
        try:
            super()._set_seed()
        except ValueError as error:
            raise TorchRankError(f"seed_everything: {error}") from error

    def _parse_ckpt_path(self) -> None:
        """Refuse a checkpoint that does not load safely; there are no hyper-parameters in it to be read here."""
        checkpoint = self.config[self.command].get("ckpt_path")
        if checkpoint not in (None, "last", "best", "hpc"):
            try:
                read_checkpoint(checkpoint)
            except DataError as error:
                raise DataError(f"ckpt_path: {error}") from error

    def add_core_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add trainer, model and data; only ``fit`` cannot do without a model."""
        parser.add_lightning_class_args(self.trainer_class, "trainer")
        parser.add_lightning_class_args(pl.LightningModule, "model", subclass_mode=True, required=self.command == "fit")
        parser.add_lightning_class_args(pl.LightningDataModule, "data", subclass_mode=True)
        if self.command != "fit":
            parser.set_defaults({"trainer.logger": False})

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add what Lightning's own commands lack."""
        if self.command != "fit":
            parser.add_argument(
                "--trust",
                nargs="+",
                type=str,
                default=[],
                help="packages, besides torchrank, whose classes a checkpoint may name",
            )
        if self.command == "predict":
            parser.add_argument(
                "--out",
                type=Path,
                default=Path("predictions"),
                help="folder for run.txt and scores.parquet, or labels.parquet of sequences",
            )
            parser.add_argument("--tag", type=str, default="torchrank", help="the run's name in run.txt")

    def instantiate_classes(self) -> None:
        """Build what the config names; an error of a constructor is raised as it was."""
        self.parser.add_instantiator(self._instantiate, class_type=object)
        try:
            super().instantiate_classes()
        except ValueError as error:
            # jsonargparse wraps what a constructor raised into the text of another error.
            if self.failures:
                raise self.failures[-1] from None
            raise TorchRankError(summary(str(error))) from error
        checkpoint = self._get(self.config, "ckpt_path")
        if self.model is None:
            if checkpoint is None:
                raise TorchRankError(f"{self.command} needs --ckpt_path, or a --config with a model")
            self.model = load(checkpoint, trust=self._get(self.config, "trust"))
        check_data(self.model, self.datamodule, self.command)

    def _instantiate(self, class_type: type, *args: Any, **kwargs: Any) -> Any:
        if is_theirs(class_type.__module__):
            self.made.append((class_type, kwargs))
        try:
            return class_type(*args, **kwargs)
        except Exception as error:
            told = self._blame(error)
            self.failures.append(told or error)
            if told is None:
                raise
            raise told from error

    def _blame(self, error: Exception, *, running: bool = False) -> TorchRankError | None:
        """Say which class of the config, with which options, an error of Lightning or torch comes from.

        None for another error, such as one of a scorer of the user's own: its traceback says more.
        """
        if isinstance(error, TorchRankError):
            return None
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        while frames and is_theirs(module_of(frames[-1])):
            owner = type(frames.pop().f_locals.get("self"))
            given = next((options for made, options in reversed(self.made) if made is owner), None)
            if given is not None:
                return TorchRankError(f"{spell(owner, given)} is refused: {one_line(error)}")
        alone = running and len(frames) == 1  # nobody's code but theirs, called by this class
        return TorchRankError(self._of_trainer(error)) if alone else None

    def _of_trainer(self, error: Exception) -> str:
        """Say that the trainer refuses an option, and which where its own text only shows the value."""
        text, options = one_line(error), self.config[self.command].trainer
        named = [name for name in vars(options) if re.search(rf"\b{name}\b", text)]
        words = {name: value for name, value in vars(options).items() if isinstance(value, str) and value in text}
        return f"trainer: {text}" + ("" if named or not words else f" ({spell(pl.Trainer, words)})")

    def _run_subcommand(self, subcommand: str) -> None:
        """Run; what Lightning or torch refuse only then, of what the config gave them, is the user's to mend."""
        try:
            super()._run_subcommand(subcommand)
        except Exception as error:
            if str(error).startswith("Error(s) in loading state_dict"):
                raise DataError(
                    f"ckpt_path: {self._get(self.config, 'ckpt_path')} holds the weights of another model than the"
                    " config's; give the config that a run leaves beside its checkpoints, or none to test or predict"
                ) from error
            told = self._blame(error, running=True)
            if told is None:
                raise
            raise told from error

    def instantiate_trainer(self, **kwargs: Any) -> pl.Trainer:
        """Build the trainer; what it refuses is the user's to mend."""
        try:
            trainer = super().instantiate_trainer(**kwargs)
        except (MisconfigurationException, TypeError, ValueError) as error:
            raise TorchRankError(self._of_trainer(error)) from error
        strategy = trainer.strategy
        plain = isinstance(strategy, SingleDeviceStrategy | DDPStrategy)  # others have files of their own
        if plain and type(strategy.checkpoint_io) is TorchCheckpointIO:
            strategy.checkpoint_io = WholeCheckpointIO()
        return trainer

    def _prepare_subcommand_kwargs(self, subcommand: str) -> dict[str, Any]:
        kwargs = super()._prepare_subcommand_kwargs(subcommand)
        if "weights_only" in kwargs:  # older releases of torch would unpickle anything
            kwargs["weights_only"] = True
        if self._get(self.config_init, "model") is None:  # the checkpoint was the model
            kwargs["ckpt_path"] = None
        return kwargs

    def before_predict(self) -> None:
        """Have the scores, or the labels of sequences, written."""
        out = self._get(self.config_init, "out")
        if isinstance(self.datamodule, SequenceDataModule):
            writer: pl.Callback = LabelWriter(out)
        else:
            writer = RunWriter(out, tag=self._get(self.config_init, "tag"))
        self.trainer.callbacks.append(writer)  # type: ignore[attr-defined] # Lightning's own list

    def predict(self, **kwargs: Any) -> None:
        """Score; the writer takes the scores."""
        self.trainer.predict(**{**kwargs, "return_predictions": False})
        files = "labels.parquet" if isinstance(self.datamodule, SequenceDataModule) else "run.txt and scores.parquet"
        print(f"wrote {self._get(self.config_init, 'out')}/{files}")

    def after_fit(self) -> None:
        """Say where the model is."""
        saved = getattr(self.trainer.checkpoint_callback, "best_model_path", "")
        if saved and self.trainer.is_global_zero:
            print(f"wrote {saved}")


def check_data(module: Any, data: Any, stage: str) -> None:
    """Read queries or sequences, and refuse a model made for another number of features.

    Lightning opens its log files before it sets up the data: what is wrong with the data must be said before that. The
    DataModule keeps what was read.

    Args:
        module: a LightningModule; one with a ``scorer`` or ``model`` that keeps ``num_features`` is checked.
        data: a DataModule.
        stage: ``"fit"``, ``"validate"``, ``"test"`` or ``"predict"``.

    Raises:
        DataError: the data cannot be read or is of another kind than the module's, the stage's part was not given, or
            the numbers of features differ.
    """
    if not isinstance(data, QueryDataModule | SequenceDataModule):
        return
    lists = isinstance(data, QueryDataModule)
    if isinstance(module, ChainModule if lists else ListwiseModule | PerceptronModule):
        names = "lists of documents" if lists else "labelled sequences"
        raise DataError(f"{type(data).__name__} holds {names}, which {type(module).__name__} cannot use")
    data.setup(stage)
    part = PARTS_OF_STAGES[stage][0]
    kind = "scorer" if lists else "model"
    found, expected = data.dataset(part).num_features, getattr(getattr(module, kind, None), "num_features", None)
    if expected is not None and found != expected:
        raise DataError(
            f"the {kind} was made for {expected} features, the {part} part has {found}; give the {kind}"
            f" num_features={found}, or read the data with num_features={expected}"
        )


def check_yaml(words: Sequence[str]) -> None:
    """Refuse config files that are not YAML, naming the file and the line.

    Args:
        words: of the command line; the files are those behind ``--config`` and ``-c``.

    Raises:
        DataError: a file that does not parse.
    """
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        path = Path(value if equals else following)
        if name in ("--config", "-c") and path.is_file():
            try:
                yaml.safe_load(path.read_text(encoding="utf-8"))
            except yaml.MarkedYAMLError as error:
                line = "" if error.problem_mark is None else f", line {error.problem_mark.line + 1}"
                raise DataError(f"{path}{line}: {error.problem}") from None


def settle_process() -> None:
    """Let configs name what lies in the working directory, and keep Lightning from telling what it itself does."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # the user's own scorers and losses, beside the config that names them
    end_with_launcher()
    for message in _NOISE:
        warnings.filterwarnings("ignore", message)
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    logging.getLogger("lightning_fabric").setLevel(logging.WARNING)


def run(words: Sequence[str]) -> None:
    """Run one of Lightning's commands.

    Args:
        words: the command (``fit``, ``validate``, ``test`` or ``predict``) and its options.

    Raises:
        TorchRankError: what the user gave cannot be used; the parser ends the process itself, with status 2, for what
            it cannot parse.
    """
    settle_process()
    check_yaml(words)
    try:
        TorchRankCLI(words)
    except (MisconfigurationException, OSError) as error:
        raise TorchRankError(str(error)) from error
