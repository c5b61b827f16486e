"""The mean of the weights at the start of each user: what the convergence theorem of SAROS is about."""

import copy

import torch
from torch import Tensor, nn


class StartAverage(nn.Module):
    """Sums of a scorer's parameters over user starts, kept so that a row costs nothing while it rests.

    Source: ω̄ of arXiv 1902.08495, Theorem 1.
    """

    def __init__(self, scorer: nn.Module) -> None:
        super().__init__()
        self.scorer = copy.deepcopy(scorer)  # the weights that move; the module's own scorer holds their mean
        self.register_buffer("starts", torch.zeros((), dtype=torch.int64))
        for number, parameter in enumerate(self.scorer.parameters()):
            self.register_buffer(f"sum_{number}", torch.zeros_like(parameter, dtype=torch.float64))
            self.register_buffer(f"counted_{number}", torch.zeros(len(parameter), dtype=torch.int64))

    starts: Tensor

    def sums(self) -> list[tuple[Tensor, Tensor]]:
        """Sum of each parameter over the starts, and ``(rows,)`` how many starts each row of it holds."""
        numbers = range(len(list(self.scorer.parameters())))
        return [(getattr(self, f"sum_{n}"), getattr(self, f"counted_{n}")) for n in numbers]

    @torch.no_grad()
    def count(self, starting: int) -> None:
        """Add the present weights once for each of ``starting`` users who start from them."""
        if starting == 0:
            return
        for parameter, (total, counted) in zip(self.scorer.parameters(), self.sums(), strict=True):
            total.add_(parameter, alpha=starting)
            counted.add_(starting)
        self.starts += starting

    @torch.no_grad()
    def write_mean(self, scorer: nn.Module) -> None:
        """Write the mean into a scorer of the same kind; the present weights where nobody started yet."""
        for own, parameter, (total, counted) in zip(
            self.scorer.parameters(), scorer.parameters(), self.sums(), strict=True
        ):
            resting = (self.starts - counted).view(-1, *[1] * (own.ndim - 1))
            mean = (total + resting * own.double()) / self.starts
            parameter.copy_(torch.where(self.starts > 0, mean.to(own.dtype), own))
