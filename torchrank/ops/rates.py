"""Smoothed shares of positive feedback, and their log-odds."""

from torch import Tensor


def smoothed_rate(positives: Tensor, shown: Tensor, *, strength: float = 5.0) -> Tensor:
    """Share of positive feedback of each item, drawn towards the overall share where little is known.

    Args:
        positives: ``(I,)`` how often an item was preferred.
        shown: ``(I,)`` how often it was shown.
        strength: how many showings at the overall share every item starts with.

    Returns:
        ``(I,)`` float64, (positives + strength · mean) / (shown + strength); the mean itself for an item never shown.

    Example:
        >>> import torch
        >>> smoothed_rate(torch.tensor([1, 1, 0]), torch.tensor([1, 3, 0]), strength=2.0)
        tensor([0.6667, 0.4000, 0.5000], dtype=torch.float64)
    """
    mean = positives.sum() / shown.sum().clamp(min=1)
    return (positives.double() + strength * mean.double()) / (shown.double() + strength)


def smoothed_log_odds(positives: Tensor, shown: Tensor, *, strength: float = 5.0) -> Tensor:
    """Log-odds of each item's smoothed share of positive feedback: where an item's offset starts.

    Args:
        positives: ``(I,)`` how often an item was preferred.
        shown: ``(I,)`` how often it was shown.
        strength: how many showings at the overall share every item starts with.

    Returns:
        ``(I,)`` float64, log(rate / (1 − rate)); within ±log(N + 1) for N showings in all, also where the feedback is
        all of one kind.

    Example:
        >>> import torch
        >>> smoothed_log_odds(torch.tensor([1, 1, 0]), torch.tensor([1, 3, 0]), strength=2.0)
        tensor([ 0.6931, -0.4055,  0.0000], dtype=torch.float64)
    """
    least = 1 / (shown.sum().double() + 2)
    return smoothed_rate(positives, shown, strength=strength).clamp(least, 1 - least).logit()
