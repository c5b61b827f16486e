"""The linear chain as a model: a network scores labels at positions, a matrix scores labels after labels."""

from typing import Literal

import torch
from torch import Tensor, nn

from torchrank.errors import ShapeError, check_count, check_option, room_for
from torchrank.ops.chain import over_length, viterbi
from torchrank.ops.chain_scan import viterbi_scan

METHODS = ("loop", "scan")


class LinearChain(nn.Module):
    """Score label sequences by emissions and transitions, and find the best one exactly.

    Everything starts at 0: the emissions' weights and bias (unless you give a network) and the transitions.

    Args:
        num_features: d.
        num_labels: q.
        network: ``(B, T, d)`` features to ``(B, T, q)`` emissions; a linear map with bias when None.
        chained: False keeps the transitions at 0, so that every position is labelled by itself.
        start: learn a score of each label at the first position.
        normalize: ``"length"`` divides the transitions by the sequence's length; the loss must do the same.

    Raises:
        TorchRankError: fewer than one feature or label, or an unknown ``normalize``.

    Source:
        Shalev-Shwartz & Ben-David, "Understanding Machine Learning", 17.3.

    Example:
        >>> chain = LinearChain(3, 4)
        >>> chain(torch.ones(2, 5, 3)).shape, chain.transitions.shape
        (torch.Size([2, 5, 4]), torch.Size([4, 4]))
        >>> chain.decode(torch.ones(1, 2, 3))
        (tensor([[0, 0]]), tensor([0.], grad_fn=<SumBackward1>))
    """

    transitions: Tensor
    start_scores: Tensor | None

    def __init__(
        self,
        num_features: int,
        num_labels: int,
        *,
        network: nn.Module | None = None,
        chained: bool = True,
        start: bool = False,
        normalize: str | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("num_features", num_features), ("num_labels", num_labels)):
            check_count(name, value)
        if normalize is not None:
            check_option("normalize", normalize, ("length",))
        self.num_features = num_features
        self.num_labels = num_labels
        self.network = network
        self.chained = chained
        self.start = start
        self.normalize = normalize
        with room_for(num_features=num_features, num_labels=num_labels):
            self.linear = nn.Linear(num_features, num_labels) if network is None else None
            if self.linear is not None:
                nn.init.zeros_(self.linear.weight)
                nn.init.zeros_(self.linear.bias)
            if chained:
                self.transitions = nn.Parameter(torch.zeros(num_labels, num_labels))
            else:
                self.register_buffer("transitions", torch.zeros(num_labels, num_labels), persistent=False)
            self.start_scores = nn.Parameter(torch.zeros(num_labels)) if start else None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Score each label at each position.

        Args:
            x: ``(B, T, d)`` features.
            mask: ``(B, T)`` boolean; where it is False the network sees zeros, so that what is there, NaN included,
                reaches no weight's gradient. None when all positions are real.

        Returns:
            ``(B, T, q)`` emissions.

        Raises:
            ShapeError: features of another shape, or a network that returns another shape.
        """
        if x.ndim != 3 or x.shape[-1] != self.num_features:
            raise ShapeError(
                f"the features have shape {tuple(x.shape)}, this chain was made for (B, T, {self.num_features})"
            )
        if mask is not None:
            x = torch.where(mask[..., None], x, x.new_zeros(()))
        scorer = self.linear if self.network is None else self.network
        emissions: Tensor = scorer(x)  # type: ignore[misc] # one of the two is there
        if emissions.shape != (*x.shape[:2], self.num_labels):
            raise ShapeError(
                f"{type(scorer).__name__} returned emissions of shape {tuple(emissions.shape)} for features"
                f" {tuple(x.shape)}; one score a label is {(*x.shape[:2], self.num_labels)}"
            )
        return emissions

    def decode(
        self, x: Tensor, mask: Tensor | None = None, *, method: Literal["loop", "scan"] = "loop"
    ) -> tuple[Tensor, Tensor]:
        """Find each sequence's best labels.

        Args:
            x: ``(B, T, d)`` features.
            mask: ``(B, T)`` boolean, True on the first positions of each sequence, or None.
            method: ``"loop"`` over the positions, or ``"scan"``: faster for few sequences of thousands of positions,
                and exportable with a dynamic length.

        Returns:
            ``(B, T)`` int64 labels, 0 under the mask, and ``(B,)`` scores.

        Raises:
            ShapeError: features of another shape.
            DataError: as for :func:`torchrank.ops.viterbi`.
            TorchRankError: an unknown method.
        """
        check_option("method", method, METHODS)
        emissions = self(x, mask)
        transitions = over_length(self.transitions, emissions, mask, self.normalize)
        search = viterbi if method == "loop" else viterbi_scan
        return search(emissions, transitions, mask, start=self.start_scores)
