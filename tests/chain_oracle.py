"""Linear chains by enumeration of every label sequence, and hypothesis strategies that draw small chains."""

import itertools
from typing import NamedTuple

import torch
from hypothesis import strategies as st


class Chains(NamedTuple):
    emissions: torch.Tensor
    transitions: torch.Tensor
    mask: torch.Tensor
    start: torch.Tensor | None
    labels: torch.Tensor

    @property
    def lengths(self):
        return self.mask.sum(1).tolist()

    def dirty(self):
        """The same chains with NaN and nonsense under the mask."""
        transitions = self.transitions
        if transitions.ndim == 4:
            transitions = transitions.masked_fill(~self.mask[:, 1:, None, None], float("nan"))
        emissions = self.emissions.masked_fill(~self.mask[..., None], float("nan"))
        return self._replace(
            emissions=emissions, transitions=transitions, labels=self.labels.masked_fill(~self.mask, -100)
        )


def paths(q, length):
    return torch.tensor(list(itertools.product(range(q), repeat=length)))


def path_scores(chains, row):
    """Every label sequence of one chain ``(q^n, n)`` and its score, differentiable."""
    n, q = chains.lengths[row], chains.emissions.shape[-1]
    every = paths(q, n)
    total = sum(chains.emissions[row, t, every[:, t]] for t in range(n))
    for t in range(1, n):
        step = chains.transitions if chains.transitions.ndim == 2 else chains.transitions[row, t - 1]
        total = total + step[every[:, t], every[:, t - 1]]
    if chains.start is not None:
        total = total + chains.start[every[:, 0]]
    return every, total


def best_path(chains, row):
    """The best sequence by the tie rule: smallest last label, then the one before it, and so on."""
    every, total = path_scores(chains, row)
    return list(min((-value, path[::-1]) for value, path in zip(total.tolist(), every.tolist(), strict=True))[1][::-1])


def make(seed, *, lengths, q, per_position=False, start=True, whole=False, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        if whole:
            return torch.randint(-1, 2, shape, generator=generator).to(dtype)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    batch, longest = len(lengths), max(lengths, default=3)
    return Chains(
        emissions=draw(batch, longest, q),
        transitions=draw(batch, longest - 1, q, q) if per_position else draw(q, q),
        mask=torch.arange(longest) < torch.tensor(lengths, dtype=torch.int64)[:, None],
        start=draw(q) if start else None,
        labels=torch.randint(0, q, (batch, longest), generator=generator),
    )


@st.composite
def chains(draw, *, whole=False):
    return make(
        draw(st.integers(0, 2**31)),
        lengths=draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)),
        q=draw(st.integers(1, 4)),
        per_position=draw(st.booleans()),
        start=draw(st.booleans()),
        whole=whole,
    )
