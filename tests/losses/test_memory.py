"""A list of 20,000 documents stays under 2 GiB in every loss, forward and backward."""

import subprocess
import sys

import pytest

# Peak resident memory of a fresh process, which has no other history.
PROGRAM = """
import resource, sys, torch
from torchrank import losses
torch.set_num_threads(1)
scores = torch.randn(1, 20_000, generator=torch.Generator().manual_seed(0), requires_grad=True)
relevance = torch.arange(20_000).remainder(5).float()[None]
for loss in ({made}):
    scores.grad = None
    loss(scores, relevance).backward()
    assert scores.grad.isfinite().all() and (scores.grad != 0).any()
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""
LINEAR = "losses.SLAMLoss(), losses.PairwiseHingeLoss(), losses.SoftmaxLoss(), losses.ListMLELoss()"
BLOCKS = ["PairwiseLogisticLoss()", "ApproxNDCGLoss()", "LambdaLoss(variant='ndcg2++')"]


def peak_bytes(made):
    code = PROGRAM.replace("{made}", made)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_losses_that_sort():
    assert peak_bytes(LINEAR) < 2**30  # Python and torch take about half of this


@pytest.mark.slow
@pytest.mark.parametrize("loss", BLOCKS)
def test_losses_over_all_pairs(loss):
    assert peak_bytes(f"losses.{loss},") < 2**31
