"""Expectations over the order of documents with equal scores, every order being equally likely.

Take a tie of n documents, m of them relevant, behind a documents of which b are relevant. Then the j-th document of
the tie (j = 0, 1, …) is relevant with probability m/n; given that it is, (m − 1)/(n − 1) · j others are expected above
it in the tie; and if none of the first j is relevant, it is with probability m/(n − j). These three numbers settle
every measure but ERR, in the time of the sort.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from torchrank.metrics._lists import Lists


@dataclass(frozen=True, slots=True)
class TieGroups:
    """The ties of N ranked lists, told for every rank.

    Attributes:
        group: ``(N, L)`` int64 number of the tie that a rank belongs to, from 0.
        start: ``(N, L)`` documents ranked before the tie (a).
        size: ``(N, L)`` its documents (n).
        relevant: ``(N, L)`` its relevant documents (m).
        before: ``(N, L)`` relevant documents ranked before it (b).
        place: ``(N, L)`` the rank's place inside the tie, from 0 (j).
    """

    group: Tensor
    start: Tensor
    size: Tensor
    relevant: Tensor
    before: Tensor
    place: Tensor


def tie_groups(lists: Lists) -> TieGroups:
    """Find the ties; all counts in the dtype of the relevance."""
    codes = lists.codes()
    new = torch.ones_like(codes)
    new[..., 1:] = codes[..., 1:] != codes[..., :-1]
    group = new.cumsum(-1) - 1
    hits = lists.hits()
    size = torch.zeros_like(hits).scatter_add_(-1, group, torch.ones_like(hits))
    relevant = torch.zeros_like(hits).scatter_add_(-1, group, hits)
    start = (size.cumsum(-1) - size).gather(-1, group)
    return TieGroups(
        group=group,
        start=start,
        size=size.gather(-1, group),
        relevant=relevant.gather(-1, group),
        before=(relevant.cumsum(-1) - relevant).gather(-1, group),
        place=torch.arange(lists.length, dtype=hits.dtype, device=hits.device) - start,
    )


def tie_means(values: Tensor, ties: TieGroups) -> Tensor:
    """Replace each document's value by the mean of its tie: what stands at its rank on average."""
    total = torch.zeros_like(values).scatter_add_(-1, ties.group, values)
    return total.gather(-1, ties.group) / ties.size


def expected_hits(lists: Lists) -> Tensor:
    """``(N, L)`` the probability that the document of a rank is relevant; 0 or 1 where ties are ordered."""
    if not lists.mean:
        return lists.hits()
    ties = tie_groups(lists)
    return ties.relevant / ties.size


def first_hit_hazards(lists: Lists) -> Tensor:
    """``(N, L)`` the probability that the document of a rank is relevant when none above it is."""
    if not lists.mean:
        return lists.hits()
    ties = tie_groups(lists)
    return (ties.relevant / (ties.size - ties.place)).clamp(max=1)
