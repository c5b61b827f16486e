"""The demo's school of structured prediction: labels of sequences, alone and chained, against the true chain."""

import time
from pathlib import Path

from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from torchrank.data import SequenceDataset, make_sequences
from torchrank.losses import CRFLoss, StructuredHingeLoss, StructuredPerceptronLoss
from torchrank.metrics import position_accuracy, sequence_accuracy
from torchrank.models import LinearChain
from torchrank.ops import ragged_to_padded, viterbi
from torchrank.plots.chain import plot_transitions
from torchrank.plots.files import save_figure
from torchrank.training import fit_chain, label_sequences

FEATURES, LABELS, EPOCHS = 8, 6, 10
METHODS: dict[str, tuple[bool, nn.Module]] = {
    "each position by itself, hinge": (False, StructuredHingeLoss()),
    "chain, structured hinge": (True, StructuredHingeLoss()),
    "chain, likelihood (CRF)": (True, CRFLoss()),
    "chain, structured perceptron": (True, StructuredPerceptronLoss()),
}


def show_chain(out: Path, seed: int, console: Console) -> None:
    """Compare losses on sequences from a known chain.

    Args:
        out: folder for ``chain_transitions.png``.
        seed: of the sequences and of training.
        console: where the table goes.
    """
    made = make_sequences(
        700, num_features=FEATURES, num_labels=LABELS, length=(3, 15), noise=0.6, coupling=3.0, seed=seed
    )
    train, test = made.dataset.select(range(200)), made.dataset.select(range(200, 700))
    title = "500 test sequences of 3 to 15 positions; 200 to train on"
    table = Table("model", "positions", "whole sequences", "seconds", title=title)
    for name, (chained, loss) in METHODS.items():
        model = LinearChain(FEATURES, LABELS, chained=chained, start=chained)
        begin = time.perf_counter()
        module = fit_chain(train, model, loss, epochs=EPOCHS, seed=seed)
        seconds = time.perf_counter() - begin
        table.add_row(name, *_shares(label_sequences(module, test), test), f"{seconds:.2f}")
        if isinstance(loss, CRFLoss):
            learned = module.chain.transitions.detach().numpy()
    table.add_section()
    emissions, mask = ragged_to_padded(test.features @ made.weights + made.bias, test.offsets)
    best = viterbi(emissions, made.transitions, mask, start=made.start)[0][mask]
    table.add_row("best attainable (the true chain)", *_shares(best, test), "")
    console.print(table)
    save_figure(plot_transitions(learned, [str(label) for label in range(LABELS)]), out / "chain_transitions.png")


def _shares(labels: Tensor, test: SequenceDataset) -> tuple[str, str]:
    found, mask = ragged_to_padded(labels, test.offsets)
    right, _ = ragged_to_padded(test.labels, test.offsets)
    each = position_accuracy(found, right, mask)
    positions = (each * test.lengths).sum() / test.lengths.sum()
    return f"{positions:.4f}", f"{sequence_accuracy(found, right, mask).mean():.4f}"
