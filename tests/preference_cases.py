"""Small logs, scorers and the slow reference of the SAROS and BPR steps."""

import copy

import numpy as np
import torch
import torch.nn.functional as F

from torchrank.models import Factorization, FeedbackFactorization
from torchrank.ops.blocks import find_blocks

USERS, ITEMS, DIM = 9, 12, 5
RULES = ["run", "single", "eager", "positive"]


def log_arrays(seed=0, *, rows=110, repeats=True):
    """Users (the last has no row), items, preferred and offsets, by user; a user may be shown an item twice."""
    generator = np.random.default_rng(seed)
    users = np.sort(generator.integers(USERS - 1, size=rows)).astype(np.int32)
    items = generator.integers(ITEMS, size=rows).astype(np.int32)
    if not repeats:
        keys = np.unique(users.astype(np.int64) * ITEMS + items)
        users, items = (keys // ITEMS).astype(np.int32), (keys % ITEMS).astype(np.int32)
        for user in range(USERS):
            items[users == user] = generator.permutation(items[users == user])
    preferred = generator.random(len(users)) < 0.5
    offsets = np.searchsorted(users, np.arange(USERS + 1)).astype(np.int64)
    return users, items, preferred, offsets


def blocks_of(preferred, offsets, rule):
    """Starts of each user's blocks, and the blocks' slices."""
    counts, slices = find_blocks(preferred, offsets, rule)
    return np.append(0, np.cumsum(counts)), slices


def factorization(seed=0, *, item_bias=True, init="normal"):
    torch.manual_seed(seed)
    model = Factorization(USERS, ITEMS, DIM, init=init, item_bias=item_bias)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def feedback(users, items, preferred, seed=0, *, item_bias=True):
    torch.manual_seed(seed)
    model = FeedbackFactorization.from_log_arrays(
        users, items, preferred, num_users=USERS, num_items=ITEMS, dim=DIM, item_bias=item_bias
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return model


def arrays(model):
    """Numpy views of a model's tables: what a user is described by, item vectors, offsets (1-d, empty for none)."""
    first = model.user_vectors if isinstance(model, Factorization) else model.feedback_vectors
    offsets = torch.zeros(0) if model.item_offsets is None else model.item_offsets.detach().view(-1)
    return first.detach().numpy(), model.item_vectors.detach().numpy(), offsets.numpy()


def slow_saros(model, order, block_starts, slices, items, *, eta, mu, momentum=0.0, forget=False):
    """One autograd step a block; returns the model, the summed pair losses, and the weights at each user's start."""
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=eta, momentum=momentum)
    total, starts = 0.0, []
    for user in order:
        if block_starts[user] == block_starts[user + 1]:
            continue
        starts.append({k: v.detach().clone() for k, v in model.named_parameters()})
        for block in range(block_starts[user], block_starts[user + 1]):
            a, b, c, d = (int(s[block]) for s in slices)
            chosen, rest = (torch.from_numpy(items[x:y]).long() for x, y in ((a, b), (c, d)))
            own = torch.full_like
            liked, other = model(own(chosen, int(user)), chosen), model(own(rest, int(user)), rest)
            pairs = F.softplus(other[None, :] - liked[:, None])
            by_user, by_liked = model.squared_norms(own(chosen, int(user)), chosen)
            _, by_other = model.squared_norms(own(rest, int(user)), rest)
            optimizer.zero_grad()
            (pairs.mean() + mu * (by_user[0] + by_liked.mean() + by_other.mean())).backward()
            if momentum:  # an untouched table has no gradient, and SGD would let it rest
                for parameter in model.parameters():
                    parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            optimizer.step()
            total += float(pairs.detach().sum())
    return model, total, starts


def assert_same_weights(model, expected, tolerance=1e-5):
    for (name, one), other in zip(model.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, msg=lambda text, n=name: f"{n}: {text}")
