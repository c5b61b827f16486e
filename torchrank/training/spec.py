"""What a checkpoint holds in place of module instances: class paths and plain arguments.

An object is described by its class path and, for every parameter of its constructor, the attribute of that name: the
convention of scikit-learn's ``get_params``. Checkpoints so written load with ``weights_only=True``.
"""

import functools
import inspect
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import torch

from torchrank.errors import TorchRankError

_PLAIN = (bool, int, float, str, type(None))


def describe(thing: Any) -> Any:
    """Turn an object into plain data that :func:`build` turns back.

    Args:
        thing: a plain value; a list, tuple or dict of such; a class or function of a module (its path); a
            ``functools.partial`` of one; or an ``nn.Module`` or other object that keeps each constructor argument as an
            attribute of the same name.

    Returns:
        numbers, strings, None, lists and dicts only.

    Raises:
        TorchRankError: the object keeps no attribute of a constructor parameter's name.

    Example:
        >>> describe(torch.nn.ReLU(inplace=True))
        {'class_path': 'torch.nn.modules.activation.ReLU', 'init_args': {'inplace': True}}
    """
    if isinstance(thing, _PLAIN):
        return thing
    if isinstance(thing, list | tuple):
        return [describe(x) for x in thing]
    if isinstance(thing, dict):
        return {str(k): describe(v) for k, v in thing.items()}
    if isinstance(thing, torch.Tensor):
        return thing.detach().cpu().tolist()
    if isinstance(thing, functools.partial):
        return {"partial": _path(thing.func), "init_args": describe(dict(thing.keywords))}
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return {"path": _path(thing)}
    return {"class_path": _path(type(thing)), "init_args": _arguments(thing)}


def _path(thing: Any) -> str:
    path = f"{thing.__module__}.{thing.__qualname__}"
    if "<" in path:
        raise TorchRankError(f"{path} is local; define it at the top of a module so that a checkpoint can name it")
    return path


def _arguments(thing: Any) -> dict[str, Any]:
    found = {}
    for name, parameter in inspect.signature(type(thing)).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if not hasattr(thing, name):
            raise TorchRankError(
                f"{type(thing).__name__} does not keep its constructor argument {name!r}; write self.{name} = {name} in"
                " __init__ so that a checkpoint can rebuild it"
            )
        found[name] = describe(getattr(thing, name))
    return found


def build(spec: Any, *, trust: Sequence[str] = ()) -> Any:
    """Turn the result of :func:`describe` back into the object.

    Args:
        spec: what :func:`describe` returned.
        trust: packages, besides torchrank and torch, whose modules may be built.

    Returns:
        the object; its weights are the constructor's own.

    Raises:
        TorchRankError: the class lies outside the trusted packages, is no ``nn.Module`` or does not exist.

    Example:
        >>> build({"class_path": "torch.nn.modules.activation.ReLU", "init_args": {"inplace": True}})
        ReLU(inplace=True)
    """
    if isinstance(spec, list):
        return [build(x, trust=trust) for x in spec]
    if not isinstance(spec, dict):
        return spec
    if set(spec) == {"path"}:
        return _find(spec["path"], trust)
    if set(spec) == {"partial", "init_args"}:
        return functools.partial(_find(spec["partial"], trust), **build(spec["init_args"], trust=trust))
    if set(spec) == {"class_path", "init_args"}:
        cls = _find(spec["class_path"], trust)
        if not (inspect.isclass(cls) and issubclass(cls, torch.nn.Module)):
            raise TorchRankError(f"{spec['class_path']} is not an nn.Module; this checkpoint does not describe a model")
        return cls(**{k: build(v, trust=trust) for k, v in spec["init_args"].items()})
    return {k: build(v, trust=trust) for k, v in spec.items()}


def _find(path: str, trust: Sequence[str]) -> Any:
    package = path.split(".")[0]
    if package not in {"torchrank", *trust} and not path.startswith(("torch.nn.", "torch.optim.")):
        raise TorchRankError(
            f"the checkpoint names {path}, outside torchrank and torch.nn; if you know where the file is from, load it"
            f" with trust=[{package!r}]"
        )
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name, None)
        if found is not None:
            return found
    raise TorchRankError(f"there is no {path}; the class was renamed, or its package is not installed")
