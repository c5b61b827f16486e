"""Trained models as graphs that run without torchrank: ``torch.export`` programs and ONNX files."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from torchrank.data.files import whole_file
from torchrank.errors import TorchRankError
from torchrank.models.serving import Served, serve

#: how far an exported graph's outputs may be from the model's, as part of 1 + the largest of them
TOLERANCE = 1e-5
#: what one ONNX file can hold
_LIMIT = 2**31 - 2**20
#: the operators' version that torch's exporter writes by itself; later runtimes read it too
OPSET = 18


class Exported(NamedTuple):
    """What an exported file takes and gives.

    Attributes:
        inputs: name and type of each input, sizes that may differ by name.
        outputs: the same of each output.
        difference: largest difference between its outputs and the model's, on inputs of other sizes than it was
            exported with.

    Example:
        >>> Exported(["users int64 (queries)"], ["items int64 (queries, 10)"], 0.0).outputs
        ['items int64 (queries, 10)']
    """

    inputs: list[str]
    outputs: list[str]
    difference: float


def export_program(
    model: nn.Module, *, k: int = 10, by: str = "id", candidates: Tensor | None = None
) -> torch.export.ExportedProgram:
    """Export a model in its serving form by ``torch.export``, sizes left open.

    Args:
        model: a model, or a LightningModule of torchrank, whose model it takes.
        k: see :func:`torchrank.models.serve`.
        by: see :func:`torchrank.models.serve`.
        candidates: see :func:`torchrank.models.serve`.

    Returns:
        the program; ``program.module()`` is called as the serving form is.

    Raises:
        TorchRankError: a model without a serving form, or one that ``torch.export`` cannot trace.

    Example:
        >>> from torchrank.models import LinearScorer
        >>> scorer = export_program(LinearScorer(3)).module()
        >>> scorer(torch.ones(7, 4, 3), torch.ones(7, 4, dtype=torch.bool)).shape
        torch.Size([7, 4])
    """
    return _export(serve(core_of(model), k=k, by=by, candidates=candidates))


def export_model(
    model: nn.Module, path: str | Path, *, k: int = 10, by: str = "id", candidates: Tensor | None = None
) -> Exported:
    """Write a model in its serving form to a file, once the file is seen to give the model's own outputs.

    Args:
        model: a model, or a LightningModule of torchrank, whose model it takes.
        path: ``NAME.onnx`` for ONNX, ``NAME.pt2`` for what ``torch.export.load`` reads. It appears whole or not at all.
        k: see :func:`torchrank.models.serve`.
        by: see :func:`torchrank.models.serve`.
        candidates: see :func:`torchrank.models.serve`.

    Returns:
        what the file takes and gives.

    Raises:
        TorchRankError: another ending, a model that cannot be exported, missing packages (``torchrank[export]``), or
            outputs that differ from the model's by more than 1e-5 (relative to 1 + the largest).

    Example:
        >>> import tempfile
        >>> from torchrank.models import LinearScorer
        >>> done = export_model(LinearScorer(3), Path(tempfile.mkdtemp()) / "linear.pt2")
        >>> done.inputs
        ['features float32 (lists, documents, 3)', 'mask bool (lists, documents)']
    """
    path = Path(path)
    check_ending(path)
    served = serve(core_of(model), k=k, by=by, candidates=candidates)
    size = sum(t.numel() * t.element_size() for t in (*served.module.parameters(), *served.module.buffers()))
    if path.suffix == ".onnx" and size > _LIMIT:
        raise TorchRankError(f"the model's {size / 2**30:.1f} GiB do not fit one ONNX file of 2 GiB; write a .pt2")
    program = _export(served)
    with torch.no_grad():
        wanted = _tuple(served.module(*served.probe.values()))
    with whole_file(path) as place:
        if path.suffix == ".pt2":
            torch.export.save(program, place)
        else:
            _write_onnx(program, served, place)
        try:
            got = _run(place, served)
        except Exception as error:
            raise _refusal(served, error) from error
        difference = _compare(served, got, wanted)
    return Exported(
        [_say(name, x, served.axes[name]) for name, x in served.probe.items()],
        [_say(name, x, axes) for (name, axes), x in zip(served.outputs.items(), wanted, strict=True)],
        difference,
    )


def core_of(model: nn.Module) -> nn.Module:
    """Return the model inside a training module, its ``scorer``, ``curve`` or ``chain``; another module is its own.

    Raises:
        TorchRankError: a LightningModule that has no model yet, or none that is known by name.
    """
    trains = isinstance(model, pl.LightningModule)
    if not trains and hasattr(model, "num_features"):
        return model
    for name in ("scorer", "curve", "chain"):
        core = getattr(model, name, None)
        if isinstance(core, nn.Module):
            return core
    if trains:
        raise TorchRankError(
            f"{type(model).__name__} holds no model to export: no scorer, curve or chain, or one not trained yet"
        )
    return model


def check_ending(path: Path) -> None:
    """Refuse a file that is neither ONNX nor a program of torch.export, and ONNX where its packages are missing.

    Raises:
        TorchRankError: one of these.
    """
    if path.suffix not in (".onnx", ".pt2"):
        raise TorchRankError(f"{path} ends in {path.suffix or 'nothing'}; name it .onnx, or .pt2 for torch.export")
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    if path.suffix == ".onnx" and missing:
        raise TorchRankError(f"ONNX needs {', '.join(missing)}: pip install 'torchrank[export]'")


def _export(served: Served) -> torch.export.ExportedProgram:
    # What the sizes may be is for the tracer to find; that none was fixed shows when the probe, of other sizes, is run.
    shapes = tuple(dict.fromkeys(axes, torch.export.Dim.AUTO) for axes in served.axes.values())
    try:
        with torch.no_grad(), _quiet():
            return torch.export.export(served.module, tuple(served.inputs.values()), dynamic_shapes=shapes)
    except Exception as error:
        raise _refusal(served, error) from error


def _write_onnx(program: torch.export.ExportedProgram, served: Served, path: Path) -> None:
    names: dict[str, Any] = {"input_names": list(served.inputs), "output_names": list(served.outputs)}
    try:
        with torch.no_grad(), _quiet():
            made = torch.onnx.export(program, dynamo=True, verbose=False, opset_version=OPSET, **names)
            assert made is not None  # noqa: S101 # dynamo=True returns the program; this tells the checker
            _name_sizes(made.model.graph.inputs, served.axes)
            _name_sizes(made.model.graph.outputs, served.outputs)
            made.save(path, external_data=False)
    except Exception as error:
        raise _refusal(served, error) from error


def _name_sizes(values: Any, axes_of: dict[str, dict[int, str]]) -> None:
    for value in values:
        for axis, name in axes_of[value.name].items():
            value.shape[axis] = name


def _refusal(served: Served, error: Exception) -> TorchRankError:
    reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return TorchRankError(
        f"{type(served.module).__name__} cannot be exported: {reason}; its forward may hold tensor operations alone, no"
        " branch on a value"
    )


def _run(path: Path, served: Served) -> tuple[Tensor, ...]:
    """Run what was written on the probe."""
    if path.suffix == ".pt2":
        return _tuple(torch.export.load(path).module()(*served.probe.values()))
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    known = {x.name for x in session.get_inputs()}
    given = {name: x.detach().cpu().numpy() for name, x in served.probe.items() if name in known}
    return tuple(torch.from_numpy(x) for x in session.run(list(served.outputs), given))


def _compare(served: Served, got: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> float:
    worst = 0.0
    for name, ours, theirs in zip(served.outputs, wanted, got, strict=True):
        if name == "items":
            continue  # equal scores may come in any order: the scores decide
        ours, theirs = ours.detach().cpu(), theirs.detach().cpu()
        if "mask" in served.probe and ours.shape == served.probe["mask"].shape:
            ours, theirs = (torch.where(served.probe["mask"].cpu(), x, 0) for x in (ours, theirs))
        difference = float((ours.double() - theirs.double()).abs().max())
        if not difference <= TOLERANCE * (1 + float(ours.double().abs().max())) or ours.dtype != theirs.dtype:
            raise TorchRankError(
                f"the exported {name} differ from the model's by {difference:.3g}; nothing was written"
            )
        worst = max(worst, difference)
    return worst


def _say(name: str, value: Tensor, axes: dict[int, str]) -> str:
    """Name, type and sizes of an input or output."""
    sizes = ", ".join(axes.get(axis, str(n)) for axis, n in enumerate(value.shape))
    return f"{name} {str(value.dtype).removeprefix('torch.')} ({sizes})"


def _tuple(outputs: Any) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporters' remarks on their own insides from the user."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "onnxscript")]
    levels = [logger.level for logger in loggers]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for logger in loggers:
                logger.setLevel(logging.ERROR)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
