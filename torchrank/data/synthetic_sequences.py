"""Seeded label sequences whose best linear chain is known."""

from typing import NamedTuple

import torch
from torch import Tensor

from torchrank.data.sequences import SequenceDataset
from torchrank.errors import check_count, check_number, check_seed


class SyntheticSequences(NamedTuple):
    """Synthetic sequences and the chain that explains them best.

    The emissions of the best chain are ``features @ weights + bias``.

    Attributes:
        dataset: the sequences.
        weights: ``(d, q)``.
        bias: ``(q,)``.
        transitions: ``(q, q)`` indexed [to, from].
        start: ``(q,)``.

    Example:
        >>> made = make_sequences(10)
        >>> (made.dataset.features @ made.weights + made.bias).shape[1] == made.dataset.num_labels
        True
    """

    dataset: SequenceDataset
    weights: Tensor
    bias: Tensor
    transitions: Tensor
    start: Tensor

    def __repr__(self) -> str:
        return f"SyntheticSequences({self.dataset!r})"


def make_sequences(
    num_sequences: int = 200,
    *,
    num_features: int = 8,
    num_labels: int = 6,
    length: tuple[int, int] = (3, 12),
    noise: float = 1.0,
    coupling: float = 2.0,
    seed: int = 0,
) -> SyntheticSequences:
    """Make sequences from a hidden Markov chain with Gaussian features, whose best model is a linear chain.

    Labels follow a Markov chain. The features of a position are its label's mean, a random vector of length 1, plus
    Gaussian noise. Up to a constant, the log-probability of labels and features together is then a sum of emissions
    ``x·μ_y/σ² − ‖μ_y‖²/2σ²`` and log transition probabilities. So the chain that is returned is the true model:
    decoding by it has the least probability of a wrong label anywhere in the sequence, and the labels of the largest
    marginals have the least expected Hamming cost, over all ways of labelling.

    Args:
        num_sequences: S.
        num_features: d.
        num_labels: q.
        length: shortest and longest sequence; lengths are uniform between them.
        noise: σ, the standard deviation of each feature's noise.
        coupling: how much a label says about the next: the standard deviation of the transition scores before they are
            normalised. At 0 labels are independent and transitions help nothing.
        seed: of everything random.

    Returns:
        the dataset and the best chain.

    Raises:
        TorchRankError: an option out of its range.

    Example:
        >>> from torchrank.ops import viterbi
        >>> made = make_sequences(100, noise=0.1)
        >>> first = made.dataset[0]
        >>> emissions = first.features @ made.weights + made.bias
        >>> labels, _ = viterbi(emissions[None], made.transitions, start=made.start)
        >>> bool((labels[0] == first.labels).all())
        True
    """
    for name, value, least in (
        ("num_sequences", num_sequences, 1),
        ("num_features", num_features, 1),
        ("num_labels", num_labels, 2),
        ("length[0]", length[0], 1),
        ("length[1]", length[1], length[0]),
    ):
        check_count(name, value, least=least)
    check_number("noise", noise, above=0)
    check_seed(seed)
    check_number("coupling", coupling, least=0)
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(num_labels, num_features, generator=generator, dtype=torch.float64)
    means /= means.norm(dim=1, keepdim=True)
    scores = coupling * torch.randn(num_labels + 1, num_labels, generator=generator, dtype=torch.float64)
    start, following = scores.log_softmax(1).tensor_split([1])  # rows: from; columns: to
    lengths = torch.randint(length[0], length[1] + 1, (num_sequences,), generator=generator)
    paths = torch.empty(num_sequences, length[1], dtype=torch.int64)
    chances = start.exp().expand(num_sequences, -1)
    for t in range(length[1]):
        paths[:, t] = torch.multinomial(chances, 1, generator=generator)[:, 0]
        chances = following[paths[:, t]].exp()
    labels = paths[torch.arange(length[1]) < lengths[:, None]]
    around = torch.randn(len(labels), num_features, generator=generator, dtype=torch.float64)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    features = (means[labels] + noise * around).float()
    return SyntheticSequences(
        SequenceDataset(features, labels, offsets, num_labels=num_labels),
        weights=(means.T / noise**2).float(),
        bias=(-means.square().sum(1) / (2 * noise**2)).float(),
        transitions=following.T.float().contiguous(),
        start=start[0].float(),
    )
