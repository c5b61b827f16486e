"""Processes that a command starts end with it."""

import os
import threading
import time

_LAUNCHER = "TORCHRANK_LAUNCHER"


def end_with_launcher() -> None:
    """End this process when the one that started it for its devices does, also when that was killed.

    Lightning starts the processes of further devices by running the command again. Killed before they have met, the
    first one would leave the others waiting for it for half an hour.
    """
    launcher = os.environ.get(_LAUNCHER)
    if launcher is None or os.environ.get("LOCAL_RANK", "0") == "0":
        os.environ[_LAUNCHER] = str(os.getpid())
        return

    def follow() -> None:
        while os.getppid() == int(launcher):
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
