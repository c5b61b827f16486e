"""The tables of ``torchrank reproduce saros``, beside the published numbers."""

from collections.abc import Mapping
from typing import Any

from torchrank.commands.results import markdown_table
from torchrank.data.published_tables import published_rows

KEYS = ("map@5", "map@10", "ndcg@5", "ndcg@10")
_PUBLISHED = (
    "Each user's own test items are ranked; AP@k divides by the hits in the first k, NDCG@k has Järvelin's discount and"
    " the best order of the ten retrieved as its ideal. These numbers do not compare with standard ones. *Printed*: the"
    " paper's, after an hour."
)
_STANDARD = (
    "Own test items, all users with one (without a preferred one they count 0; AUC: users with both kinds); and the"
    " whole catalogue without what the user has seen, preferred test items relevant."
)
_LOSSES = (
    "Published settings, η of batch BPR chosen as above; the mean over users of the pair losses, without the μ term, at"
    " the end of the first step that ends after so many seconds of training (a step of batch BPR takes longer than the"
    " first of them)."
)
#: a method's name in the published tables
PRINTED = {"saros": "SAROS", "bpr": "BPR", "bpr_batch": "BPR_b", "mf": "MF", "mostpop": "MostPop"}
PRINTED |= {"prod2vec": "Prod2Vec", "gru4rec": "GRU4Rec"}


def find_dataset(train: int, test: int) -> str | None:
    """Name the published data set whose split has these sizes, or None.

    Args:
        train: interactions of the training part.
        test: of the test part.

    Example:
        >>> find_dataset(797_758, 202_451)
        'ML-1M'
    """
    sizes: dict[str, dict[str, str]] = {}
    for row in published_rows():
        if row["table"] == "2":
            sizes.setdefault(row["dataset"], {})[row["measure"]] = row["value"]
    found = [name for name, row in sizes.items() if (int(row["train"]), int(row["test"])) == (train, test)]
    return found[0] if found else None


def published_values(dataset: str | None, method: str) -> dict[str, float]:
    """Return what the paper prints for a method on a data set, an hour of training: measures and ``test_loss``.

    Example:
        >>> published_values("ML-1M", "saros")
        {'test_loss': 0.608, 'map@5': 0.837, 'map@10': 0.808, 'ndcg@5': 0.788, 'ndcg@10': 0.874}
    """
    wanted = {**dict.fromkeys(KEYS), "test_loss_1h": "test_loss"}
    return {
        wanted[row["measure"]] or row["measure"]: float(row["value"])
        for row in published_rows()
        if row["dataset"] == dataset and row["method"] == PRINTED.get(method) and row["measure"] in wanted
    }


def markdown(results: Mapping[str, Any]) -> str:
    """Write the report.

    Args:
        results: what ``results.json`` holds.

    Returns:
        Markdown.
    """
    methods = results["methods"]
    standard = [
        [f"`{name}`", *(f"{row['standard'][k]:.4f}" for k in (*KEYS, "auc"))]
        + [f"{row['catalogue'][k]:.4f}" for k in ("ndcg@10", "recall@10")]
        for name, row in methods.items()
    ]
    lines = ["# SAROS and its rivals", "", _about_all(results["split"], results["seeds"], results["part"])]
    if results.get("conventions"):
        lines += ["", "## Conventions followed", "", *(f"- {each}" for each in results["conventions"])]
    lines += ["", "## By the published protocol", "", _PUBLISHED, ""]
    lines += markdown_table(
        ["method", *map(str.upper, KEYS), "test loss", "seconds"], _published_rows(methods, results["dataset"])
    )
    lines += ["", "## By the usual conventions", "", _STANDARD, ""]
    lines += markdown_table(
        ["method", *map(str.upper, KEYS), "AUC", "catalogue NDCG@10", "catalogue recall@10"], standard
    )
    if results["comparisons"]:
        rows = [[f"`{name}`", *(_interval(cells[k]) for k in KEYS)] for name, cells in results["comparisons"].items()]
        lines += ["", "## Better than ItemRate, user by user?", ""]
        lines += ["Differences by the published protocol and their 95 % intervals, paired bootstrap.", ""]
        lines += markdown_table(["method", *map(str.upper, KEYS)], rows)
    if results["losses"]:
        lines += ["", *_loss_lines(results["losses"])]
    lines += ["", "## What the methods are", ""]
    for name, row in methods.items():
        chosen = "" if not row["chosen"] else f" Chosen: {', '.join(f'{k} = {v:g}' for k, v in row['chosen'].items())}."
        lines.append(f"- `{name}`: {row['about']}.{chosen}")
    return "\n".join(lines) + "\n"


def _published_rows(methods: Mapping[str, Any], dataset: str | None) -> list[list[str]]:
    rows = []
    for name, row in methods.items():
        cells = [f"{row['published'][k]:.4f} ± {row['published_std'][k]:.4f}" for k in KEYS]
        loss = "" if row["test_loss"] is None else f"{row['test_loss']:.4f} ± {row['test_loss_std']:.4f}"
        rows.append([f"`{name}`", *cells, loss, f"{row['train_seconds']:.2f}"])
        printed = published_values(dataset, name)
        if printed:
            loss = f"*{printed['test_loss']:g}*" if "test_loss" in printed else ""
            rows.append([f"*printed: {PRINTED[name]}*", *(f"*{printed[k]:g}*" for k in KEYS), loss, ""])
            change = (
                f"*{row['test_loss'] - printed['test_loss']:+.3f}*" if loss and row["test_loss"] is not None else ""
            )
            cells = [f"*{row['published'][k] - printed[k]:+.3f}*" for k in KEYS]
            rows.append(["*obtained − printed*", *cells, change, ""])
    return rows


def _loss_lines(losses: Mapping[str, Any]) -> list[str]:
    lines = ["## The loss after equal time", ""]
    lines += [_LOSSES]
    marks = list(next(iter(losses["test"].values())))
    for part, name in (("test", "Test"), ("train", "Training")):
        rows = [[f"`{method}`", *(f"{cells[mark]:.4f}" for mark in marks)] for method, cells in losses[part].items()]
        lines += ["", *markdown_table([f"{name} loss after", *(f"{mark} s" for mark in marks)], rows)]
    return lines


def _interval(cell: Mapping[str, float]) -> str:
    return f"{cell['difference']:+.4f} [{cell['low']:+.4f}, {cell['high']:+.4f}]"


def _about_all(split: Mapping[str, Any], seeds: int, part: str) -> str:
    chosen = (
        "Settings and epochs were chosen on the last tenth of each user's training part, then refitted on all of it."
        if part == "test"
        else "Measured on the last tenth of each user's training part, by which settings and epochs were chosen too;"
        " trained on the rest of it. The test part has not been looked at."
    )
    return (
        f"{split['train']:,} interactions to train on ({split['positive_train_percent']:.2f} % preferred),"
        f" {split['test']:,} to measure on ({split['positive_test_percent']:.2f} %)."
        f" {seeds} seed{'s' * (seeds > 1)}; means, ± the deviation between seeds. {chosen} Seconds of training without"
        " compilation and evaluation, one thread."
    )
