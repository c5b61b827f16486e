"""How the worker processes of a command begin and end."""

import multiprocessing
import os
import threading

import torch


def begin_worker() -> None:
    """Take one thread, and end when the command does, also when it was killed and could say nothing."""
    torch.set_num_threads(1)
    command = multiprocessing.parent_process()

    def follow() -> None:
        if command is not None:
            command.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
