"""Checkpoints that appear whole or not at all, on whatever disk they are written to."""

import shutil
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins import TorchCheckpointIO
from lightning_fabric.utilities.types import _PATH

from torchrank.errors import DataError


class WholeCheckpointIO(TorchCheckpointIO):
    """Write a checkpoint beside its place and then move it there: ``Trainer(plugins=[WholeCheckpointIO()])``.

    Lightning writes to the system's temporary folder first. Where that is another disk, as it often is on a cluster,
    the move is a copy, and a run that is killed during it leaves half a checkpoint in the place of the last one. The
    commands ``torchrank fit`` and so on use this class by themselves.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> folder = Path(tempfile.mkdtemp())
        >>> WholeCheckpointIO().save_checkpoint({"epoch": 3}, folder / "last.ckpt")
        >>> [p.name for p in folder.iterdir()], torch.load(folder / "last.ckpt", weights_only=True)
        (['last.ckpt'], {'epoch': 3})
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: _PATH, storage_options: Any | None = None) -> None:
        """Write a checkpoint.

        Args:
            checkpoint: what Lightning keeps.
            path: where to; a URL is left to Lightning.
            storage_options: of Lightning's, which takes none.

        Raises:
            DataError: it cannot be written; what was there before still is.
        """
        if "://" in str(path):
            super().save_checkpoint(checkpoint, path, storage_options)
            return
        whole = Path(path)
        part = whole.with_name(whole.name + ".part")  # one a killed run left is written over
        try:
            whole.parent.mkdir(parents=True, exist_ok=True)
            torch.save(checkpoint, part)
            part.replace(whole)
        except OSError as error:
            raise DataError(f"{path} cannot be written: {str(error).splitlines()[0]}") from error
        except RuntimeError as error:  # torch's words for a full disk do not say so
            left = shutil.disk_usage(whole.parent).free
            raise DataError(
                f"{path} cannot be written, with {left:,} bytes left on its disk: {str(error).splitlines()[0]}"
            ) from error
        finally:
            part.unlink(missing_ok=True)
