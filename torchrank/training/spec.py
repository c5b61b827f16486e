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
from torch import nn

from torchrank.errors import TorchRankError

_PLAIN = (bool, int, float, str, type(None))
# torch's own containers take their children as arguments; its layers take where and in what dtype to make weights.
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
_FACTORY = ("device", "dtype")


def describe(thing: Any) -> Any:
    """Turn an object into plain data that :func:`build` turns back.

    Args:
        thing: a plain value; a list, tuple or dict of such; a tensor (its values); a class or function of a module (its
            path); a ``functools.partial`` of one; one of torch's layers or containers; or an ``nn.Module`` or other
            object that keeps each constructor argument as an attribute of the same name.

    Returns:
        numbers, strings, None, lists and dicts only.

    Raises:
        TorchRankError: the object keeps no attribute of a constructor parameter's name, or is local to a function.

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
    if isinstance(thing, nn.Parameter):
        return True  # torch's layers keep a weight under the name of the flag that asked for it, as in Linear.bias
    if isinstance(thing, torch.Tensor):
        return thing.detach().cpu().tolist()
    if isinstance(thing, functools.partial):
        return _partial(thing)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return {"path": _path(thing)}
    if type(thing) in _CONTAINERS:
        children = dict(thing.items()) if isinstance(thing, nn.ModuleDict) else list(thing)
        return {"container": _path(type(thing)), "children": describe(children)}
    return {"class_path": _path(type(thing)), "init_args": _arguments(thing)}


def _path(thing: Any) -> str:
    path = f"{thing.__module__}.{thing.__qualname__}"
    if "<" in path:
        raise TorchRankError(f"{path} is local; define it at the top of a module so that a checkpoint can name it")
    return path


def _partial(thing: functools.partial[Any]) -> dict[str, Any]:
    function, arguments = thing.func, thing.args
    # The command line's parser hands over partial(its own instantiator, class, **options).
    maker = function if inspect.isroutine(function) else type(function)
    if arguments and maker.__module__.startswith("jsonargparse"):
        function, arguments = arguments[0], arguments[1:]
    if arguments:
        raise TorchRankError(f"give the options of partial({_path(function)}, …) by name so that a checkpoint can")
    return {"partial": _path(function), "init_args": describe(dict(thing.keywords))}


def _arguments(thing: Any) -> dict[str, Any]:
    cls = type(thing)
    found = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if name in _FACTORY and cls.__module__.startswith("torch.nn."):
            continue
        value = getattr(thing, name, thing)
        if value is thing or inspect.ismethod(value):
            raise TorchRankError(
                f"{cls.__name__} does not keep its constructor argument {name!r}; write self.{name} = {name} in"
                " __init__ so that a checkpoint can rebuild it"
            )
        found[name] = describe(value)
    return found


def build(spec: Any, *, trust: Sequence[str] = ()) -> Any:
    """Turn the result of :func:`describe` back into the object.

    Args:
        spec: what :func:`describe` returned.
        trust: packages, besides torchrank and torch, whose modules may be built.

    Returns:
        the object; its weights are the constructor's own.

    Raises:
        TorchRankError: the class lies outside the trusted packages, is no ``nn.Module`` or does not exist, or its
            constructor refuses the arguments.

    Example:
        >>> build({"class_path": "torch.nn.modules.activation.ReLU", "init_args": {"inplace": True}})
        ReLU(inplace=True)
    """
    if isinstance(spec, list):
        return [build(x, trust=trust) for x in spec]
    if not isinstance(spec, dict):
        return spec
    if set(spec) == {"path"} and isinstance(spec["path"], str):
        return _find(spec["path"], trust)
    if set(spec) == {"partial", "init_args"}:
        return functools.partial(_find(spec["partial"], trust), **_build_each(spec["init_args"], trust))
    if set(spec) == {"container", "children"}:
        children = build(spec["children"], trust=trust)
        several = spec["container"] == "torch.nn.modules.container.Sequential"
        return _call(spec["container"], children if several else [children], {}, trust)
    if set(spec) == {"class_path", "init_args"}:
        return _call(spec["class_path"], [], _build_each(spec["init_args"], trust), trust)
    return _build_each(spec, trust)


def _build_each(named: dict[str, Any], trust: Sequence[str]) -> dict[str, Any]:
    return {name: build(value, trust=trust) for name, value in named.items()}


def _call(path: Any, positional: list[Any], named: dict[str, Any], trust: Sequence[str]) -> Any:
    cls = _find(path, trust)
    if not (inspect.isclass(cls) and issubclass(cls, nn.Module)):
        raise TorchRankError(f"{path} is not an nn.Module; this checkpoint does not describe a model")
    try:
        return cls(*positional, **named)
    except TypeError as error:
        raise TorchRankError(f"{path} does not take the arguments this checkpoint holds: {error}") from error


def _find(path: Any, trust: Sequence[str]) -> Any:
    parts = str(path).split(".")
    trusted = {"torchrank", *trust}
    if not _is_trusted(str(path), trusted):
        raise TorchRankError(
            f"the checkpoint names {path}, outside torchrank and torch.nn; if you know where the file is from, load it"
            f" with trust=[{parts[0]!r}]"
        )
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            found = getattr(found, name, None)
        # A module's attributes reach whatever it imports: what was found must itself come from a trusted place.
        if found is not None and _is_trusted(f"{getattr(found, '__module__', None)}.", trusted):
            return found
    raise TorchRankError(f"there is no {path}; the class was renamed, or its package is not installed")


def _is_trusted(path: str, packages: set[str]) -> bool:
    return path.split(".")[0] in packages or path.startswith(("torch.nn.", "torch.optim."))
