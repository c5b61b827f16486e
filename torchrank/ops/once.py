"""Gradients that were computed by hand and have no derivative of their own."""

from typing import Any

import torch
from torch import Tensor

from torchrank.errors import TorchRankError


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gradient: Tensor, *inputs: Tensor | None) -> Tensor:
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[None, ...]:
        raise TorchRankError("this can be differentiated once; take no gradient of its gradient")


def once_only(gradient: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return a gradient that refuses to be differentiated in what it was computed from.

    Without this a gradient taken with ``create_graph=True`` would pass for a constant, and what is built on it, such as
    a gradient penalty, would silently have no gradient.

    Args:
        gradient: any tensor.
        inputs: what it depends on.

    Returns:
        the gradient; where gradients are not recorded, as it is.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> once_only(torch.zeros(2), x).sum().backward()
        Traceback (most recent call last):
        torchrank.errors.TorchRankError: this can be differentiated once; take no gradient of its gradient
    """
    if not torch.is_grad_enabled():
        return gradient
    return _Once.apply(gradient, *inputs)  # type: ignore[no-any-return, no-untyped-call]  # torch ships it untyped
